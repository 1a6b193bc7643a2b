/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the texts of which an entry of a credentials file is made, see keyfile.h. */
#include "auth/keyfile.h"

#include "auth/auth_int.h"
#include "base/printable.h"
#include "conf/conf.h"

#include <stdlib.h>
#include <string.h>

bool
key_wish_bucket(const char *text)
{
	struct span name = span_of(text);
	bool any;

	return credentials_bucket(&name, &any);
}

bool
key_wish_bound(const char *text, bool is_bytes)
{
	uint64_t bound;

	return conf_bound_parse(text, is_bytes, &bound) == 0;
}

bool
key_wish_prefix(const char *text)
{
	char *copy = strdup(text);
	bool good = copy && strlen(text) <= AUTH_PREFIX_MAX && !printable(copy, "");

	free(copy);
	return good;
}

bool
key_wish_from(const char *text)
{
	struct conf_net net;

	return conf_net_parse(text, &net) == 0;
}

bool
key_wish_comment(const char *text)
{
	char *copy = NULL;
	bool good = credentials_comment(span_of(text), &copy) == 0;

	free(copy);
	return good;
}

bool
key_wish_expires(const char *text, uint64_t *ret_s)
{
	return credentials_time(span_of(text), ret_s) == 0;
}

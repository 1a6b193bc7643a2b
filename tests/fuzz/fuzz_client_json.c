/* SPDX-License-Identifier: Apache-2.0 */
/* The tolerant JSON reader of libgantry, and the configuration behind it, over arbitrary bytes. */
#include "client/client_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int
look(void *cookie, const char *key, enum json_type type, const char *text, size_t len)
{
	size_t *sum = cookie;

	if (strlen(text) != len)
		abort();
	*sum += strlen(key) + len;
	return *sum > 100000 ? 1 : 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct config c = { 0 };
	/* A block of its own, so that a read behind its end is seen. */
	char *exact = malloc(len ? len : 1), err[64] = "";
	const char *why = NULL;
	int line = 0, lines = 1;
	size_t sum = 0;

	if (!exact)
		abort();
	memcpy(exact, data, len);
	for (size_t i = 0; i < len; i++)
		lines += exact[i] == '\n';
	/* A refusal says why, and where; the other way out is look()'s. */
	if (json_parse(exact, len, look, &sum, &line, &why) == -EINVAL && (!why || line < 1 || line > lines))
		abort();
	if (config_parse(exact, len, &c, err, sizeof err) < 0 ? !*err : c.device_nr > CONFIG_DEVICES_MAX)
		abort();
	free(exact);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* rawclient's signatures: the head of a request that is put together otherwise. */
#include "raw.h"

#include "tests/tools/sign/signer.h"

#include <time.h>

char *
head_sign(const char *head, const char *key_and_secret, const char *leave_out)
{
	struct sg_header h[SG_HEADERS_MAX];
	struct signer s = { .region = "us-east-1", .service = "s3" };
	char *copy = strdup(head), *key = strdup(key_and_secret), *save = NULL, *target, *query, *text;
	char list[2048] = "", scope[160], sig[65], *secret = strchr(key, ':');
	const char *payload = NULL;
	time_t now = time(NULL);
	int nr = 0;

	if (!secret)
		raw_die(EXIT_SCRIPT, "sign=KEY:SECRET");
	*secret++ = 0;
	s.access_key = key;
	s.secret = secret;
	strftime(s.stamp, sizeof s.stamp, "%Y%m%dT%H%M%SZ", gmtime(&now));
	char *line = strtok_r(copy, "\r\n", &save);

	target = strchr(line, ' ');
	*target++ = 0;
	*strrchr(target, ' ') = 0;
	query = strchr(target, '?');
	if (query)
		*query++ = 0;
	while ((line = strtok_r(NULL, "\r\n", &save)) && nr < SG_HEADERS_MAX - 2) {
		char *value = strstr(line, ": ");

		*value = 0;
		value += 2;
		h[nr++] = (struct sg_header){ line, value, leave_out && strcasecmp(line, leave_out) == 0 };
		if (strcasecmp(line, "x-amz-content-sha256") == 0)
			payload = value;
	}
	h[nr++] = (struct sg_header){ "x-amz-date", s.stamp, false };
	if (!payload)
		h[nr++] = (struct sg_header){ "x-amz-content-sha256", "UNSIGNED-PAYLOAD", false };
	sg_sign(&s, copy, target, query ? query : "", h, nr, payload ? payload : "UNSIGNED-PAYLOAD", sig);
	sg_signed_headers(h, nr, list, sizeof list);
	sg_scope(&s, scope);
	if (asprintf(
		    &text,
		    "x-amz-date: %s\r\n%sauthorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, "
		    "Signature=%s\r\n",
		    s.stamp, payload ? "" : "x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n", key, scope, list,
		    sig) < 0)
		raw_die(EXIT_SCRIPT, "out of memory");
	free(copy);
	free(key);
	return text;
}

/* Answers of a hostile server: header lines, then an error body, as libgantry reads them. */
#include "client/client_int.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct reply r;
	const char *why, *p = (const char *)data, *end = p + len;
	uint64_t bytes = 0;
	char text[64];

	reply_init(&r);
	if (len >= 2) {
		r.status = 100 + (data[0] | data[1] << 8) % 500;
		p += 2;
	}
	while (p < end && *p != '\n') {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);

		reply_header(&r, p, n);
		p += n + (nl != NULL);
	}
	r.error_len = (size_t)(end - p) < sizeof r.error ? (size_t)(end - p) : sizeof r.error;
	memcpy(r.error, p, r.error_len);
	reply_xml(&r, "Code", text, sizeof text);
	reply_xml(&r, "Message", text, 1);
	for (int d = GANTRY_S3; d <= GANTRY_SCALITY; d++) {
		judge_put(&r, (enum gantry_dialect)d, 4096, &why);
		enum verdict v = judge_get(&r, (enum gantry_dialect)d, 10, 4096, &bytes, &why);

		/* Whatever a server says, never more than the window. */
		if ((v == VERDICT_RDMA || v == VERDICT_BODY) && bytes > 4096)
			abort();
	}
	return 0;
}

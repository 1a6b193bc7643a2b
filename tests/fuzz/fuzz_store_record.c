/* Records: whatever rec_decode() accepts obeys its limits, and encodes to the same bytes. */
#include "store/format.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct geometry geo;
	struct rec_view v;
	uint8_t *copy = aligned_alloc(16, align_up(len ? len : 1, 16)), *again;
	int n;

	if (geo_choose((uint64_t)1 << 30, &geo) < 0)
		abort();
	memcpy(copy, data, len);
	n = rec_decode(copy, len, &geo, &v);
	if (n > 0) {
		char text[64];

		if ((size_t)n > len || rec_encoded_bytes(&v) != (size_t)n || (size_t)n > REC_BYTES_MAX)
			abort();
		again = calloc(1, (size_t)n);
		if (rec_encode(again, &v) != (size_t)n)
			abort();
		/* the padding is not looked at, nor are versions of it */
		struct rec_view w;

		if (rec_decode(again, (size_t)n, &geo, &w) != n || w.version != v.version ||
		    w.key_len != v.key_len || memcmp(w.key, v.key, v.key_len) != 0)
			abort();
		key_text(text, sizeof text, v.key, v.key_len);
		free(again);
	}
	free(copy);
	return 0;
}

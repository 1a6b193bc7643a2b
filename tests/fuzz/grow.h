/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies longer than libFuzzer makes them, for the limits of how many there may be of a thing: what stands
 * between two bytes of 1 comes again and again, as often as there is room, with a byte of 2 in it another
 * letter each time.
 */
#ifndef GANTRY_FUZZ_GROW_H
#define GANTRY_FUZZ_GROW_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How long it is in `out`; 0: there are no two such bytes. */
static inline size_t
grow(const uint8_t *data, size_t len, uint8_t *out, size_t cap)
{
	const uint8_t *from = memchr(data, 1, len), *to;
	size_t head, body, tail, n;

	to = from ? memchr(from + 1, 1, len - (size_t)(from + 1 - data)) : NULL;
	if (!to || to == from + 1)
		return 0;
	head = (size_t)(from - data);
	body = (size_t)(to - from) - 1;
	tail = len - head - body - 2;
	if (head + tail > cap)
		return 0;
	memcpy(out, data, head);
	n = head;
	for (unsigned turn = 0; n + body + tail <= cap; turn++) {
		uint8_t *p = out + n;

		memcpy(p, from + 1, body);
		/* Several of them side by side are a number in base 16. */
		for (unsigned rest = turn; (p = memchr(p, 2, (size_t)(out + n + body - p))); rest /= 16)
			*p = (uint8_t)('a' + rest % 16);
		n += body;
	}
	memcpy(out + n, to + 1, tail);
	return n + tail;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Known bytes, numbers and the check value of rawclient.  The CRC is a second implementation on purpose. */
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t
mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* A loop without branches, of which a compiler for AVX-512 makes eight words at a time: three times the speed. */
#if defined __x86_64__ && defined __gnu_linux__ && !defined __clang__ && !defined __SANITIZE_THREAD__ &&     \
	!defined __SANITIZE_ADDRESS__
__attribute__((target_clones("arch=x86-64-v4", "default"), optimize("O3")))
#endif
static void
pattern_words(uint64_t at, unsigned char *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t word = mix(at + i);

		memcpy(out + 8 * i, &word, 8);
	}
}

/* Eight bytes depend on seed and position, so that shifted or swapped blocks never look right. */
static void
pattern_bytes(uint64_t seed, uint64_t off, unsigned char *out, size_t len)
{
	uint64_t base = mix(seed ^ 0x67616e747279u);
	size_t i = 0, words;

	while (i < len) {
		uint64_t word, at = (off + i) % 8;

		if (at == 0 && len - i >= 8) {
			words = (len - i) / 8;
			pattern_words(base + (off + i) / 8, out + i, words);
			i += 8 * words;
			continue;
		}
		word = mix(base + (off + i) / 8);
		out[i++] = (unsigned char)(word >> (8 * at));
	}
}

struct fill
fill_parse(const char *text)
{
	struct fill f = { .kind = FILL_ZERO };

	if (!strcmp(text, "zero"))
		return f;
	if (!strncmp(text, "pattern:", 8)) {
		f.kind = FILL_PATTERN;
		f.seed = raw_number(text + 8);
		return f;
	}
	if (strncmp(text, "file:", 5) != 0)
		raw_die(EXIT_SCRIPT, "\"%s\": want pattern:SEED, zero or file:PATH", text);
	int fd = open(text + 5, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		raw_die(EXIT_SCRIPT, "%s: %s", text + 5, strerror(errno));
	f.kind = FILL_FILE;
	f.file_len = (uint64_t)st.st_size;
	if (f.file_len) {
		f.file = mmap(NULL, f.file_len, PROT_READ, MAP_PRIVATE, fd, 0);
		if (f.file == MAP_FAILED)
			raw_die(EXIT_SCRIPT, "%s: %s", text + 5, strerror(errno));
	}
	close(fd);
	return f;
}

void
fill_bytes(const struct fill *f, uint64_t off, unsigned char *out, size_t len)
{
	size_t have = 0;

	if (f->kind == FILL_PATTERN) {
		pattern_bytes(f->seed, off, out, len);
		return;
	}
	if (f->kind == FILL_FILE && off < f->file_len) {
		have = f->file_len - off < len ? f->file_len - off : len;
		memcpy(out, f->file + off, have);
	}
	memset(out + have, 0, len - have);
}

int64_t
fill_compare(const struct fill *f, uint64_t off, const unsigned char *mem, size_t len)
{
	unsigned char want[65536];

	for (size_t at = 0; at < len;) {
		size_t n = len - at < sizeof want ? len - at : sizeof want;

		fill_bytes(f, off + at, want, n);
		if (memcmp(want, mem + at, n) != 0) {
			for (size_t i = 0; i < n; i++)
				if (want[i] != mem[at + i])
					return (int64_t)(at + i);
		}
		at += n;
	}
	return -1;
}

/* Eight bytes at a time: table[k] has the effect of a byte with k bytes after it. Not the code of src/base, which it tests. */
uint64_t
raw_crc64(uint64_t crc, const void *data, size_t len)
{
	static uint64_t table[8][256];
	const unsigned char *p = data;
	uint64_t word;

	for (unsigned i = 0; !table[7][255] && i < 256; i++) {
		uint64_t x = i;

		for (int bit = 0; bit < 8; bit++)
			x = x & 1 ? x >> 1 ^ 0x9a6c9329ac4bc9b5u : x >> 1;
		table[0][i] = x;
	}
	for (unsigned i = 0; !table[7][255] && i < 256 * 7; i++) {
		uint64_t before = table[i / 256][i % 256];

		table[i / 256 + 1][i % 256] = table[0][before & 0xff] ^ before >> 8;
	}
	crc = ~crc;
	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		word ^= crc;
		crc = 0;
		for (int k = 0; k < 8; k++)
			crc ^= table[7 - k][word >> (8 * k) & 0xff];
	}
	while (len--)
		crc = table[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
	return ~crc;
}

void
raw_crc64_base64(uint64_t crc, char out[13])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	/* 64 bits are ten full digits and one of four bits, then one '='. */
	for (int i = 0; i < 10; i++)
		out[i] = digits[crc >> (58 - 6 * i) & 63];
	out[10] = digits[(crc & 15) << 2];
	out[11] = '=';
	out[12] = 0;
}

uint64_t
raw_number(const char *text)
{
	char *end;

	errno = 0;
	uint64_t v = strtoull(text, &end, 0);

	if (end == text || errno || *text == '-')
		raw_die(EXIT_SCRIPT, "\"%s\" is not a number", text);
	switch (*end) {
	case 'K':
		v <<= 10, end++;
		break;
	case 'M':
		v <<= 20, end++;
		break;
	case 'G':
		v <<= 30, end++;
		break;
	}
	if (*end)
		raw_die(EXIT_SCRIPT, "\"%s\" is not a number (units: K M G)", text);
	return v;
}

long
raw_millis(const char *text)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (end == text || v < 0)
		raw_die(EXIT_SCRIPT, "\"%s\" is not a time", text);
	if (!strcmp(end, "s"))
		return v * 1000;
	if (*end && strcmp(end, "ms") != 0)
		raw_die(EXIT_SCRIPT, "\"%s\" is not a time (units: ms s)", text);
	return v;
}

double
raw_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

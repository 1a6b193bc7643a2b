/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signer of the tests: AWS Signature Version 4 from the other side.  It shares no code with src/auth, and
 * is written the other way round: texts are put together in memory and hashed with libcrypto's EVP calls.
 * Included by unit tests of auth/ and by s3sign.
 */
#ifndef GANTRY_TESTS_SIGNER_H
#define GANTRY_TESTS_SIGNER_H

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SG_HEADERS_MAX 64

struct sg_header {
	const char *name, *value;
	bool unsigned_; /* sent, and left out of the signature */
};

struct signer {
	const char *access_key, *secret, *region, *service;
	char stamp[17]; /* 20130524T000000Z */
};

static inline void
sg_hex(const uint8_t *in, size_t len, char *out)
{
	for (size_t i = 0; i < len; i++)
		sprintf(out + 2 * i, "%02x", in[i]);
}

static inline void
sg_sha(const void *data, size_t len, char hex[65])
{
	uint8_t out[32];
	unsigned n;

	if (EVP_Digest(data, len, out, &n, EVP_sha256(), NULL) != 1)
		abort();
	sg_hex(out, 32, hex);
}

static inline void
sg_mac(const void *key, size_t key_len, const void *data, size_t len, uint8_t out[32])
{
	unsigned n;

	if (!HMAC(EVP_sha256(), key, (int)key_len, data, len, out, &n))
		abort();
}

static inline void
sg_key(const struct signer *s, uint8_t key[32])
{
	char first[300];

	snprintf(first, sizeof first, "AWS4%s", s->secret);
	sg_mac(first, strlen(first), s->stamp, 8, key);
	sg_mac(key, 32, s->region, strlen(s->region), key);
	sg_mac(key, 32, s->service, strlen(s->service), key);
	sg_mac(key, 32, "aws4_request", 12, key);
}

static inline void
sg_scope(const struct signer *s, char out[160])
{
	snprintf(out, 160, "%.8s/%s/%s/aws4_request", s->stamp, s->region, s->service);
}

static inline int
sg_by_name(const void *a, const void *b)
{
	const struct sg_header *const *x = a, *const *y = b;

	return strcasecmp((*x)->name, (*y)->name);
}

/* Each signed header once, in order; returns how many. */
static inline int
sg_pick(const struct sg_header *h, int nr, const struct sg_header **out)
{
	int n = 0;

	for (int i = 0; i < nr; i++) {
		bool twin = h[i].unsigned_;

		for (int j = 0; j < i; j++)
			twin = twin || strcasecmp(h[i].name, h[j].name) == 0;
		if (!twin)
			out[n++] = &h[i];
	}
	qsort(out, (size_t)n, sizeof *out, sg_by_name);
	return n;
}

static inline void
sg_signed_headers(const struct sg_header *h, int nr, char *out, size_t cap)
{
	const struct sg_header *pick[SG_HEADERS_MAX];
	int n = sg_pick(h, nr, pick);
	size_t at = 0;

	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, cap - at, "%s%s", i ? ";" : "", pick[i]->name);
	for (char *p = out; *p; p++)
		*p |= (*p >= 'A' && *p <= 'Z') ? 0x20 : 0;
}

static inline int
sg_by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "a=1&b=" sorted; good for names of which none is the beginning of another. */
static inline void
sg_query(FILE *f, const char *query)
{
	char *copy = strdup(query), *part[128], *save = NULL;
	int n = 0;

	for (char *p = strtok_r(copy, "&", &save); p; p = strtok_r(NULL, "&", &save))
		part[n++] = p;
	qsort(part, (size_t)n, sizeof *part, sg_by_text);
	for (int i = 0; i < n; i++)
		fprintf(f, "%s%s%s", i ? "&" : "", part[i], strchr(part[i], '=') ? "" : "=");
	free(copy);
}

/* The signature over a request; headers as they go out, `payload` as x-amz-content-sha256 has it. */
static inline void
sg_sign(const struct signer *s, const char *method, const char *path, const char *query,
	const struct sg_header *h, int nr, const char *payload, char out[65])
{
	const struct sg_header *pick[SG_HEADERS_MAX];
	char *text = NULL, hash[65], scope[160], list[2048] = "", to_sign[512];
	int n = sg_pick(h, nr, pick);
	uint8_t key[32], mac[32];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fprintf(f, "%s\n%s\n", method, path);
	sg_query(f, query);
	putc('\n', f);
	for (int i = 0; i < n; i++) {
		bool more = false;

		for (const char *p = pick[i]->name; *p; p++)
			putc(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p, f);
		putc(':', f);
		for (int j = 0; j < nr; j++) {
			if (strcasecmp(h[j].name, pick[i]->name) == 0) {
				fprintf(f, "%s%s", more ? "," : "", h[j].value);
				more = true;
			}
		}
		putc('\n', f);
	}
	sg_signed_headers(h, nr, list, sizeof list);
	fprintf(f, "\n%s\n%s", list, payload);
	fclose(f);
	sg_sha(text, len, hash);
	free(text);
	sg_scope(s, scope);
	snprintf(to_sign, sizeof to_sign, "AWS4-HMAC-SHA256\n%s\n%s\n%s", s->stamp, scope, hash);
	sg_key(s, key);
	sg_mac(key, 32, to_sign, strlen(to_sign), mac);
	sg_hex(mac, 32, out);
}

/* A chunk's signature, or (trailer: its canonical lines) the trailer's, after `previous`. */
static inline void
sg_chunk(const struct signer *s, bool trailer, const void *data, size_t len, const char previous[65],
	 char out[65])
{
	char scope[160], empty[65], hash[65], text[768];
	uint8_t key[32], mac[32];

	sg_scope(s, scope);
	sg_sha("", 0, empty);
	sg_sha(data, len, hash);
	snprintf(text, sizeof text, "AWS4-HMAC-SHA256-%s\n%s\n%s\n%.64s\n%s%s%s",
		 trailer ? "TRAILER" : "PAYLOAD", s->stamp, scope, previous, trailer ? "" : empty,
		 trailer ? "" : "\n", hash);
	sg_key(s, key);
	sg_mac(key, 32, text, strlen(text), mac);
	sg_hex(mac, 32, out);
}

#endif

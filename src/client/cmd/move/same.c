/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whether two files or objects of the same size are equal: by the CRC64NVME that the server stores;
 * if it stores none, by an ETag that is an MD5; otherwise by the time of the last change.
 */
#include "client/cmd/move/move.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Requests the properties of an object. Returns 0, or -errno after noting the error in o. */
static int
ask(struct cmd *c, const char *url, struct gantry_result *res, struct outcome *o)
{
	struct gantry_request req = request_of(c);
	int e;

	*res = (struct gantry_result){ .size = sizeof *res };
	req.checksum = 1;
	e = gantry_head(c->g, url, &req, res);
	if (e < 0)
		outcome_add(o, e, res);
	return e;
}

/* Returns true for an ETag "<32 hexadecimal digits>", the MD5 of a body received over HTTP. */
static bool
is_md5(const char *etag)
{
	return strlen(etag) == 34 && etag[0] == '"' && etag[33] == '"' &&
	       strspn(etag + 1, "0123456789abcdefABCDEF") == 32;
}

/* Reads a file to its end. Returns 0 with its CRC, and its MD5 in the form of an ETag; or -errno. */
static int
sums_of(int fd, struct buffer *b, uint64_t *ret_crc, char etag[35])
{
	EVP_MD_CTX *md = *etag ? EVP_MD_CTX_new() : NULL;
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	uint64_t at = 0;
	ssize_t len = 0;

	*ret_crc = 0;
	if (md && EVP_DigestInit_ex(md, EVP_md5(), NULL) != 1)
		len = -1;
	while (len >= 0 && (len = pread(fd, b->mem, b->cap, (off_t)at)) > 0) {
		*ret_crc = gantry_crc64nvme(*ret_crc, b->mem, (size_t)len);
		if (md)
			EVP_DigestUpdate(md, b->mem, (size_t)len);
		at += (uint64_t)len;
	}
	if (md && len == 0 && EVP_DigestFinal_ex(md, sum, &n) == 1 && n == 16)
		for (unsigned i = 0; i < n; i++)
			snprintf(etag + 1 + 2 * i, 4, "%02x\"", sum[i]);
	EVP_MD_CTX_free(md);
	return len < 0 ? -EIO : 0;
}

static time_t
time_of(const char *http_date)
{
	struct tm tm = { 0 };

	return strptime(http_date, "%a, %d %b %Y %H:%M:%S GMT", &tm) ? timegm(&tm) : 0;
}

int
same_file(struct cmd *c, struct buffer *b, int fd, const struct entry *file, const char *url, bool to_server,
	  struct outcome *o)
{
	struct gantry_result res;
	char sum[13], etag[35] = "";
	uint64_t crc;
	time_t stored;
	int e = ask(c, url, &res, o);

	if (e < 0)
		return e;
	if (!*res.checksum && !is_md5(res.etag)) {
		stored = time_of(res.last_modified);
		return to_server ? file->mtime.tv_sec <= stored : file->mtime.tv_sec >= stored;
	}
	if (!*res.checksum)
		*etag = '"';
	e = sums_of(fd, b, &crc, etag);
	if (e < 0) {
		outcome_local(o, e, "reading: %s", strerror(-e));
		return e;
	}
	gantry_crc64nvme_text(crc, sum);
	return *res.checksum ? !strcmp(sum, res.checksum) : !strcasecmp(etag, res.etag);
}

int
same_object(struct cmd *c, const char *a, const char *b, struct outcome *o)
{
	struct gantry_result x, y;
	int e = ask(c, a, &x, o);

	if (e == 0)
		e = ask(c, b, &y, o);
	if (e < 0)
		return e;
	return *x.checksum && *y.checksum ? !strcmp(x.checksum, y.checksum)
					  : *x.etag && !strcmp(x.etag, y.etag);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS Signature Version 4 for one exchange: every header that we set is signed, the token first of all, so
 * that nobody can put another one in its place.  Called by http.c; any thread.
 *
 * curl can sign as well (CURLOPT_AWS_SIGV4), but which headers it signs differs between its versions.
 */
#include "client/client_int.h"

#include "base/hex.h"

#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define NAMES_MAX 24
#define PARAMS_MAX 32

struct item {
	const char *text; /* "name: value", or "a=b" */
	size_t len;       /* of the name, or of all */
};

static bool
sha_hex(const void *data, size_t len, char out[65])
{
	unsigned char md[32];
	unsigned n;

	if (EVP_Digest(data, len, md, &n, EVP_sha256(), NULL) != 1)
		return false;
	hex_write(out, md, 32);
	out[64] = 0;
	return true;
}

static bool
mac(const void *key, size_t key_len, const char *text, unsigned char out[32])
{
	unsigned n;

	return HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text, strlen(text), out, &n) !=
	       NULL;
}

static int
compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = strncasecmp(x->text, y->text, x->len < y->len ? x->len : y->len);

	return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* As sort by name, then value, wants it: case counts, and "a=1" comes before "a-b=1". */
static int
compare_params(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	size_t i = 0;

	while (i < x->len && i < y->len && x->text[i] == y->text[i])
		i++;
	int cx = i < x->len ? (unsigned char)x->text[i] : -1,
	    cy = i < y->len ? (unsigned char)y->text[i] : -1;

	return (cx == '=' ? 0 : cx) - (cy == '=' ? 0 : cy);
}

static void
print_query(FILE *f, const char *query)
{
	struct item p[PARAMS_MAX];
	int nr = 0;

	while (*query && nr < PARAMS_MAX) {
		size_t len = strcspn(query, "&");

		p[nr++] = (struct item){ query, len };
		query += len + (query[len] == '&');
	}
	qsort(p, (size_t)nr, sizeof *p, compare_params);
	for (int i = 0; i < nr; i++)
		fprintf(f, "%s%.*s%s", i ? "&" : "", (int)p[i].len, p[i].text,
			memchr(p[i].text, '=', p[i].len) ? "" : "=");
}

static void
print_lower(FILE *f, const struct item *it)
{
	for (size_t i = 0; i < it->len; i++)
		putc(it->text[i] >= 'A' && it->text[i] <= 'Z' ? it->text[i] + 32 : it->text[i], f);
}

/* The headers of the list that have a value, in order of their names. */
static int
pick(const struct curl_slist *list, struct item *out)
{
	int nr = 0;

	for (const struct curl_slist *l = list; l && nr < NAMES_MAX; l = l->next) {
		const char *colon = strchr(l->data, ':');

		if (colon && colon[1])
			out[nr++] = (struct item){ l->data, (size_t)(colon - l->data) };
	}
	qsort(out, (size_t)nr, sizeof *out, compare);
	return nr;
}

/* A value as it is signed: no blanks around it, no two spaces together. */
static void
print_value(FILE *f, const char *v)
{
	size_t len;

	v += strspn(v, " ");
	len = strlen(v);
	while (len && v[len - 1] == ' ')
		len--;
	for (size_t i = 0; i < len; i++) {
		if (v[i] != ' ' || v[i - 1] != ' ')
			putc(v[i], f);
	}
}

static char *
print_names(const struct item *h, int nr)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (int i = 0; i < nr; i++) {
		fputs(i ? ";" : "", f);
		print_lower(f, &h[i]);
	}
	fclose(f);
	return text;
}

/* The hash of the canonical request. */
static bool
canonical(const char *method, const char *path, size_t path_len, const char *query, const struct item *h,
	  int nr, const char *names, char out[65])
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	bool good;

	if (!f)
		return false;
	fprintf(f, "%s\n%.*s\n", method, (int)path_len, path);
	print_query(f, query);
	putc('\n', f);
	for (int i = 0; i < nr; i++) {
		print_lower(f, &h[i]);
		putc(':', f);
		print_value(f, h[i].text + h[i].len + 1);
		putc('\n', f);
	}
	fprintf(f, "\n%s\nUNSIGNED-PAYLOAD", names);
	good = fclose(f) == 0 && text && sha_hex(text, len, out);
	free(text);
	return good;
}

static bool
signature(const struct gantry *g, const char *stamp, const char *scope, const char *hash, char out[65])
{
	unsigned char key[32];
	char *text, day[9];
	bool good;

	if (asprintf(&text, "AWS4%s", g->secret_key) < 0)
		return false;
	memcpy(day, stamp, 8);
	day[8] = 0;
	good = mac(text, strlen(text), day, key) && mac(key, 32, g->region, key) && mac(key, 32, "s3", key) &&
	       mac(key, 32, "aws4_request", key);
	explicit_bzero(text, strlen(text));
	free(text);
	if (!good || asprintf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", stamp, scope, hash) < 0)
		return false;
	good = mac(key, 32, text, key);
	free(text);
	hex_write(out, key, 32);
	out[64] = 0;
	explicit_bzero(key, sizeof key);
	return good;
}

static bool
append(struct curl_slist **list, char *line)
{
	struct curl_slist *more;

	if (!line)
		return false;
	line[strcspn(line, "\r\n")] = 0;
	more = curl_slist_append(*list, line);
	free(line);
	if (more)
		*list = more;
	return more != NULL;
}

__attribute__((format(printf, 1, 2))) static char *
print(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : text;
}

bool
sign_exchange(const struct gantry *g, const char *method, const char *url, struct curl_slist **list)
{
	const char *host = strstr(url, "://"), *path, *query;
	struct item h[NAMES_MAX];
	char stamp[17], *scope, *names, hash[65], sig[65];
	time_t now = time(NULL);
	struct tm tm;
	bool good;
	int nr;

	if (!host || !gmtime_r(&now, &tm) || strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &tm) != 16)
		return false;
	host += 3;
	path = host + strcspn(host, "/?#");
	query = path + strcspn(path, "?#");
	if (!append(list, print("Host: %.*s", (int)(path - host), host)) ||
	    !append(list, print("x-amz-date: %s", stamp)) ||
	    !append(list, print("x-amz-content-sha256: UNSIGNED-PAYLOAD")) ||
	    (g->session_token && !append(list, print("x-amz-security-token: %s", g->session_token))))
		return false;
	nr = pick(*list, h);
	scope = print("%.8s/%s/s3/aws4_request", stamp, g->region);
	names = print_names(h, nr);
	good = scope && names &&
	       canonical(method, query > path ? path : "/", query > path ? (size_t)(query - path) : 1,
			 *query == '?' ? query + 1 : "", h, nr, names, hash) &&
	       signature(g, stamp, scope, hash, sig) &&
	       append(list, print("Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, "
				  "Signature=%s",
				  g->access_key, scope, names, sig));
	free(scope);
	free(names);
	return good;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS Signature Version 4.  For one exchange: every header that we set is signed, the token first of all, so
 * that nobody can put another one in its place.  Called by http.c; any thread.  And for a URL that others use.
 *
 * curl can sign as well (CURLOPT_AWS_SIGV4), but which headers it signs differs between its versions.
 */
#include "client/client_int.h"

#include "base/clock.h"
#include "base/hex.h"

#include <curl/curl.h>
#include <errno.h>
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

/* What a server signs of a path, or of a name or value in a query: whatever its spelling, its bytes are encoded but
 * for those that need not be. */
static void
print_encoded(FILE *f, const char *text, size_t len, bool is_path)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '%' && len - i > 2 && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
			c = (unsigned char)(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]));
			i += 2;
		} else if (c == '+' && !is_path) {
			c = ' ';
		}
		if (url_is_unreserved(c) || (c == '/' && is_path))
			putc(c, f);
		else
			fprintf(f, "%%%02X", c);
	}
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
	for (int i = 0; i < nr; i++) {
		const char *equals = memchr(p[i].text, '=', p[i].len);
		size_t name = equals ? (size_t)(equals - p[i].text) : p[i].len;

		fputs(i ? "&" : "", f);
		print_encoded(f, p[i].text, name, false);
		putc('=', f);
		if (equals)
			print_encoded(f, equals + 1, p[i].len - name - 1, false);
	}
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
	fprintf(f, "%s\n", method);
	print_encoded(f, path, path_len, true);
	putc('\n', f);
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

static bool
print_stamp(char stamp[17])
{
	time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
	struct tm tm;

	return gmtime_r(&now, &tm) && strftime(stamp, 17, "%Y%m%dT%H%M%SZ", &tm) == 16;
}

bool
sign_exchange(const struct gantry *g, const char *method, const char *url, struct curl_slist **list)
{
	const char *host = strstr(url, "://"), *path, *query;
	struct item h[NAMES_MAX];
	char stamp[17], *scope, *names, hash[65], sig[65];
	bool good;
	int nr;

	if (!host || !print_stamp(stamp))
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

/* ---- URLs for others ---- */

/* The query of a signed URL, without its signature. */
static char *
presigned_query(const struct gantry *g, const char *stamp, const char *scope, unsigned expires_s,
		const char *own)
{
	char *key = url_encode_all(g->access_key), *area = url_encode_all(scope),
	     *token = url_encode_all(g->session_token ? g->session_token : ""), *text = NULL;

	if (key && area && token)
		text = print("%s%sX-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=%s%%2F%s&X-Amz-Date=%s"
			     "&X-Amz-Expires=%u%s%s&X-Amz-SignedHeaders=host",
			     own, *own ? "&" : "", key, area, stamp, expires_s,
			     *token ? "&X-Amz-Security-Token=" : "", token);
	free(key);
	free(area);
	free(token);
	return text;
}

static bool
may_be_presigned(const char *method)
{
	static const char *const all[] = { "GET", "PUT", "HEAD", "DELETE" };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i], method))
			return true;
	return false;
}

/* Of the authority, which ends at `path`, what a client sends as Host: a port that is the scheme's own is not in it. */
static char *
host_header(const char *url, const char *host, const char *path)
{
	const char *usual = !strncmp(url, "https:", 6) ? ":443" : ":80";
	size_t len = (size_t)(path - host), n = strlen(usual);

	if (len > n && !memcmp(path - n, usual, n))
		len -= n;
	return print("host:%.*s", (int)len, host);
}

/* Signs a URL that url_clean() has made. */
static int
presign(const struct gantry *g, const char *method, const char *url, unsigned expires_s, char **ret_url)
{
	const char *host = strstr(url, "://"), *path, *own;
	char stamp[17], hash[65], sig[65], *scope = NULL, *query = NULL, *line = NULL;
	int e = -ENOMEM, params = 8; /* of ours, and the first of the URL's own */

	host = host ? host + 3 : url;
	path = host + strcspn(host, "/?");
	own = path + strcspn(path, "?");
	if (host == url || path == host || *path != '/' || memchr(host, '@', (size_t)(path - host)) ||
	    !print_stamp(stamp))
		return -EINVAL;
	for (const char *p = own; *p; p++)
		params += *p == '&';
	if (params > PARAMS_MAX)
		return -EINVAL;
	if (strcasestr(own, "X-Amz-Signature=") || strcasestr(own, "X-Amz-Credential="))
		return -EEXIST;
	scope = print("%.8s/%s/s3/aws4_request", stamp, g->region);
	if (scope)
		query = presigned_query(g, stamp, scope, expires_s, *own ? own + 1 : "");
	line = host_header(url, host, path);
	if (query && line) {
		struct item h = { line, 4 };

		if (canonical(method, path, (size_t)(own - path), query, &h, 1, "host", hash) &&
		    signature(g, stamp, scope, hash, sig))
			*ret_url = print("%.*s?%s&X-Amz-Signature=%s", (int)(own - url), url, query, sig);
		e = *ret_url ? 0 : -ENOMEM;
	}
	free(scope);
	free(query);
	free(line);
	return e;
}

int
gantry_presign(struct gantry *g, const char *method, const char *url, unsigned expires_s, char **ret_url)
{
	char *clean;
	int e;

	*ret_url = NULL;
	if (g->dialect != GANTRY_S3)
		return -EOPNOTSUPP;
	if (!g->access_key)
		return -ENOKEY;
	if (!method || !may_be_presigned(method) || !url || expires_s < 1 || expires_s > GANTRY_PRESIGN_MAX_S)
		return -EINVAL;
	clean = url_clean(url);
	if (!clean)
		return -ENOMEM;
	e = presign(g, method, clean, expires_s, ret_url);
	free(clean);
	return e;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Asking gantryd's admin listener, and reading its answers; see admin.h. */
#include "client/cmd/common/admin_client.h"

#include "base/printable.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/words.h"

#include <curl/curl.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USUAL_SOCKET "/run/gantry/admin.sock"
#define USUAL_URL "http://127.0.0.1:9001"
#define ANSWER_MAX (64u << 20)
#define BOUNDS_MAX 64

const char *
admin_name(const char *name)
{
	const char *env = getenv("GANTRY_ADMIN");

	if (name && *name)
		return name;
	if (env && *env)
		return env;
	return access(USUAL_SOCKET, F_OK) == 0 ? USUAL_SOCKET : USUAL_URL;
}

bool
admin_is_socket(const char *name)
{
	return name[0] == '/' || name[0] == '.';
}

static const char *certificates;   /* NULL: those of the system */
static struct curl_slist *headers; /* NULL: none; with a token: Authorization */

/* Reads a token into text.  Returns NULL, or a sentence. */
static const char *
read_token(const char *path, char *text, size_t cap)
{
	FILE *f = fopen(path, "re");

	if (!f)
		return strerror(errno);
	if (!fgets(text, (int)cap, f))
		*text = 0;
	fclose(f);
	text[strcspn(text, "\r\n")] = 0;
	return *text ? NULL : "its first line has no token";
}

void
admin_secure(const char *ca_file, const char *token_file)
{
	const char *env = getenv("GANTRY_ADMIN_TOKEN_FILE");
	char line[512] = "Authorization: Bearer ";
	size_t len = strlen(line);
	const char *why;

	certificates = ca_file && *ca_file ? ca_file : getenv("AWS_CA_BUNDLE");
	if (ca_file && *ca_file && access(ca_file, R_OK) < 0)
		words_bad(NULL, strerror(errno), certificates);
	if (!token_file || !*token_file)
		token_file = env;
	if (!token_file || !*token_file)
		return;
	why = read_token(token_file, line + len, sizeof line - len);
	if (why)
		words_bad(NULL, why, token_file);
	headers = curl_slist_append(NULL, line);
	explicit_bzero(line, sizeof line);
}

static size_t
on_bytes(char *bytes, size_t size, size_t n, void *cookie)
{
	struct answer *a = cookie;
	char *bigger = a->len + n > ANSWER_MAX ? NULL : realloc(a->text, a->len + n + 1);

	if (!bigger)
		return 0;
	a->text = bigger;
	memcpy(a->text + a->len, bytes, n);
	a->len += n;
	a->text[a->len] = 0;
	return n;
}

/* A disk that is added gets its log first, written whole: of a large one that takes minutes, and ends for good or not.  0: as long as it takes. */
static long
timeout_ms(const char *path, const char *post)
{
	if (post && strncmp(path, "/control/disk/", 14) == 0)
		return 0;
	return post ? 30000 : 5000;
}

static int
ask(const char *name, const char *path, const char *post, struct answer *ret, char *err, size_t err_len)
{
	bool is_socket = admin_is_socket(name);
	char url[512], why[CURL_ERROR_SIZE] = "";
	CURL *c = curl_easy_init();
	CURLcode rc;
	long status = 0;

	*ret = (struct answer){ 0 };
	if (!c) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	snprintf(url, sizeof url, "%s%s%s",
		 is_socket             ? "http://gantryd"
		 : strstr(name, "://") ? ""
				       : "http://",
		 is_socket ? "" : name, path);
	curl_easy_setopt(c, CURLOPT_URL, url);
	if (is_socket)
		curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, name);
	else if (certificates && *certificates)
		curl_easy_setopt(c, CURLOPT_CAINFO, certificates);
	if (!is_socket && headers)
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, timeout_ms(path, post));
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
	curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	if (post)
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, post);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, ret);
	rc = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(c);
	ret->status = (int)status;
	if (rc == CURLE_OK && !ret->text)
		ret->text = calloc(1, 1);
	if (rc == CURLE_OK && ret->text) {
		/* Any server that answers at that address writes to our terminal. */
		printable(ret->text, "\t\n\r");
		ret->len = strlen(ret->text);
		return 0;
	}
	printable(why, "");
	snprintf(
		err, err_len, "no answer from %s: %s%s", name, *why ? why : curl_easy_strerror(rc),
		rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST
			? ": does gantryd run there, and is this its admin.address or admin.socket (--admin)?"
			: "");
	free(ret->text);
	*ret = (struct answer){ 0 };
	return rc == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -ECONNREFUSED;
}

int
admin_get(const char *name, const char *path, struct answer *ret, char *err, size_t err_len)
{
	return ask(name, path, NULL, ret, err, err_len);
}

int
admin_post(const char *name, const char *path, const char *body, struct answer *ret, char *err,
	   size_t err_len)
{
	return ask(name, path, body, ret, err, err_len);
}

static bool
is_clean(const char *text)
{
	char *copy = strdup(text);
	bool clean = copy && !printable(copy, "");

	free(copy);
	return clean;
}

/* The same for what escapes in strings were: all of a document's.  No name of ours needs it, so members with
 * such a name go.  The parser bounds its depth. */
static void
clean(json_t *v)
{
	const char *key;
	json_t *member;
	size_t i;
	void *next;

	if (json_is_string(v)) {
		char *text = strdup(json_string_value(v));

		if (!text || printable(text, ""))
			json_string_set(v, text ? text : "?");
		free(text);
	}
	json_array_foreach(v, i, member) clean(member);
	json_object_foreach_safe(v, next, key, member)
	{
		if (is_clean(key))
			clean(member);
		else
			json_object_del(v, key);
	}
}

int
admin_json(const char *name, const char *path, json_t **ret, int *ret_status, char *err, size_t err_len)
{
	struct answer a;
	json_error_t je;
	int r = admin_get(name, path, &a, err, err_len);

	if (r < 0)
		return r;
	if (ret_status)
		*ret_status = a.status;
	*ret = json_loadb(a.text, a.len, 0, &je);
	free(a.text);
	if (*ret && a.status != 401) {
		clean(*ret);
		return 0;
	}
	if (a.status == 401) {
		json_decref(*ret);
		*ret = NULL;
		snprintf(err, err_len, "%s%s answers 401: %s", name, path,
			 headers ? "it has another token than --token-file (GANTRY_ADMIN_TOKEN_FILE)"
				 : "it needs the token of its admin.token_file: --token-file FILE");
		return -EACCES;
	}
	snprintf(err, err_len, "%s%s answers %d and no JSON: is it gantryd's admin listener?", name, path,
		 a.status);
	return -EINVAL;
}

int
admin_tell(const struct cmd *c, const char *name, const char *command, const char *path, const char *body,
	   void (*print)(const struct cmd *c, const json_t *o))
{
	char err[1024];
	struct answer a;
	json_t *o;
	int rc = EXIT_OK;
	char *error;

	if (admin_post(name, path, body, &a, err, sizeof err) < 0) {
		fprintf(stderr, "gantry: %s\n", err);
		return EXIT_FAILED;
	}
	o = json_loadb(a.text, a.len, 0, NULL);
	/* Each remedy is a line of its own. */
	error = strdup(json_text_at(o, "error", "no reason given"));
	if (error)
		printable(error, "\n");
	clean(o);
	if (a.status == 200 && o) {
		print(c, o);
	} else {
		fprintf(stderr, "gantry: %s: %d: %s\n", command, a.status, error ? error : "no memory");
		rc = a.status == 404 ? EXIT_NOT_FOUND : EXIT_FAILED;
	}
	json_decref(o);
	free(error);
	free(a.text);
	return rc;
}

static const json_t *
walk(const json_t *o, const char *path)
{
	char key[64];

	while (o && *path) {
		size_t len = strcspn(path, ".");

		snprintf(key, sizeof key, "%.*s", (int)len, path);
		o = json_object_get(o, key);
		path += len + (path[len] == '.');
	}
	return o;
}

double
json_at(const json_t *o, const char *path)
{
	return json_number_value(walk(o, path));
}

const char *
json_text_at(const json_t *o, const char *path, const char *otherwise)
{
	const char *text = json_string_value(walk(o, path));

	return text ? text : otherwise;
}

/* ---- Prometheus text ---- */

static int
count_lines(const char *p)
{
	int n = 1;

	for (; *p; p++)
		n += *p == '\n';
	return n;
}

/* "name{labels} value": cuts the line into its parts. */
static bool
take_line(char *line, struct metric *m)
{
	char *open = strchr(line, '{'), *close = open ? strrchr(line, '}') : NULL, *value, *end;

	m->name = line;
	m->labels = "";
	if (open) {
		if (!close || close < open)
			return false;
		*open = *close = 0;
		m->labels = open + 1;
		value = close + 1;
	} else {
		value = strchr(line, ' ');
		if (!value)
			return false;
		*value++ = 0;
	}
	m->value = strtod(value, &end);
	return end != value;
}

int
sample_parse(char *text, struct sample *ret, int *ret_line)
{
	int line_nr = 0;

	*ret = (struct sample){ .at_s = now_s(), .text = text };
	ret->m = calloc((size_t)count_lines(text), sizeof *ret->m);
	if (!ret->m) {
		free(text);
		ret->text = NULL;
		return -ENOMEM;
	}
	for (char *line = text; line && *line;) {
		char *next = strchr(line, '\n');

		line_nr++;
		if (next)
			*next++ = 0;
		if (*line && *line != '#') {
			if (!take_line(line, &ret->m[ret->nr])) {
				*ret_line = line_nr;
				sample_free(ret);
				return -EINVAL;
			}
			ret->nr++;
		}
		line = next;
	}
	return 0;
}

void
sample_free(struct sample *s)
{
	free(s->text);
	free(s->m);
	*s = (struct sample){ 0 };
}

/* Does labels have every pair of want? */
static bool
labels_have(const char *labels, const char *want)
{
	char pair[160];

	while (*want) {
		size_t len = strcspn(want, ",");
		const char *at;

		snprintf(pair, sizeof pair, "%.*s", (int)len, want);
		at = strstr(labels, pair);
		if (!at || (at != labels && at[-1] != ','))
			return false;
		want += len + (want[len] == ',');
	}
	return true;
}

double
sample_sum(const struct sample *s, const char *name, const char *want)
{
	double sum = 0;

	for (int i = 0; i < s->nr; i++)
		if (!strcmp(s->m[i].name, name) && labels_have(s->m[i].labels, want))
			sum += s->m[i].value;
	return sum;
}

bool
metric_label(const struct metric *m, const char *label, char *out, size_t cap)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof key, "%s=\"", label);
	at = strstr(m->labels, key);
	if (!at || (at != m->labels && at[-1] != ','))
		return false;
	at += strlen(key);
	snprintf(out, cap, "%.*s", (int)strcspn(at, "\""), at);
	return true;
}

struct bound {
	double le, count;
};

static int
by_bound(const void *a, const void *b)
{
	const struct bound *x = a, *y = b;

	return x->le < y->le ? -1 : x->le > y->le;
}

static void
add_bounds(const struct sample *s, const char *bucket, const char *want, double sign, struct bound *b,
	   int *nr)
{
	for (int i = 0; i < s->nr; i++) {
		const struct metric *m = &s->m[i];
		char text[32];
		double le;
		int k = 0;

		if (strcmp(m->name, bucket) != 0 || !labels_have(m->labels, want) ||
		    !metric_label(m, "le", text, sizeof text))
			continue;
		le = strtod(text, NULL); /* "+Inf" too */
		while (k < *nr && b[k].le != le)
			k++;
		if (k == BOUNDS_MAX)
			continue;
		if (k == *nr)
			b[(*nr)++] = (struct bound){ .le = le };
		b[k].count += sign * m->value;
	}
}

double
sample_quantile(const struct sample *now, const struct sample *before, const char *histogram,
		const char *want, double p)
{
	struct bound b[BOUNDS_MAX];
	char bucket[128];
	double low = 0, low_count = 0, rank;
	int nr = 0;

	snprintf(bucket, sizeof bucket, "%s_bucket", histogram);
	add_bounds(now, bucket, want, 1, b, &nr);
	if (before)
		add_bounds(before, bucket, want, -1, b, &nr);
	qsort(b, (size_t)nr, sizeof *b, by_bound);
	if (nr == 0 || !(b[nr - 1].count > 0))
		return NAN;
	rank = p * b[nr - 1].count;
	for (int i = 0; i < nr; i++) {
		if (b[i].count >= rank && b[i].count > low_count)
			return isinf(b[i].le) ? low
					      : low + (b[i].le - low) * (rank - low_count) /
								(b[i].count - low_count);
		low = b[i].le;
		low_count = b[i].count;
	}
	return low;
}

const char *
seconds_text(double s, char out[32])
{
	if (isnan(s))
		snprintf(out, 32, "-");
	else if (s < 1e-3)
		snprintf(out, 32, "%.0f us", s * 1e6);
	else if (s < 1)
		snprintf(out, 32, "%.*f ms", s < 1e-2 ? 1 : 0, s * 1e3);
	else
		snprintf(out, 32, "%.1f s", s);
	return out;
}

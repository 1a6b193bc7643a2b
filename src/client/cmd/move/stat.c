/* SPDX-License-Identifier: Apache-2.0 */
/* gantry stat: shows all properties of an object that the server returns. Main thread. */
#include "client/cmd/common/cmd.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT 20

/* Returns true for a header about the answer, the connection or the server, not about the object. */
static bool
is_about_the_answer(const char *name)
{
	static const char *const all[] = { "connection",
					   "keep-alive",
					   "date",
					   "server",
					   "transfer-encoding",
					   "x-amz-request-id",
					   "x-amz-id-2",
					   "accept-ranges",
					   "vary",
					   "content-range",
					   "via",
					   "strict-transport-security" };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i], name))
			return true;
	return false;
}

/* Returns the rest of a name that begins with prefix; NULL for another name. */
static const char *
behind(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

static void
take_header(void *cookie, const char *name, const char *value)
{
	if (!is_about_the_answer(name))
		json_object_set_new(cookie, name, json_pack("s", value));
}

/* Collects the headers whose names begin with prefix, by the rest of their names. */
static json_t *
sorted_out(json_t *headers, const char *prefix)
{
	json_t *out = json_object(), *value;
	const char *name;

	json_object_foreach(headers, name, value)
	{
		const char *rest = behind(name, prefix);

		/* x-amz-checksum-type is the type of the other checksums, and no checksum. */
		if (rest && strcmp(name, "x-amz-checksum-type") != 0)
			json_object_set(out, rest, value);
	}
	return out;
}

static const char *
header(const json_t *headers, const char *name)
{
	const char *text = json_string_value(json_object_get(headers, name));

	return text ? text : "";
}

static void
print_line(const char *left, const char *right)
{
	if (*right)
		printf("%-*s %s\n", LEFT, left, right);
}

static void
print_text(const struct outcome *o, json_t *headers, json_t *sums, json_t *meta)
{
	char size[32], left[80];
	const char *name;
	json_t *value;

	if (o->res.has_object_size)
		printf("%-*s %llu (%s)\n", LEFT, "size", (unsigned long long)o->res.object_size,
		       size_text(o->res.object_size, size));
	print_line("etag", header(headers, "etag"));
	print_line("last-modified", header(headers, "last-modified"));
	print_line("content-type", header(headers, "content-type"));
	json_object_foreach(sums, name, value)
	{
		snprintf(left, sizeof left, "checksum-%s", name);
		print_line(left, json_string_value(value));
	}
	json_object_foreach(meta, name, value)
		printf("%-*s %s: %s\n", LEFT, "metadata", name, json_string_value(value));
	print_line("tags", header(headers, "x-amz-tagging-count"));
	json_object_foreach(headers, name, value)
	{
		if (!strcmp(name, "etag") || !strcmp(name, "last-modified") ||
		    !strcmp(name, "content-type") || !strcmp(name, "content-length") ||
		    !strcmp(name, "x-amz-tagging-count") || behind(name, "x-amz-meta-"))
			continue;
		if (!behind(name, "x-amz-checksum-") || !strcmp(name, "x-amz-checksum-type"))
			print_line(name, json_string_value(value));
	}
}

static void
print_json(const struct outcome *o, json_t *headers, json_t *sums, json_t *meta)
{
	json_t *all =
		json_pack("{s:s, s:s, s:b, s:i, s:i, s:O, s:O, s:O}", "op", "stat", "url", o->url, "ok", 1,
			  "status", o->res.status, "tags", atoi(header(headers, "x-amz-tagging-count")),
			  "checksums", sums, "metadata", meta, "headers", headers);

	if (o->res.has_object_size)
		json_object_set_new(all, "size", json_integer((json_int_t)o->res.object_size));
	json_object_set(all, "etag", json_object_get(headers, "etag"));
	json_object_set(all, "last_modified", json_object_get(headers, "last-modified"));
	json_object_set(all, "content_type", json_object_get(headers, "content-type"));
	json_object_set_new(all, "seconds", json_real(o->seconds));
	json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(all);
}

int
cmd_stat(struct cmd *c, const char *url)
{
	struct gantry_request req = request_of(c);
	struct gantry_result res = { .size = sizeof res };
	json_t *headers = json_object(), *sums, *meta;
	struct outcome o;

	outcome_init(&o, "stat", url, NULL);
	outcome_add(&o, gantry_stat(c->g, url, &req, take_header, headers, &res), &res);
	o.seconds = now_s() - o.seconds;
	explain(&o);
	sums = sorted_out(headers, "x-amz-checksum-");
	meta = sorted_out(headers, "x-amz-meta-");
	if (o.error)
		report(c, &o, false);
	else if (c->json)
		print_json(&o, headers, sums, meta);
	else
		print_text(&o, headers, sums, meta);
	json_decref(headers);
	json_decref(sums);
	json_decref(meta);
	return !o.error ? EXIT_OK : o.error == -ENOENT ? EXIT_NOT_FOUND : EXIT_FAILED;
}

/* ---- presign ---- */

static const char *
presign_fault(int e)
{
	switch (-e) {
	case ENOKEY:
		return "there is no access key to sign with: --access-key and --secret, or AWS_ACCESS_KEY_ID "
		       "and "
		       "AWS_SECRET_ACCESS_KEY";
	case EEXIST:
		return "the URL is signed already";
	case EINVAL:
		return "there is a user in the URL, or more in its query than can be signed";
	}
	return strerror(-e);
}

int
cmd_presign(struct cmd *c, const char *url)
{
	char *made;
	int e = gantry_presign(c->g, c->method, url, c->expires_s, &made);

	if (e < 0) {
		fprintf(stderr, "gantry: presign: %s\n", presign_fault(e));
		return EXIT_FAILED;
	}
	if (c->json)
		printf("{\"op\":\"presign\",\"method\":\"%s\",\"expires\":%u,\"presigned\":\"%s\"}\n",
		       c->method, c->expires_s, made);
	else
		puts(made);
	free(made);
	return EXIT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the gantry command says, to people and to programs. */
#include "client/cmd/common/cmd.h"

#include "base/printable.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void
outcome_init(struct outcome *o, const char *op, const char *url, const char *file)
{
	*o = (struct outcome){ .op = op, .url = url, .file = file };
	o->seconds = now_s();
}

void
outcome_add(struct outcome *o, int error, const struct gantry_result *res)
{
	uint64_t object_size = o->res.object_size;
	int has = o->res.has_object_size, requests = o->res.requests;
	char reason[sizeof o->res.reason], address[sizeof o->res.declined_address];

	memcpy(reason, o->res.reason, sizeof reason);
	memcpy(address, o->res.declined_address, sizeof address);
	if (res->path == GANTRY_PATH_RDMA)
		o->rdma_bytes += res->bytes;
	else
		o->http_bytes += res->bytes;
	o->res = *res;
	o->res.requests += requests;
	if (*reason) {
		memcpy(o->res.reason, reason, sizeof reason);
		memcpy(o->res.declined_address, address, sizeof address);
	}
	if (!o->res.has_object_size) {
		o->res.object_size = object_size;
		o->res.has_object_size = has;
	}
	o->error = error;
}

void
outcome_local(struct outcome *o, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(o->res.message, sizeof o->res.message, fmt, ap);
	va_end(ap);
	o->res.status = 0;
	o->res.code[0] = 0;
	o->error = error;
	o->is_local = true;
}

bool
outcome_may_pass(const struct outcome *o)
{
	switch (o->is_local ? 0 : o->error) {
	case -ETIMEDOUT:
	case -ECONNREFUSED:
	case -EHOSTUNREACH:
	case -EPIPE:
	case -EAGAIN:
	case -EIO:
		return true;
	default:
		return false;
	}
}

static const char *
rate_text(uint64_t bytes, double seconds, char out[48])
{
	char size[32];

	size_text(seconds > 0 ? (uint64_t)((double)bytes / seconds) : 0, size);
	snprintf(out, 48, "%s/s", size);
	return out;
}

static void
json_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, "\"%s\":\"", key);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < ' ' || c == 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputs("\",", f);
}

const char *
name_shown(FILE *f, const char *name, char *room, size_t cap)
{
	if (!isatty(fileno(f)))
		return name;
	snprintf(room, cap, "%s", name);
	printable(room, "");
	return room;
}

/* Which way the bytes went, in one word. */
static const char *
path_word(const struct outcome *o)
{
	if (o->rdma_bytes && o->http_bytes)
		return "both";
	return o->rdma_bytes ? "rdma" : o->http_bytes ? "http" : "none";
}

static void
report_json(FILE *f, const struct outcome *o)
{
	char sum[13];

	fputc('{', f);
	json_text(f, "op", o->op);
	json_text(f, "url", o->url);
	if (o->file)
		json_text(f, "file", o->file);
	fprintf(f, "\"ok\":%s,\"status\":%d,\"requests\":%d,", o->error ? "false" : "true", o->res.status,
		o->res.requests);
	json_text(f, "path", path_word(o));
	if (o->rdma_bytes && o->res.transport != GANTRY_TRANSPORT_AUTO)
		json_text(f, "transport", o->res.transport == GANTRY_TRANSPORT_RC ? "rc" : "dc");
	fprintf(f, "\"rdma_bytes\":%llu,\"http_bytes\":%llu,", (unsigned long long)o->rdma_bytes,
		(unsigned long long)o->http_bytes);
	if (o->copied_bytes)
		fprintf(f, "\"copied_bytes\":%llu,", (unsigned long long)o->copied_bytes);
	if (o->kept_bytes)
		fprintf(f, "\"kept_bytes\":%llu,", (unsigned long long)o->kept_bytes);
	if (*o->res.reason)
		json_text(f, "reason", o->res.reason);
	if (*o->res.declined_address)
		json_text(f, "declined_address", o->res.declined_address);
	if (o->res.has_object_size)
		fprintf(f, "\"size\":%llu,", (unsigned long long)o->res.object_size);
	if (*o->res.etag)
		json_text(f, "etag", o->res.etag);
	if (*o->res.last_modified)
		json_text(f, "last_modified", o->res.last_modified);
	if (*o->res.checksum)
		json_text(f, "checksum_crc64nvme", o->res.checksum);
	if (o->res.has_crc64nvme) {
		gantry_crc64nvme_text(o->res.crc64nvme, sum);
		json_text(f, "crc64nvme", sum);
	}
	fprintf(f, "\"verified\":%s,", o->res.checksum_verified ? "true" : "false");
	if (o->error) {
		json_text(f, "code", o->res.code);
		json_text(f, "message", o->res.message);
	}
	fprintf(f, "\"seconds\":%.6f}\n", o->seconds);
}

static void
report_error(const struct outcome *o)
{
	char room[4096];

	/* A name may be a server's. */
	snprintf(room, sizeof room, "%s", o->is_local && o->file ? o->file : o->url);
	printable(room, "");
	fprintf(stderr, "gantry: %s %s: ", o->op, room);
	if (*o->res.code)
		fprintf(stderr, "%s: ", o->res.code);
	fprintf(stderr, "%s", *o->res.message ? o->res.message : strerror(-o->error));
	if (o->res.status && !o->is_local)
		fprintf(stderr, " (HTTP %d)", o->res.status);
	fputc('\n', stderr);
}

static void
report_line(const struct cmd *c, const struct outcome *o, bool data_on_stdout)
{
	FILE *f = data_on_stdout ? stderr : stdout;
	uint64_t bytes = o->rdma_bytes + o->http_bytes;
	char size[32], rate[48];

	if (c->json) {
		report_json(f, o);
		return;
	}
	if (o->error) {
		report_error(o);
		return;
	}
	if (c->quiet)
		return;
	fprintf(f, "%s %s: %s", o->op, o->file && strcmp(o->file, "-") != 0 ? o->file : o->url,
		size_text(bytes, size));
	if (o->rdma_bytes && o->http_bytes)
		fprintf(f, " (%s by RDMA)", size_text(o->rdma_bytes, size));
	else if (bytes)
		fprintf(f, " by %s%s", o->rdma_bytes ? "RDMA" : "HTTP",
			!o->rdma_bytes                            ? ""
			: o->res.transport == GANTRY_TRANSPORT_RC ? " (RC)"
			: c->verbose && o->res.transport          ? " (DC)"
								  : "");
	fprintf(f, " in %.3f s", o->seconds);
	if (bytes)
		fprintf(f, ", %s", rate_text(bytes, o->seconds, rate));
	if (o->copied_bytes)
		fprintf(f, ", %s copied by the server itself", size_text(o->copied_bytes, size));
	if (o->kept_bytes)
		fprintf(f, ", %s were there from an earlier run", size_text(o->kept_bytes, size));
	if (o->res.checksum_verified)
		fprintf(f, ", checksum verified");
	if (o->http_bytes && *o->res.reason) {
		fprintf(f, "; not by RDMA: ");
		decline_print(f, o->res.reason, o->res.declined_address);
	}
	fputc('\n', f);
}

void
report(const struct cmd *c, const struct outcome *o, bool data_on_stdout)
{
	bar_hide();
	report_line(c, o, data_on_stdout);
	bar_show();
}

void
report_head(const struct cmd *c, const struct outcome *o)
{
	char size[32];

	if (c->json || o->error) {
		report(c, o, false);
		return;
	}
	if (o->res.has_object_size)
		printf("size           %llu (%s)\n", (unsigned long long)o->res.object_size,
		       size_text(o->res.object_size, size));
	if (*o->res.etag)
		printf("etag           %s\n", o->res.etag);
	if (*o->res.last_modified)
		printf("last-modified  %s\n", o->res.last_modified);
	if (*o->res.checksum)
		printf("crc64nvme      %s\n", o->res.checksum);
}

void
would(const struct cmd *c, const char *what, const char *prefix, const char *name)
{
	char text[8192], room[8192];

	snprintf(text, sizeof text, "%s%s", prefix, name);
	bar_hide();
	if (c->json) {
		printf("{\"op\":\"%s\",\"dry_run\":true,", what);
		json_text(stdout, "name", text);
		printf("\"ok\":true}\n");
	} else {
		printf("would %s %s\n", what, name_shown(stdout, text, room, sizeof room));
	}
	bar_show();
}

int
report_without_bytes(const struct cmd *c, struct outcome *o, int e, const struct gantry_result *res)
{
	outcome_add(o, e, res);
	o->seconds = now_s() - o->seconds;
	explain(o);
	if (c->json || o->error)
		report(c, o, false);
	return !o->error ? EXIT_OK : o->error == -ENOENT ? EXIT_NOT_FOUND : EXIT_FAILED;
}

/* ---- many files ---- */

void
tally_init(struct tally *t)
{
	*t = (struct tally){ .start_s = now_s() };
	pthread_mutex_init(&t->lock, NULL);
}

void
tally_add(struct tally *t, const struct outcome *o)
{
	pthread_mutex_lock(&t->lock);
	if (o->error) {
		t->failed++;
		t->not_found += o->error == -ENOENT && !o->is_local;
	} else {
		t->files++;
		t->rdma_bytes += o->rdma_bytes;
		t->http_bytes += o->http_bytes;
		t->http_files += o->http_bytes > 0;
		t->copied_bytes += o->copied_bytes;
		t->kept_bytes += o->kept_bytes;
		if (o->http_bytes && !*t->reason) {
			memcpy(t->reason, o->res.reason, sizeof t->reason);
			memcpy(t->address, o->res.declined_address, sizeof t->address);
		}
	}
	pthread_mutex_unlock(&t->lock);
}

void
tally_report(const struct cmd *c, const struct tally *t, const char *op)
{
	uint64_t bytes = t->rdma_bytes + t->http_bytes;
	double s = now_s() - t->start_s;
	char all[32], rdma[32], http[32], rate[48];

	if (c->json) {
		printf("{\"op\":\"%s\",\"files\":%llu,\"failed\":%llu,\"not_found\":%llu,\"rdma_bytes\":%llu,"
		       "\"http_bytes\":%llu,",
		       op, (unsigned long long)t->files, (unsigned long long)t->failed,
		       (unsigned long long)t->not_found, (unsigned long long)t->rdma_bytes,
		       (unsigned long long)t->http_bytes);
		if (t->copied_bytes)
			printf("\"copied_bytes\":%llu,", (unsigned long long)t->copied_bytes);
		if (t->kept_bytes)
			printf("\"kept_bytes\":%llu,", (unsigned long long)t->kept_bytes);
		if (!strcmp(op, "sync"))
			printf("\"same\":%llu,\"deleted\":%llu,", (unsigned long long)t->same,
			       (unsigned long long)t->deleted);
		if (*t->reason)
			json_text(stdout, "reason", t->reason);
		printf("\"seconds\":%.6f}\n", s);
		return;
	}
	if (c->quiet)
		return;
	printf("%s: %llu files, %s in %.2f s, %s: %s by RDMA, %s by HTTP", op, (unsigned long long)t->files,
	       size_text(bytes, all), s, rate_text(bytes, s, rate), size_text(t->rdma_bytes, rdma),
	       size_text(t->http_bytes, http));
	if (t->copied_bytes)
		printf(", %s by the server itself", size_text(t->copied_bytes, all));
	if (t->kept_bytes)
		printf("; %s were there from an earlier run", size_text(t->kept_bytes, all));
	if (!strcmp(op, "sync"))
		printf("; %llu were the same, %llu deleted", (unsigned long long)t->same,
		       (unsigned long long)t->deleted);
	if (t->skipped)
		printf("; %llu links and special files left out", (unsigned long long)t->skipped);
	if (t->failed)
		printf("; %llu failed", (unsigned long long)t->failed);
	if (t->http_bytes) {
		printf("; %llu files not by RDMA: ", (unsigned long long)t->http_files);
		decline_print(stdout, t->reason, t->address);
	}
	putchar('\n');
}

int
tally_exit(const struct cmd *c, const struct tally *t)
{
	if (t->failed)
		return t->failed == t->not_found ? EXIT_NOT_FOUND : EXIT_FAILED;
	return c->require_rdma && t->http_bytes ? EXIT_NOT_RDMA : EXIT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry trace: the requests of a gantryd as they end, with its other events (expiry, control calls).  It asks for new
 * events ten times a second, and at once while there are many.
 */
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/words.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIVE "/control/trace/live"
#define PAUSE_NS 100000000
#define MANY 200 /* events of one answer after which the next is asked for at once */

static volatile sig_atomic_t ended;
/* Contents of answers, which are printed where they are read (admin_tell()). */
static char id[32];
static int shown, latest;

static void
on_end(int sig)
{
	ended = 1;
}

static void
take_id(const struct cmd *c, const json_t *o)
{
	snprintf(id, sizeof id, "%s", json_text_at(o, "id", ""));
}

static void
say_nothing(const struct cmd *c, const json_t *o)
{
}

/* Prints "bucket/key", or another subject. */
static void
print_subject(const json_t *e)
{
	const char *bucket = json_text_at(e, "bucket", NULL);
	const char *key = json_text_at(e, "key", json_text_at(e, "key_url", NULL));
	const char *subject = json_text_at(e, "subject", NULL);

	if (bucket)
		printf(" %s%s%s", bucket, key ? "/" : "", key ? key : "");
	else if (subject)
		printf(" %s", subject);
}

static void
print_named(const json_t *e, const char *name)
{
	const char *text = json_text_at(e, name, NULL);

	if (text)
		printf(" %s=%s", name, text);
}

static void
print_event(const json_t *e)
{
	char size[32], took[32];
	/* Time of the day of an RFC 3339 text, with milliseconds. */
	const char *when = json_text_at(e, "time", ""), *day = strchr(when, 'T');

	printf("%.12sZ", day ? day + 1 : when);
	if (json_object_get(e, "status"))
		printf(" %3d", (int)json_at(e, "status"));
	else
		printf("   -");
	printf(" %-20s", json_text_at(e, "op", "?"));
	if (json_object_get(e, "us"))
		printf(" %8s %10s", seconds_text(json_at(e, "us") / 1e6, took),
		       size_text((uint64_t)(json_at(e, "rdma_bytes") + json_at(e, "http_bytes")), size));
	print_subject(e);
	print_named(e, "peer");
	print_named(e, "access_key");
	print_named(e, "claimed_access_key");
	print_named(e, "fault");
	print_named(e, "declined");
	print_named(e, "request");
	putchar('\n');
}

static void
print_events(const struct cmd *c, const json_t *o)
{
	const json_t *events = json_object_get(o, "events");
	int lost = (int)json_at(o, "lost");

	latest = (int)json_array_size(events);
	for (int i = 0; i < latest && (c->count == 0 || shown < c->count); i++, shown++) {
		const json_t *e = json_array_get(events, (size_t)i);

		if (c->json) {
			json_dumpf(e, stdout, JSON_COMPACT);
			putchar('\n');
		} else {
			print_event(e);
		}
	}
	if (lost && c->json)
		printf("{\"lost\":%d}\n", lost);
	else if (lost)
		printf("%d lines were lost here: they came faster than they were read\n", lost);
	fflush(stdout);
}

/* "200ms", "1.5s", "80us", "2" (seconds), as microseconds. */
static uint64_t
slow_us(const char *text)
{
	static const struct {
		const char *name;
		double us;
	} units[] = { { "", 1e6 }, { "s", 1e6 }, { "ms", 1e3 }, { "us", 1 } };
	char *end;
	double n = strtod(text, &end);

	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (end != text && strcmp(end, units[i].name) == 0 && n * units[i].us >= 1 &&
		    n * units[i].us <= 1e12)
			return (uint64_t)(n * units[i].us);
	}
	words_bad("trace", "--slow wants a time: 80us, 200ms, 1.5s", text);
}

static char *
filter_body(const struct cmd *c)
{
	char slow[32];
	json_t *o;
	char *body;

	if (c->trace.slow)
		snprintf(slow, sizeof slow, "%llu", (unsigned long long)slow_us(c->trace.slow));
	/* A member without a value is left out. */
	o = json_pack("{s:s*, s:s*, s:s*, s:s*, s:s*, s:s*}", "slow_us", c->trace.slow ? slow : NULL,
		      "bucket", c->key.bucket, "access_key", c->access_key, "client", c->trace.client, "op",
		      c->trace.op, "errors", c->trace.errors ? "true" : NULL);
	body = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return body;
}

int
cmd_trace(struct cmd *c)
{
	const char *name = admin_name(c->admin);
	struct sigaction end = { .sa_handler = on_end };
	char *body = filter_body(c), read[64], over[80];
	int rc = EXIT_FAILED;

	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	if (body)
		rc = admin_tell(c, name, "trace", LIVE, body, take_id);
	free(body);
	if (rc != EXIT_OK)
		return rc;
	snprintf(read, sizeof read, "{\"id\":\"%s\"}", id);
	snprintf(over, sizeof over, "{\"id\":\"%s\",\"end\":\"true\"}", id);
	while (!ended && !ferror(stdout) && (c->count == 0 || shown < c->count)) {
		rc = admin_tell(c, name, "trace", LIVE, read, print_events);
		if (rc != EXIT_OK)
			return rc;
		if (latest < MANY)
			nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
	}
	return admin_tell(c, name, "trace", LIVE, over, say_nothing);
}

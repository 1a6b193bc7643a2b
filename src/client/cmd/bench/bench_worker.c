/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of gantry bench --hosts: its command line, its credentials, and its wait for the others; see bench_hosts.c. Main thread. */
#include "client/cmd/bench/bench_hosts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends a word for a shell. */
static void
add_word(FILE *f, const char *word)
{
	fputs(" '", f);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", f);
		else
			fputc(*word, f);
	}
	fputc('\'', f);
}

static void
add_option(FILE *f, const char *name, const char *value)
{
	if (!value)
		return;
	fprintf(f, " %s", name);
	add_word(f, value);
}

static void __attribute__((format(printf, 3, 4))) add_number(FILE *f, const char *name, const char *fmt, ...)
{
	char text[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	add_option(f, name, text);
}

char *
bench_worker_command(const struct bench *b, int i, int hosts, const char *url)
{
	const struct cmd *c = b->c;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fputs("gantry bench --worker", f);
	add_option(f, "--sizes", c->sizes);
	add_option(f, "--concurrency", c->at_once);
	add_option(f, "--mix", c->mix);
	add_option(f, "--way", c->ways);
	add_option(f, "--endpoints", c->endpoints);
	add_option(f, "--device", c->device);
	add_option(f, "--dc-key", c->dc_key);
	add_option(f, "--config", c->config);
	add_option(f, "--region", c->region);
	add_option(f, "--ca", c->ca_file);
	if (!c->count)
		add_number(f, "--time", "%.6g", c->time_s);
	add_number(f, "--warm-up", "%.6g", c->warm_up_s);
	add_number(f, "--rounds", "%d", c->rounds);
	add_number(f, "--seed", "%llu", (unsigned long long)((b->seed + (unsigned)i) & UINT32_MAX));
	if (c->objects)
		add_number(f, "--objects", "%llu", (unsigned long long)c->objects);
	if (c->rate > 0)
		add_number(f, "--rate", "%.6g", c->rate / hosts > .001 ? c->rate / hosts : .001);
	if (c->count)
		add_number(f, "--count", "%d", c->count);
	if (c->timeout_ms)
		add_number(f, "--timeout", "%.3f", c->timeout_ms / 1000.);
	if (c->transport)
		add_option(f, "--transport", c->transport == GANTRY_TRANSPORT_RC ? "rc" : "dc");
	if (c->traffic_class)
		add_number(f, "--traffic-class", "%d",
			   c->traffic_class == GANTRY_TRAFFIC_CLASS_0 ? 0 : c->traffic_class);
	if (c->service_level)
		add_number(f, "--service-level", "%d", c->service_level);
	if (c->path_mtu)
		add_number(f, "--path-mtu", "%d", c->path_mtu);
	if (c->pkey_index)
		add_number(f, "--pkey-index", "%d", c->pkey_index);
	fputs(c->no_rdma ? " --no-rdma" : "", f);
	fputs(c->scality ? " --scality" : "", f);
	fputs(c->verify ? " --verify" : "", f);
	fputs(c->checksum ? " --checksum" : "", f);
	add_word(f, url);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- in the worker ---- */

int
bench_worker_begin(void)
{
	static const char *const names[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
					     "AWS_SESSION_TOKEN" };
	char line[16384];
	json_t *o = fgets(line, sizeof line, stdin) ? json_loads(line, 0, NULL) : NULL;

	if (!json_is_object(o)) {
		fprintf(stderr, "gantry: bench: --worker is for `gantry bench --hosts` alone\n");
		json_decref(o);
		return EXIT_USAGE;
	}
	for (int i = 0; i < 3; i++) {
		const char *value = json_string_value(json_object_get(o, names[i]));

		/* Keys of this host's environment are not those of the measurement. */
		if (value)
			setenv(names[i], value, 1);
		else
			unsetenv(names[i]);
	}
	json_decref(o);
	explicit_bzero(line, sizeof line);
	return EXIT_OK;
}

int
bench_worker_wait(void)
{
	char line[16];

	printf("{\"op\":\"bench-wait\"}\n");
	fflush(stdout);
	return fgets(line, sizeof line, stdin) && strcmp(line, "go\n") == 0 ? 0 : -EINTR;
}

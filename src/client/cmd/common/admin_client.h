/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of status, top and doctor to a running gantryd through its admin listener. Main thread.
 *
 * An admin listener is named by a URL (http://HOST:PORT) or by the path of its Unix socket.
 */
#ifndef GANTRY_CLIENT_CMD_ADMIN_CLIENT_H
#define GANTRY_CLIENT_CMD_ADMIN_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cmd;

/* Returns name, or else GANTRY_ADMIN of the environment, or else the usual socket if it exists, or else the
 * usual port. */
const char *admin_name(const char *name);

struct answer {
	int status; /* of HTTP */
	char *text; /* terminated; free() */
	size_t len;
};

/* Gets a page. 0; or -errno with a sentence in err (no listener, no answer within 5 s, an invalid answer). */
int admin_get(const char *name, const char *path, struct answer *ret, char *err, size_t err_len);
/* Makes a control call with that JSON body ("": none), in the same way; it may take half a minute. */
int admin_post(const char *name, const char *path, const char *body, struct answer *ret, char *err,
	       size_t err_len);
/* Gets a page that is JSON; json_decref() it. /healthz and similar pages may have a status other than 200. */
int admin_json(const char *name, const char *path, json_t **ret, int *ret_status, char *err, size_t err_len);
/* Makes a control call for `gantry COMMAND` and prints the JSON of a 200 by print(), or an error message on
 * stderr. Returns the exit status: EXIT_NOT_FOUND for a 404. */
int admin_tell(const struct cmd *c, const char *name, const char *command, const char *path, const char *body,
	       void (*print)(const struct cmd *c, const json_t *o));

/* ---- numbers out of /metrics, whatever JSON has to offer ---- */

/* Returns the number "a.b.c" of an object, 0 where there is none. */
double json_at(const json_t *o, const char *path);
const char *json_text_at(const json_t *o, const char *path, const char *otherwise);

struct metric {
	const char *name, *labels; /* of the sample's text; labels without braces, "" for none */
	double value;
};

struct sample {
	double at_s;
	char *text;
	struct metric *m; /* in the order of the text */
	int nr;
};

/* Parses a text and takes it over. 0, -ENOMEM, or -EINVAL (not Prometheus text; the line's number in
 * *ret_line). */
int sample_parse(char *text, struct sample *ret, int *ret_line);
void sample_free(struct sample *s);

/* Sums every sample of that name whose labels have all the pairs of want: "operation=\"GetObject\"",
 * several separated by commas, "" for all. */
double sample_sum(const struct sample *s, const char *name, const char *want);
/* Copies the value of a label; false when the metric does not have it. */
bool metric_label(const struct metric *m, const char *label, char *out, size_t cap);

/* Returns the p-quantile (0 to 1) in seconds of the values added to a histogram between two samples (before
 * may be NULL: since the start), linear within a bucket; NAN without values. The bucket without an end counts
 * as its beginning. */
double sample_quantile(const struct sample *now, const struct sample *before, const char *histogram,
		       const char *want, double p);

/* Prints "1.2 ms", "87 us", "-" for NAN. */
const char *seconds_text(double s, char out[32]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin_client - requests of the commands status, top and doctor to a running gantryd, through its admin
 * listener. Main thread. An admin listener is named by a URL (http://HOST:PORT) or by the path of its Unix
 * socket.
 */
#ifndef GANTRY_CLIENT_CMD_ADMIN_CLIENT_H
#define GANTRY_CLIENT_CMD_ADMIN_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cmd;

/* Returns the name of the admin listener: `name`; if that is NULL, GANTRY_ADMIN of the environment; if that
 * is not set, the default socket, or the default port if the socket does not exist. */
const char *admin_name(const char *name);

struct answer {
	int status; /* HTTP status of the answer */
	char *text; /* body of the answer, terminated; to be freed with free() */
	size_t len;
};

/* Gets a page. Returns 0, or -errno with a sentence in err (no listener, no answer within 5 s, an invalid
 * answer). */
int admin_get(const char *name, const char *path, struct answer *ret, char *err, size_t err_len);
/* Makes a control call with a JSON body ("": no body); results are those of admin_get(). The call may take
 * half a minute. */
int admin_post(const char *name, const char *path, const char *body, struct answer *ret, char *err,
	       size_t err_len);
/* Gets a page that is JSON. The caller releases it with json_decref(). /healthz and similar pages may have a
 * status other than 200. */
int admin_json(const char *name, const char *path, json_t **ret, int *ret_status, char *err, size_t err_len);
/* Makes a control call for `gantry COMMAND`. After a 200 it prints the JSON with print(), otherwise an error
 * message on stderr. Returns the exit status of the program, which is EXIT_NOT_FOUND after a 404. */
int admin_tell(const struct cmd *c, const char *name, const char *command, const char *path, const char *body,
	       void (*print)(const struct cmd *c, const json_t *o));

/* ---- numbers out of /metrics, whatever JSON has to offer ---- */

/* Returns the number at a path "a.b.c" in an object; 0: there is none. */
double json_at(const json_t *o, const char *path);
const char *json_text_at(const json_t *o, const char *path, const char *otherwise);

struct metric {
	/* name and labels of the metric, in the text of the sample; labels without braces, "": none */
	const char *name, *labels;
	double value;
};

struct sample {
	double at_s;
	char *text;
	struct metric *m; /* metrics in the order of the text */
	int nr;
};

/* Parses a text of metrics, and takes it over. Returns 0, -ENOMEM, or -EINVAL if it is not Prometheus text,
 * with the number of the line in *ret_line. */
int sample_parse(char *text, struct sample *ret, int *ret_line);
void sample_free(struct sample *s);

/* Returns the sum of all metrics with this name whose labels include all pairs of `want`:
 * "operation=\"GetObject\"", several separated by commas, "": all. */
double sample_sum(const struct sample *s, const char *name, const char *want);
/* Copies the value of a label. Returns false if the metric does not have the label. */
bool metric_label(const struct metric *m, const char *label, char *out, size_t cap);

/* Returns the p-quantile (0 to 1), in seconds, of the values that a histogram got between two samples, with
 * linear interpolation in a bucket. before NULL: all values since the start. Returns NAN if there are no
 * values. Values in the bucket without an upper bound count as its lower bound. */
double sample_quantile(const struct sample *now, const struct sample *before, const char *histogram,
		       const char *want, double p);

/* Writes a duration as text: "1.2 ms", "87 us"; "-" for NAN. */
const char *seconds_text(double s, char out[32]);

#endif

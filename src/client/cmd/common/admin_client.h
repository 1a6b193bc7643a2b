/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin_client - requests of commands such as status, top and doctor to the admin listener of a running
 * gantryd. The name of an admin listener is a URL (http://HOST:PORT or https://HOST:PORT) or the path of its Unix socket. All
 * functions are called by the main thread.
 */
#ifndef GANTRY_CLIENT_CMD_ADMIN_CLIENT_H
#define GANTRY_CLIENT_CMD_ADMIN_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cmd;

/* Returns the name of the admin listener: the argument `name`; if `name` is NULL, the first of these that
 * exists: the environment variable GANTRY_ADMIN, the default Unix socket, the default port. */
const char *admin_name(const char *name);
/* Returns true if a name is the path of a socket; false: a URL. */
bool admin_is_socket(const char *name);

/* Sets how the functions below ask over TCP. ca_file: certificates (PEM) for https; NULL: those of AWS_CA_BUNDLE,
 * or of the system. token_file: file whose first line is the bearer token; NULL: that of
 * GANTRY_ADMIN_TOKEN_FILE, or no token. Ends the program with an error if a file cannot be read. */
void admin_secure(const char *ca_file, const char *token_file);

struct answer {
	int status; /* HTTP status of the answer */
	char *text; /* body of the answer, with a NUL at its end; the caller frees it with free() */
	size_t len;
};

/* Gets a page of an admin listener. Returns 0, also if its HTTP status is an error; or -errno with a sentence
 * in err: there is no listener, no answer within 5 s, or an invalid answer. */
int admin_get(const char *name, const char *path, struct answer *ret, char *err, size_t err_len);
/* Makes a control call with a JSON body; body "": none. The call may take half a minute. Returns 0, also if
 * its HTTP status is an error; or -errno with a sentence in err. */
int admin_post(const char *name, const char *path, const char *body, struct answer *ret, char *err,
	       size_t err_len);
/* Gets a page that is JSON, which the caller releases with json_decref(). *ret_status: HTTP status, which can
 * be another than 200 for pages such as /healthz. Returns 0, or -errno with a sentence in err. */
int admin_json(const char *name, const char *path, json_t **ret, int *ret_status, char *err, size_t err_len);
/* Makes a control call for the command `gantry COMMAND`. After status 200 prints the JSON answer with
 * print(), otherwise an error message on stderr. Returns the exit status of the program; EXIT_NOT_FOUND after
 * status 404. */
int admin_tell(const struct cmd *c, const char *name, const char *command, const char *path, const char *body,
	       void (*print)(const struct cmd *c, const json_t *o));

/* ---- numbers out of /metrics, whatever JSON has to offer ---- */

/* Returns the number at a path such as "a.b.c" in a JSON object; 0: there is no number. */
double json_at(const json_t *o, const char *path);
const char *json_text_at(const json_t *o, const char *path, const char *otherwise);

struct metric {
	/* name and labels of the metric, which point into the text of the sample; labels: without braces, "":
	 * none */
	const char *name, *labels;
	double value;
};

struct sample {
	double at_s;
	char *text;
	struct metric *m; /* the metrics, in the order of the text */
	int nr;
};

/* Parses a text of metrics, which *ret then owns. Returns 0; -ENOMEM; or -EINVAL if it is not Prometheus
 * text, with the number of the invalid line in *ret_line. */
int sample_parse(char *text, struct sample *ret, int *ret_line);
void sample_free(struct sample *s);

/* Returns the sum of all metrics with this name whose labels include all pairs in want. want: pairs such as
 * "operation=\"GetObject\"", separated by commas; "": no condition. */
double sample_sum(const struct sample *s, const char *name, const char *want);
/* Copies the value of a label to out. Returns false if the metric does not have the label. */
bool metric_label(const struct metric *m, const char *label, char *out, size_t cap);

/* Returns the p-quantile in seconds (p: 0 to 1) of the values that a histogram got between two samples, by
 * linear interpolation within a bucket. want: condition on its labels, as for sample_sum(). before NULL: of
 * all values since the start of the daemon. Returns NAN if there are no values. A value in the bucket without
 * an upper bound counts as the lower bound of this bucket. */
double sample_quantile(const struct sample *now, const struct sample *before, const char *histogram,
		       const char *want, double p);

/* Writes a duration, given in seconds, as text such as "1.2 ms" or "87 us"; "-" for NAN. Returns out. */
const char *seconds_text(double s, char out[32]);

#endif

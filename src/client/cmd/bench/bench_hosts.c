/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry bench --hosts: starts a worker on each host by ssh, and adds up what the workers measure.
 *
 *     this process                          ssh HOST gantry bench --worker ... URL
 *       {"access_key": ...}  --> stdin      credentials, which no list of processes shows
 *                            <-- stdout     {"op":"bench-wait"}   before each round
 *       go                   --> stdin      when the workers of all hosts wait
 *                            <-- stdout     the row, with the counts of its histograms
 *
 * A host that fails is named, and the others continue. A worker whose standard input ends removes its objects.
 */
#include "client/cmd/bench/bench_hosts.h"

#include "client/cmd/bench/bench_meter.h"
#include "client/cmd/bench/bench_wire.h"
#include "client/cmd/common/words.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOSTS_MAX 64
#define LINE_MAX ((size_t)64 << 20) /* longest line of a worker in bytes */
#define ROWS_MAX (BENCH_LIST_MAX * BENCH_LIST_MAX * BENCH_LIST_MAX * BENCH_WAY_NR)

/* An output of a worker, of which whole lines are taken. */
struct pipe {
	int fd; /* -1: at its end */
	char *text;
	size_t len, cap;
};

struct host {
	const char *name;
	pid_t pid;
	int in; /* standard input of the worker; -1: closed */
	struct pipe out, err;
	bool waits;     /* the worker waits for its next round */
	bool has_ended; /* the worker has reported its end */
	bool failed;
	json_t *rows;  /* rows that are not added up yet */
	char why[512]; /* last line of standard error */
};

struct hosts {
	struct bench *b;
	struct host host[HOSTS_MAX];
	int nr;
	int ways; /* number of ways of the current row that are complete */
	struct bench_sum *way[BENCH_WAY_NR];
	struct bench_verdict *v;
};

/* ---- start ---- */

/* Splits the command of --ssh at its blanks, and appends host and command. The words point into `ssh`. */
static void
ssh_words(char *ssh, const char *host, char *command, char *words[32])
{
	int nr = 0;

	for (char *w = strtok(ssh, " "); w && nr < 28; w = strtok(NULL, " "))
		words[nr++] = w;
	words[nr++] = (char *)(uintptr_t)host;
	words[nr++] = command;
	words[nr] = NULL;
}

static _Noreturn void
become_ssh(char **words, const int in[2], const int out[2], const int err[2])
{
	if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
		_exit(127);
	execvp(words[0], words);
	dprintf(2, "%s: %s\n", words[0], strerror(errno));
	_exit(127);
}

static int
start_host(struct hosts *h, int i, const char *url)
{
	struct host *host = &h->host[i];
	const char *ssh = h->b->c->ssh ? h->b->c->ssh : "ssh -o BatchMode=yes -o ConnectTimeout=10";
	char *own = strdup(ssh), *command = bench_worker_command(h->b, i, h->nr, url), *words[32];
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 }, e = 0;

	if (!own || !command || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
	    pipe2(err, O_CLOEXEC) < 0)
		e = own && command ? -errno : -ENOMEM;
	if (e == 0) {
		ssh_words(own, host->name, command, words);
		host->pid = fork();
		if (host->pid == 0)
			become_ssh(words, in, out, err);
		e = host->pid < 0 ? -errno : 0;
	}
	close(in[0]);
	close(out[1]);
	close(err[1]);
	host->in = in[1];
	host->out.fd = out[0];
	host->err.fd = err[0];
	host->rows = json_array();
	free(own);
	free(command);
	return e;
}

static void
close_in(struct host *host)
{
	if (host->in >= 0)
		close(host->in);
	host->in = -1;
}

static void host_failed(struct host *host, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
host_failed(struct host *host, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (host->failed)
		return;
	host->failed = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	bench_meter_hide();
	fprintf(stderr, "gantry: bench: host %s failed: %s%s%s\n", host->name, text, *host->why ? ": " : "",
		host->why);
	bench_meter_show();
	close_in(host);
}

/* Writes to a worker. A worker that no longer reads has ended, or is about to: reap() reports the exit status
 * and the last line of standard error, which name the cause. */
static void
say(struct host *host, const char *text)
{
	if (host->in < 0 || write(host->in, text, strlen(text)) >= 0)
		return;
	if (errno != EPIPE)
		host_failed(host, "cannot be written to: %s", strerror(errno));
	close_in(host);
}

/* Sends the credentials: those of the options, or of the environment. */
static void
send_keys(const struct cmd *c, struct host *host)
{
	const char *key = c->access_key, *secret = c->secret, *token = NULL;
	json_t *o = json_object();
	char *line;

	if (!key && !c->scality) {
		key = getenv("AWS_ACCESS_KEY_ID");
		secret = secret ? secret : getenv("AWS_SECRET_ACCESS_KEY");
		token = getenv("AWS_SESSION_TOKEN");
	}
	if (key)
		json_object_set_new(o, "AWS_ACCESS_KEY_ID", json_pack("s", key));
	if (secret)
		json_object_set_new(o, "AWS_SECRET_ACCESS_KEY", json_pack("s", secret));
	if (token)
		json_object_set_new(o, "AWS_SESSION_TOKEN", json_pack("s", token));
	line = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (line) {
		say(host, line);
		say(host, "\n");
	}
	free(line);
}

/* ---- the lines of a worker ---- */

static void
add_total(struct bench_total *t, const json_t *o)
{
	static const char *const names[BENCH_OP_NR] = { "puts", "gets", "heads", "deletes" };
	const json_t *put = json_object_get(o, "put_bytes"), *get = json_object_get(o, "get_bytes");

	for (int i = 0; i < BENCH_OP_NR; i++)
		t->nr[i] += (uint64_t)json_integer_value(json_object_get(o, names[i]));
	for (int i = 0; i < BENCH_WAY_NR; i++) {
		t->put_bytes[i] += (uint64_t)json_integer_value(json_object_get(put, bench_way_name[i]));
		t->get_bytes[i] += (uint64_t)json_integer_value(json_object_get(get, bench_way_name[i]));
	}
}

static void
take_line(struct hosts *h, struct host *host, const char *line)
{
	json_t *o = json_loads(line, 0, NULL);
	const char *op = json_string_value(json_object_get(o, "op"));

	if (!op)
		host_failed(host, "it wrote another line than `gantry bench` does: %.100s", line);
	else if (strcmp(op, "bench-wait") == 0)
		host->waits = true;
	else if (strcmp(op, "bench") == 0 && json_is_false(json_object_get(o, "ok")))
		/* The worker could not begin. */
		host_failed(host, "%s", json_string_value(json_object_get(o, "message")) ?: "?");
	else if (strcmp(op, "bench") == 0 && json_array_size(host->rows) < ROWS_MAX)
		json_array_append(host->rows, o);
	else if (strcmp(op, "bench-end") == 0) {
		host->has_ended = true;
		h->b->left += (uint64_t)json_integer_value(json_object_get(o, "not_removed"));
		add_total(&h->b->total, o);
	}
	json_decref(o);
}

/* Prints a line of a worker's standard error. */
static void
pass_on(struct host *host, const char *line)
{
	char text[600];

	snprintf(text, sizeof text, "%s", line);
	snprintf(host->why, sizeof host->why, "%.500s", line);
	bench_meter_hide();
	fprintf(stderr, "%s: %s\n", host->name, name_shown(stderr, text, text, sizeof text));
	bench_meter_show();
}

/* Reads from a worker. Returns false at the end. */
static bool
read_some(struct hosts *h, struct host *host, struct pipe *p)
{
	ssize_t n;
	char *end;

	if (p->cap - p->len < 65536) {
		char *more = p->cap < LINE_MAX ? realloc(p->text, p->cap * 2 + 131072) : NULL;

		if (!more) {
			host_failed(host, "a line of it is too long");
			return false;
		}
		p->cap = p->cap * 2 + 131072;
		p->text = more;
	}
	n = read(p->fd, p->text + p->len, p->cap - p->len - 1);
	if (n <= 0)
		return n < 0 && errno == EINTR;
	p->len += (size_t)n;
	p->text[p->len] = 0;
	for (char *at = p->text; (end = memchr(at, '\n', p->len - (size_t)(at - p->text))); at = p->text) {
		*end = 0;
		if (p == &host->out)
			take_line(h, host, at);
		else
			pass_on(host, at);
		p->len -= (size_t)(end + 1 - p->text);
		memmove(p->text, end + 1, p->len);
	}
	return true;
}

/* ---- rows ---- */

/* Returns true if the worker measures, and can be asked to begin a round. */
static bool
is_alive(const struct host *host)
{
	return !host->failed && !host->has_ended && host->in >= 0;
}

/* Returns true if every host that works waits for its next round, and one does. */
static bool
all_wait(const struct hosts *h)
{
	bool any = false;

	for (int i = 0; i < h->nr; i++) {
		if (is_alive(&h->host[i]) && !h->host[i].waits)
			return false;
		any |= is_alive(&h->host[i]);
	}
	return any;
}

/* Returns true if every host that has not failed has a row to add. */
static bool
all_have_row(const struct hosts *h)
{
	bool any = false;

	for (int i = 0; i < h->nr; i++) {
		if (h->host[i].failed)
			continue;
		if (json_array_size(h->host[i].rows) == 0)
			return false;
		any = true;
	}
	return any;
}

static void
end_row(struct hosts *h)
{
	struct bench *b = h->b;

	if (b->plan.way_nr > 1 && h->way[BENCH_RDMA] && h->way[BENCH_HTTP])
		bench_report_ratio(b, &h->way[BENCH_RDMA]->row, &h->way[BENCH_HTTP]->row);
	for (int i = 0; i < BENCH_WAY_NR; i++) {
		if (h->way[i])
			bench_sum_fini(h->way[i]);
		free(h->way[i]);
		h->way[i] = NULL;
	}
	h->ways = 0;
}

/* Adds up the next row of all hosts, and reports it. */
static void
take_row(struct hosts *h)
{
	struct bench_sum *sum = calloc(1, sizeof *sum);
	bool has = false;

	for (int i = 0; sum && i < h->nr; i++) {
		struct host *host = &h->host[i];

		if (host->failed)
			continue;
		has = true;
		if (!bench_sum_add(sum, json_array_get(host->rows, 0), h->b->endpoints)) {
			host_failed(
				host,
				"a row of it makes no sense, or is another one than that of the other hosts");
			has = false;
			break;
		}
		json_array_remove(host->rows, 0);
	}
	if (!has) {
		/* The sum has a part of what it should have. */
		h->v->e = -EPROTO;
		if (sum)
			bench_sum_fini(sum);
		free(sum);
		return;
	}
	bench_meter_hide();
	bench_report_row(h->b, &sum->row);
	bench_meter_show();
	bench_judge(h->v, &sum->row);
	if (h->way[sum->row.way])
		end_row(h);
	h->way[sum->row.way] = sum;
	if (++h->ways < h->b->plan.way_nr)
		return;
	end_row(h);
	bench_meter_row(NULL);
}

static void
go(struct hosts *h)
{
	for (int i = 0; i < h->nr; i++) {
		h->host[i].waits = false;
		if (is_alive(&h->host[i]))
			say(&h->host[i], "go\n");
	}
	bench_meter_round();
}

/* ---- all of it ---- */

/* Waits for output of the hosts. Returns false when all have ended. */
static bool
turn(struct hosts *h)
{
	struct pollfd p[2 * HOSTS_MAX];
	struct pipe *of[2 * HOSTS_MAX];
	int host[2 * HOSTS_MAX], nr = 0;

	for (int i = 0; i < h->nr; i++) {
		struct pipe *both[2] = { &h->host[i].out, &h->host[i].err };

		for (int k = 0; k < 2; k++) {
			if (both[k]->fd < 0)
				continue;
			of[nr] = both[k];
			host[nr] = i;
			p[nr++] = (struct pollfd){ .fd = both[k]->fd, .events = POLLIN };
		}
	}
	if (nr == 0)
		return false;
	if (poll(p, (nfds_t)nr, -1) < 0)
		return true;
	for (int i = 0; i < nr; i++) {
		if (p[i].revents && !read_some(h, &h->host[host[i]], of[i])) {
			close(of[i]->fd);
			of[i]->fd = -1;
		}
	}
	return true;
}

/* Takes the exit status of a worker whose outputs have ended. */
static void
reap(struct host *host)
{
	int status;

	if (host->pid <= 0 || host->out.fd >= 0 || host->err.fd >= 0)
		return;
	if (waitpid(host->pid, &status, 0) != host->pid)
		status = -1;
	host->pid = 0;
	if (WIFSIGNALED(status))
		host_failed(host, "signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) != EXIT_OK || !host->has_ended)
		host_failed(host, "exit status %d", WEXITSTATUS(status));
}

static int
take_hosts(struct hosts *h, char *list)
{
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		/* A name that begins with '-' would be an option of ssh. */
		if (h->nr == HOSTS_MAX || *name == '-')
			return -EINVAL;
		h->host[h->nr++] = (struct host){ .name = name, .in = -1, .out.fd = -1, .err.fd = -1 };
	}
	return h->nr ? 0 : -EINVAL;
}

static void
run(struct hosts *h, const char *url)
{
	bool interrupted = false;

	bench_meter_row(NULL);
	for (int i = 0; i < h->nr; i++) {
		int e = start_host(h, i, url);

		if (e < 0)
			host_failed(&h->host[i], "cannot be started: %s", strerror(-e));
		else
			send_keys(h->b->c, &h->host[i]);
	}
	while (turn(h)) {
		for (int i = 0; i < h->nr; i++)
			reap(&h->host[i]);
		while (all_have_row(h))
			take_row(h);
		if (all_wait(h))
			go(h);
		/* Workers whose input ends remove their objects. */
		for (int i = 0; bench_ended() && !interrupted && i < h->nr; i++)
			close_in(&h->host[i]);
		interrupted = bench_ended();
	}
	for (int i = 0; i < h->nr; i++)
		reap(&h->host[i]);
	end_row(h);
}

int
bench_hosts(struct bench *b, const char *url, struct bench_verdict *v)
{
	struct hosts *h = calloc(1, sizeof *h);
	char *list = strdup(b->c->hosts);
	int rc = EXIT_OK;

	if (!h || !list) {
		free(h);
		free(list);
		return EXIT_FAILED;
	}
	h->b = b;
	h->v = v;
	if (take_hosts(h, list) < 0)
		words_bad("bench", "--hosts wants 1 to 64 names of hosts, with commas between", b->c->hosts);
	run(h, url);
	for (int i = 0; i < h->nr; i++) {
		rc = h->host[i].failed ? EXIT_FAILED : rc;
		json_decref(h->host[i].rows);
		free(h->host[i].out.text);
		free(h->host[i].err.text);
		close_in(&h->host[i]);
	}
	free(h);
	free(list);
	return rc;
}

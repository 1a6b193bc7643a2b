/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry top: a live view in the terminal, from two samples of /metrics at a time and the state of cores,
 * rails and disks.  Where standard output is no terminal it prints one block a sample.
 */
#include "client/cmd/admin/copies.h"
#include "client/cmd/admin/rcline.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/disk_text.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define OPS_MAX 64

static volatile sig_atomic_t ended;

static void
on_end(int sig)
{
	ended = 1;
}

/* ---- the screen ---- */

static struct termios saved;
static bool is_screen;

static void
screen_begin(void)
{
	struct termios raw;

	is_screen = isatty(STDOUT_FILENO);
	if (!is_screen)
		return;
	/* Another buffer, no cursor; keys come at once and unseen. */
	fputs("\033[?1049h\033[?25l", stdout);
	if (tcgetattr(STDIN_FILENO, &saved) == 0) {
		raw = saved;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
}

static void
screen_end(void)
{
	if (!is_screen)
		return;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

/* What is printed goes here first: lines are cut to the screen's width and height. */
struct view {
	char *text;
	size_t len;
	FILE *out;
};

static void
show(struct view *v)
{
	struct winsize w = { .ws_row = 24, .ws_col = 80 };
	int row = 0;

	fclose(v->out);
	if (!is_screen) {
		fputs(v->text, stdout);
		fflush(stdout);
		free(v->text);
		return;
	}
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
	fputs("\033[H", stdout);
	for (char *line = v->text; line && *line && row < w.ws_row; row++) {
		char *next = strchr(line, '\n');

		if (next)
			*next++ = 0;
		printf("%s%.*s\033[K", row ? "\n" : "", w.ws_col, line);
		line = next;
	}
	fputs("\033[J", stdout);
	fflush(stdout);
	free(v->text);
}

/* Waits; false: the user had enough. */
static bool
wait_or_quit(double seconds)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	double until = now_s() + seconds, left;
	char key;

	while (!ended && (left = until - now_s()) > 0) {
		if (poll(&p, is_screen ? 1 : 0, (int)ceil(left * 1000)) < 0 && errno != EINTR)
			return false;
		if (is_screen && (p.revents & (POLLHUP | POLLERR)))
			return false;
		if (is_screen && (p.revents & POLLIN) &&
		    (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q'))
			return false;
	}
	return !ended;
}

/* ---- what is shown ---- */

struct both {
	const struct sample *now, *before;
	double seconds;
};

static double
rate(const struct both *b, const char *name, const char *want)
{
	double d = sample_sum(b->now, name, want) - sample_sum(b->before, name, want);

	return d > 0 && b->seconds > 0 ? d / b->seconds
				       : 0; /* less than nothing: the daemon was started again */
}

static void
show_transports(FILE *out, const struct both *b)
{
	static const char *const way[] = { "rdma", "http" };

	fprintf(out, "%-10s %10s %12s %12s %9s %9s %9s\n", "", "requests/s", "in/s", "out/s", "p50", "p95",
		"p99");
	for (int i = 0; i < 2; i++) {
		char want[64], pull[96], push[96], in[32], outs[32], p50[32], p95[32], p99[32];

		snprintf(want, sizeof want, "transport=\"%s\"", way[i]);
		snprintf(pull, sizeof pull, "direction=\"pull\",%s", want);
		snprintf(push, sizeof push, "direction=\"push\",%s", want);
#define Q(p) sample_quantile(b->now, b->before, "gantry_request_duration_seconds", want, p)
		fprintf(out, "%-10s %10.0f %12s %12s %9s %9s %9s\n", way[i],
			rate(b, "gantry_requests_total", want),
			size_text((uint64_t)rate(b, "gantry_transfer_bytes_total", pull), in),
			size_text((uint64_t)rate(b, "gantry_transfer_bytes_total", push), outs),
			seconds_text(Q(.5), p50), seconds_text(Q(.95), p95), seconds_text(Q(.99), p99));
#undef Q
	}
}

struct line {
	char name[64];
	double rate;
};

static int
by_rate(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->rate > y->rate ? -1 : x->rate < y->rate ? 1 : strcmp(x->name, y->name);
}

/* The values that a label has in a metric, with their rates, busiest first. */
static int
lines_by(const struct both *b, const char *name, const char *label, struct line *lines)
{
	int nr = 0;

	for (int i = 0; i < b->now->nr; i++) {
		const struct metric *m = &b->now->m[i];
		char value[64], want[96];
		int k = 0;

		if (strcmp(m->name, name) != 0 || !metric_label(m, label, value, sizeof value))
			continue;
		while (k < nr && strcmp(lines[k].name, value) != 0)
			k++;
		if (k < nr || nr == OPS_MAX)
			continue;
		snprintf(want, sizeof want, "%s=\"%s\"", label, value);
		snprintf(lines[nr].name, sizeof lines[nr].name, "%s", value);
		lines[nr++].rate = rate(b, name, want);
	}
	qsort(lines, (size_t)nr, sizeof *lines, by_rate);
	return nr;
}

static void
show_top_of(FILE *out, const struct both *b, const char *title, const char *name, const char *label, int max)
{
	struct line lines[OPS_MAX];
	int nr = lines_by(b, name, label, lines);

	for (int i = 0; i < nr && i < max && lines[i].rate > 0; i++)
		fprintf(out, "%-10s %10.1f  %s\n", i ? "" : title, lines[i].rate, lines[i].name);
}

/* What moves to or from a disk, and how fast. */
static void
show_moves(FILE *out, const struct both *b, const json_t *disks)
{
	int nr = 0;

	for (size_t i = 0; i < json_array_size(disks); i++) {
		const json_t *d = json_array_get(disks, i);
		const char *move = json_text_at(d, "move", NULL);
		char name[DISK_NAME_BYTES], disk[80], done[32], total[32], speed[32];

		if (!move)
			continue;
		snprintf(disk, sizeof disk, "disk=\"%.64s\"", disk_label_of(d));
		fprintf(out, "%-10s %s %s of %s, %s/s, %.0f s left, %s%s%s\n", nr++ ? "" : "moves",
			strcmp(move, "drain") == 0 ? "drains" : "fills",
			size_text((uint64_t)json_at(d, "move_bytes_done"), done),
			size_text((uint64_t)json_at(d, "move_bytes_total"), total),
			size_text((uint64_t)rate(b, "gantry_store_moved_bytes", disk), speed),
			json_at(d, "move_seconds_left"), disk_name_in(d, name),
			*json_text_at(d, "reason", "") ? "; " : "", json_text_at(d, "reason", ""));
	}
}

/* The mean times that commits waited for each step on a disk; no line without a commit. */
static void
show_commit(FILE *out, const struct both *b, const char *disk)
{
	static const char *const until[] = {
		"submitted", "led", "written", "flushed", "published", "answered"
	};
	char want[128], text[32];

	for (size_t i = 0; i < sizeof until / sizeof *until; i++) {
		double nr;

		snprintf(want, sizeof want, "%s,until=\"%s\"", disk, until[i]);
		nr = rate(b, "gantry_commit_seconds_count", want);
		if (i == 0 && nr <= 0)
			return;
		fprintf(out, "%s%s %s",
			i == 0   ? "           commit waits: "
			: i == 3 ? ",\n                         "
				 : ", ",
			until[i],
			seconds_text(nr > 0 ? rate(b, "gantry_commit_seconds_sum", want) / nr : NAN, text));
	}
	fputc('\n', out);
}

/* Names stand in the last column, because their length is not known: a terminal of 80 columns cuts nothing else. */
static void
show_cores(FILE *out, const json_t *cores)
{
	if (json_array_size(cores))
		fprintf(out, "%-10s %-8s %11s %12s %15s  cpu\n", "cores", "state", "requests", "connections",
			"pieces free");
	for (size_t i = 0; i < json_array_size(cores); i++) {
		const json_t *c = json_array_get(cores, i),
			     *large = json_object_get(json_object_get(c, "buffers"), "large");
		char pieces[32];

		snprintf(pieces, sizeof pieces, "%d of %d", (int)json_integer_value(json_array_get(large, 1)),
			 (int)json_integer_value(json_array_get(large, 0)));
		fprintf(out, "%-10s %-8s %11d %12d %15s  %d\n", "",
			json_is_true(json_object_get(c, "asleep")) ? "idle" : "busy",
			(int)json_at(c, "requests"), (int)json_at(c, "connections"), pieces,
			(int)json_at(c, "cpu"));
	}
}

static void
show_rails(FILE *out, const struct both *b, const json_t *rails)
{
	if (json_array_size(rails))
		fprintf(out, "%-10s %-8s %11s %11s %15s  rail\n", "rails", "state", "read/s", "written/s",
			"channels free");
	for (size_t i = 0; i < json_array_size(rails); i++) {
		const json_t *r = json_array_get(rails, i);
		char label[96], rd[128], wr[128], in[32], outs[32], channels[32];

		snprintf(label, sizeof label, "%s:%d", json_text_at(r, "device", "?"),
			 (int)json_at(r, "port"));
		snprintf(rd, sizeof rd, "rail=\"%s\",op=\"read\"", label);
		snprintf(wr, sizeof wr, "rail=\"%s\",op=\"write\"", label);
		snprintf(channels, sizeof channels, "%d of %d", (int)json_at(rail_channels(r), "free"),
			 (int)json_at(rail_channels(r), "all"));
		fprintf(out, "%-10s %-8s %11s %11s %15s  %s\n", "", json_text_at(r, "state", "?"),
			size_text((uint64_t)rate(b, "gantry_rdma_bytes_total", rd), in),
			size_text((uint64_t)rate(b, "gantry_rdma_bytes_total", wr), outs), channels, label);
	}
}

static void
show_disks(FILE *out, const struct both *b, const json_t *disks)
{
	if (json_array_size(disks))
		fprintf(out, "%-10s %-8s %11s %11s %9s %9s %6s  disk\n", "disks", "state", "read/s",
			"written/s", "flushes/s", "commits/s", "used");
	for (size_t i = 0; i < json_array_size(disks); i++) {
		const json_t *d = json_array_get(disks, i);
		char name[DISK_NAME_BYTES], rd[96], wr[96], all[80], in[32], outs[32];

		snprintf(all, sizeof all, "disk=\"%.64s\"", disk_label_of(d));
		snprintf(rd, sizeof rd, "%s,op=\"read\"", all);
		snprintf(wr, sizeof wr, "%s,op=\"write\"", all);
		fprintf(out, "%-10s %-8s %11s %11s %9.0f %9.0f %4.0f %%  %s\n", "",
			json_text_at(d, "state", "?"),
			size_text((uint64_t)rate(b, "gantry_store_io_bytes_total", rd), in),
			size_text((uint64_t)rate(b, "gantry_store_io_bytes_total", wr), outs),
			rate(b, "gantry_store_flushes_total", all),
			rate(b, "gantry_store_commits_total", all),
			json_at(d, "size_bytes") > 0
				? 100 * (1 - json_at(d, "free_bytes") / json_at(d, "size_bytes"))
				: 0,
			disk_name_in(d, name));
		show_commit(out, b, all);
	}
}

static void
show_state(FILE *out, const struct both *b, const json_t *status, const json_t *rails, const json_t *disks)
{
	show_cores(out, json_object_get(status, "cores"));
	show_rails(out, b, rails);
	rcline_print(out, status);
	show_disks(out, b, disks);
	show_moves(out, b, disks);
	if (copies_of(status) && !copies_are_whole(copies_of(status))) {
		fprintf(out, "%-10s ", "copies");
		copies_print(out, copies_of(status));
		fputc('\n', out);
	}
}

static int
take_sample(const char *name, struct sample *s, char *err, size_t err_len)
{
	struct answer a;
	int line, r = admin_get(name, "/metrics", &a, err, err_len);

	if (r < 0)
		return r;
	if (a.status != 200) {
		snprintf(err, err_len, "%s/metrics answers %d: is it gantryd's admin listener?", name,
			 a.status);
		free(a.text);
		return -EPROTO;
	}
	r = sample_parse(a.text, s, &line);
	if (r < 0)
		snprintf(err, err_len, "%s/metrics, line %d: makes no sense", name, line);
	return r;
}

static int
show_one(const char *name, const struct sample *now, const struct sample *before, char *err, size_t err_len)
{
	struct both b = { now, before, now->at_s - before->at_s };
	static const char *const pages[] = { "/status", "/rails", "/disks", "/healthz" };
	json_t *page[4] = { NULL };
	struct view v = { 0 };
	int r = 0;

	for (int i = 0; r == 0 && i < 4; i++)
		r = admin_json(name, pages[i], &page[i], NULL, err, err_len);
	if (r == 0 && !(v.out = open_memstream(&v.text, &v.len))) {
		snprintf(err, err_len, "out of memory");
		r = -ENOMEM;
	}
	if (r == 0) {
		const char *health = json_text_at(page[3], "status", "?");

		fprintf(v.out, "gantryd %s at %s, %s, %s, up %.0f s%s\n\n",
			json_text_at(page[0], "version", "?"), name, json_text_at(page[0], "phase", "?"),
			strcmp(health, "ok") == 0 ? "healthy" : health, json_at(page[0], "uptime_seconds"),
			is_screen ? "  (q ends it)" : "");
		show_transports(v.out, &b);
		show_top_of(v.out, &b, "operations", "gantry_requests_total", "operation", 6);
		show_top_of(v.out, &b, "declined", "gantry_declines_total", "reason", 4);
		fputc('\n', v.out);
		show_state(v.out, &b, page[0], page[1], page[2]);
		if (!is_screen)
			fputc('\n', v.out);
		show(&v);
	}
	for (int i = 0; i < 4; i++)
		json_decref(page[i]);
	return r;
}

int
cmd_top(struct cmd *c)
{
	const char *name = admin_name(c->admin);
	struct sigaction end = { .sa_handler = on_end };
	double interval = c->interval_s > 0 ? c->interval_s : 1;
	struct sample before = { 0 }, now;
	char err[512] = "";
	int r = take_sample(name, &before, err, sizeof err);

	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	if (r == 0)
		screen_begin();
	for (int i = 0; r == 0 && (c->count == 0 || i < c->count) && wait_or_quit(interval); i++) {
		r = take_sample(name, &now, err, sizeof err);
		if (r < 0)
			break;
		r = show_one(name, &now, &before, err, sizeof err);
		sample_free(&before);
		before = now;
	}
	screen_end();
	sample_free(&before);
	if (r < 0)
		fprintf(stderr, "gantry: %s\n", err);
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}

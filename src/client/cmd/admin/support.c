/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry support: one archive with what a person needs who was not there.  Each part has a time limit, and a part that cannot be had is named in the
 * index with the reason, so that the command always ends and works while the daemon is down.
 *
 * No part has a secret by itself: pages and logs of the daemon show none, and of the configuration the parsed keys are taken, not the files, whose
 * comments may have anything.
 */
#include "client/cmd/admin/support.h"

#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PART_MS 20000            /* time limit of a command */
#define PART_BYTES (16ull << 20) /* limit of the output of a command; the rest is cut off */
#define ARCHIVE_MS 120000        /* time limit of tar */

struct bundle {
	char folder[PATH_MAX]; /* temporary folder, with the folder `name` in it */
	char name[300];
	FILE *index;
	int got, lacking;
	bool is_silent; /* the admin listener does not answer: its other pages are not asked */
	char why[512];  /* reason of this */
};

/* Pages of the admin listener. */
static const struct {
	const char *path, *file, *about;
} pages[] = {
	{ "/healthz", "health.json", "health: each reason with its code" },
	{ "/status", "status.json", "state of the daemon, its store and its cores" },
	{ "/disks", "disks.json", "disks or pools: state, space, errors" },
	{ "/rails", "rails.json", "RDMA rails: state, completions" },
	{ "/requests", "requests.json", "requests in progress, and the step of each" },
	{ "/events", "events.json", "the latest errors and declines" },
	{ "/buckets", "buckets.json", "the largest buckets" },
	{ "/quotas", "quotas.json", "quotas and their usage" },
	{ "/config", "config.json", "the configuration in use; secrets are in files that are not here" },
	{ "/metrics", "metrics.txt", "all metrics" },
};

/* Commands of this machine.  @GANTRY, @GANTRYD and @CONF stand for the programs and the configuration file. */
static const struct {
	const char *file, *about;
	const char *word[12];
} commands[] = {
	{ "gantry-version.txt", "version of gantry", { "@GANTRY", "--version" } },
	{ "gantryd-version.txt", "version of gantryd", { "@GANTRYD", "--version" } },
	{ "doctor.txt", "gantry doctor: obstacles to RDMA, the daemon", { "@GANTRY", "doctor" } },
	{ "list-devices.txt",
	  "RDMA devices, ports and addresses",
	  { "@GANTRYD", "-c", "@CONF", "--list-devices" } },
	{ "print-config.txt",
	  "the configuration on disk: each key, and where its value is from",
	  { "@GANTRYD", "-c", "@CONF", "--print-config" } },
	{ "journal.txt",
	  "the end of the daemon's log",
	  { "journalctl", "-u", "gantryd", "-n", "5000", "--no-pager", "-o", "short-iso-precise", "--utc" } },
	{ "journal-kernel.txt",
	  "warnings of the kernel",
	  { "journalctl", "-k", "-p", "warning", "-n", "500", "--no-pager", "-o", "short-iso", "--utc" } },
	{ "unit.txt",
	  "the unit of systemd and its state",
	  { "systemctl", "status", "gantryd", "--no-pager", "--lines=0" } },
	{ "kernel.txt", "the kernel", { "uname", "-a" } },
	{ "mounts.txt",
	  "mounted file systems",
	  { "findmnt", "--list", "--output", "TARGET,SOURCE,FSTYPE,OPTIONS" } },
	{ "block-devices.txt", "block devices", { "lsblk", "-o", "NAME,SIZE,TYPE,FSTYPE,MOUNTPOINT,MODEL" } },
	{ "space.txt", "space of the file systems", { "df", "-h", "-l" } },
	{ "memory.txt", "memory", { "free", "-m" } },
	{ "addresses.txt", "network addresses", { "ip", "-brief", "address" } },
	{ "rdma-links.txt", "RDMA links", { "rdma", "link" } },
	{ "time.txt", "clock and its source", { "timedatectl" } },
};
#define COMMAND_NR ((int)(sizeof commands / sizeof *commands))

/* ---- the index ---- */

static void
say_got(struct bundle *b, const char *file, const char *about)
{
	fprintf(b->index, "%-22s %s\n", file, about);
	b->got++;
}

static void
say_lacking(struct bundle *b, const char *file, const char *about, const char *why)
{
	fprintf(b->index, "%-22s NOT THERE: %s: %s\n", file, about, why);
	b->lacking++;
}

static void
path_of(const struct bundle *b, const char *file, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%.2000s/%s/%s", b->folder, b->name, file);
}

/* ---- pages ---- */

static void
take_page(struct bundle *b, const char *admin, int i)
{
	struct answer a = { 0 };
	char path[PATH_MAX];
	FILE *f;

	/* One that has not answered in its five seconds would take a minute for all. */
	if (!b->is_silent && admin_get(admin, pages[i].path, &a, b->why, sizeof b->why) < 0)
		b->is_silent = true;
	if (b->is_silent) {
		say_lacking(b, pages[i].file, pages[i].about, b->why);
		return;
	}
	if (a.status == 404 || a.status == 405) {
		say_lacking(b, pages[i].file, pages[i].about, "this daemon has no such page");
		free(a.text);
		return;
	}
	if (a.status == 401 || a.status == 403) {
		say_lacking(b, pages[i].file, pages[i].about, "the daemon wants its token (--token-file)");
		free(a.text);
		return;
	}
	path_of(b, pages[i].file, path);
	f = fopen(path, "we");
	if (!f || fwrite(a.text, 1, a.len, f) != a.len)
		say_lacking(b, pages[i].file, pages[i].about, strerror(errno));
	else
		say_got(b, pages[i].file, pages[i].about);
	if (f)
		(void)fclose(f);
	free(a.text);
}

/* ---- commands ---- */

/* The gantryd that belongs to this gantry: beside it, or where packages have it. */
static const char *
daemon_program(char out[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 2);

	if (n > 0) {
		out[n] = 'd';
		out[n + 1] = 0;
		if (access(out, X_OK) == 0)
			return out;
	}
	return access("/usr/sbin/gantryd", X_OK) == 0 ? "/usr/sbin/gantryd" : "gantryd";
}

/* Sets the words of a command. gantryd: the program @GANTRYD. */
static void
set_words(const struct cmd *c, int i, const char *gantryd, const char *words[16])
{
	int nr = 0;

	for (int w = 0; commands[i].word[w]; w++) {
		const char *word = commands[i].word[w];

		words[nr++] = strcmp(word, "@GANTRY") == 0    ? "/proc/self/exe"
			      : strcmp(word, "@GANTRYD") == 0 ? gantryd
			      : strcmp(word, "@CONF") == 0    ? c->key.conf ? c->key.conf : SUPPORT_CONF
							      : word;
		if (strcmp(word, "doctor") == 0 && c->admin) {
			words[nr++] = "--admin";
			words[nr++] = c->admin;
		}
		if (strcmp(word, "doctor") == 0 && c->token_file) {
			words[nr++] = "--token-file";
			words[nr++] = c->token_file;
		}
		if (strcmp(word, "doctor") == 0 && c->ca_file) {
			words[nr++] = "--ca";
			words[nr++] = c->ca_file;
		}
	}
}

/* Runs all commands at the same time, so that several that hang do not add their limits. */
static void
take_commands(struct bundle *b, const struct cmd *c)
{
	static struct support_program p[COMMAND_NR];
	static char path[COMMAND_NR][PATH_MAX];
	char gantryd[PATH_MAX];
	const char *daemon = daemon_program(gantryd);

	for (int i = 0; i < COMMAND_NR; i++) {
		path_of(b, commands[i].file, path[i]);
		p[i].path = path[i];
		set_words(c, i, daemon, p[i].words);
	}
	support_run_all(p, COMMAND_NR, PART_BYTES, PART_MS);
	for (int i = 0; i < COMMAND_NR; i++) {
		if (p[i].result < 0)
			say_lacking(b, commands[i].file, commands[i].about, p[i].why);
		else
			say_got(b, commands[i].file, commands[i].about);
	}
}

/* ---- the archive ---- */

static int
begin(struct bundle *b)
{
	const char *tmp = getenv("TMPDIR");
	char path[PATH_MAX], host[200] = "", at[32];
	time_t now = time(NULL);
	struct tm tm;

	gethostname(host, sizeof host - 1);
	gmtime_r(&now, &tm);
	strftime(at, sizeof at, "%Y%m%dT%H%M%SZ", &tm);
	snprintf(b->name, sizeof b->name, "gantry-support-%s-%s", host, at);
	snprintf(b->folder, sizeof b->folder, "%.2000s/gantry-support.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(b->folder)) /* 0700 */
		return -errno;
	path_of(b, "", path);
	if (mkdir(path, 0700) < 0)
		return -errno;
	path_of(b, "index.txt", path);
	b->index = fopen(path, "we");
	if (!b->index)
		return -errno;
	fprintf(b->index,
		"Support bundle of %s, made %s (UTC).\nNo file here has secrets of access keys, tokens or "
		"keys of TLS.\n\n",
		host, at);
	return 0;
}

/* Packs the folder into a file that did not exist, of mode 0600. */
static int
pack(const struct bundle *b, const char *out, char *why, size_t why_len)
{
	const char *words[] = { "tar", "-C", b->folder, "-czf", "-", b->name, NULL };
	int fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), r;

	if (fd < 0) {
		snprintf(why, why_len, "%s: %s", out, strerror(errno));
		return -1;
	}
	close(fd);
	r = support_run(words, out, UINT64_MAX, ARCHIVE_MS, why, why_len);
	if (r != 0) {
		unlink(out);
		if (r > 0)
			snprintf(why, why_len, "tar has ended with %d", r);
		return -1;
	}
	return 0;
}

static void
clear(struct bundle *b)
{
	const char *words[] = { "rm", "-rf", "--", b->folder, NULL };
	char why[256];

	support_signal = 0;
	if (b->folder[0])
		(void)support_run(words, "/dev/null", UINT64_MAX, PART_MS, why, sizeof why);
}

static void
on_signal(int nr)
{
	support_signal = nr;
}

/* Lets signals that end a program end the collection, so that no folder with data of this machine stays. */
static void
catch_signals(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction end = { .sa_handler = on_signal }, was;

	for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++) {
		if (sigaction(sigs[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			sigaction(sigs[i], &end, NULL);
	}
}

/* Removes the folder, and ends by the signal that has come. */
static void
end_by_signal(struct bundle *b)
{
	int nr = support_signal;

	clear(b);
	signal(nr, SIG_DFL);
	raise(nr);
}

int
cmd_support(struct cmd *c)
{
	struct bundle b = { .is_silent = false };
	char out[PATH_MAX], why[PATH_MAX + 64];
	int r;

	umask(077);
	catch_signals();
	r = begin(&b);
	if (r < 0) {
		fprintf(stderr, "gantry: a temporary folder: %s\n", strerror(-r));
		clear(&b);
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < sizeof pages / sizeof *pages && !support_signal; i++)
		take_page(&b, admin_name(c->admin), (int)i);
	if (!support_signal)
		take_commands(&b, c);
	r = fclose(b.index) == 0 ? 0 : -1;
	snprintf(out, sizeof out, "%s%s", c->output ? c->output : b.name, c->output ? "" : ".tar.gz");
	snprintf(why, sizeof why, "the index: %s", strerror(errno));
	if (r == 0 && !support_signal)
		r = pack(&b, out, why, sizeof why);
	if (support_signal)
		end_by_signal(&b);
	clear(&b);
	if (r < 0) {
		fprintf(stderr, "gantry: %s\n", why);
		return EXIT_FAILED;
	}
	if (!c->quiet) {
		printf("%s: %d parts", out, b.got);
		if (b.lacking)
			printf(", %d could not be had: index.txt in it says why", b.lacking);
		printf("\nIt names hosts, disks, buckets, access keys and client addresses; it has no "
		       "secrets.\n");
	}
	return EXIT_OK;
}

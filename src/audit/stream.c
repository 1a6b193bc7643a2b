/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of the audit stream: a queue of lines in memory, and a thread that writes them.
 *
 * The thread holds a line until it is written: a full disk or a missing directory has the same effect as a
 * file that takes no bytes.  The queue fills meanwhile, and what does not fit is dropped.
 */
#include "audit/audit_int.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_BYTES (1u << 20)
/* Room that refusals and reads leave to changes. */
#define QUEUE_SPARE (QUEUE_BYTES / 4)
#define OLD_BYTES (PATH_MAX + 12) /* size of the name of an old file */
#define RETRY_NS (100 * (long)NS_PER_MS)

static struct outbox box;
static uint8_t ring[QUEUE_BYTES];
static bool runs;
static _Atomic bool is_on, takes_reads;
static _Atomic uint64_t records, dropped, reported, held_all, since_ns;
static _Atomic int last_error;

/* The configuration, for the thread. */
static struct {
	pthread_mutex_t lock;
	unsigned nr; /* number of audit_set() calls */
	char path[PATH_MAX];
	uint64_t size_bytes;
	int keep;
} want = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The file, owned by the thread.  nr: that of the configuration with which it was opened. */
static struct {
	int fd;
	unsigned nr;
	char path[PATH_MAX];
	uint64_t size_bytes;
	int keep;
} file = { .fd = -1 };

/* ---- the file ---- */

static void
close_file(void)
{
	if (file.fd >= 0)
		close(file.fd);
	file.fd = -1;
}

/* Takes a new configuration, if there is one.  Returns false if there is no stream any more. */
static bool
follow_conf(void)
{
	pthread_mutex_lock(&want.lock);
	if (file.nr != want.nr) {
		close_file();
		file.nr = want.nr;
		file.size_bytes = want.size_bytes;
		file.keep = want.keep;
		memcpy(file.path, want.path, sizeof file.path);
	}
	pthread_mutex_unlock(&want.lock);
	return file.path[0] != 0;
}

/* A FIFO is opened only when it has a reader, and then takes lines as fast as that reads. */
static int
open_file(void)
{
	if (file.fd >= 0)
		return 0;
	file.fd = open(file.path,
		       O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0600);
	if (file.fd < 0)
		return -errno;
	return fcntl(file.fd, F_SETFL, O_APPEND) < 0 ? -errno : 0;
}

/* Name of the old file that hinders a rotation; empty: none does. Of the thread. */
static char hindrance[OLD_BYTES];

static char *
old_path(char out[OLD_BYTES], int i)
{
	snprintf(out, OLD_BYTES, "%s.%d", file.path, i);
	return out;
}

/* Returns the error of a call about an old file, whose name the log gets. */
static int
old_error(const char *name)
{
	int r = -errno;

	snprintf(hindrance, sizeof hindrance, "%s", name);
	return r;
}

/* Makes the name of the first old file free: the files before the first gap move on by one, and only without a gap the last one is
 * removed. So an attempt after one that failed half way removes nothing more. */
static int
make_way(void)
{
	char from[OLD_BYTES], to[OLD_BYTES];
	int gap = 1;

	for (int i = file.keep + 1; i <= AUDIT_KEEP_MAX; i++) {
		/* a folder is none of ours */
		if (unlink(old_path(from, i)) < 0 && errno != ENOENT && errno != EISDIR)
			return old_error(from);
	}
	while (gap <= file.keep && access(old_path(from, gap), F_OK) == 0)
		gap++;
	if (gap > file.keep) {
		gap = file.keep;
		if (unlink(old_path(from, gap)) < 0)
			return old_error(from);
	}
	for (int i = gap - 1; i > 0; i--) {
		if (rename(old_path(from, i), old_path(to, i + 1)) < 0)
			return old_error(from);
	}
	return 0;
}

/* Renames the file to the first old file, and begins a new one. */
static int
rotate(void)
{
	char first[OLD_BYTES];
	int r;

	close_file();
	hindrance[0] = 0;
	r = make_way();
	if (r < 0)
		return r;
	if (rename(file.path, old_path(first, 1)) < 0 && errno != ENOENT)
		return -errno;
	return open_file();
}

static int
write_all(const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(file.fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Writes lines, all or none of them. */
static int
write_lines(const char *data, size_t len)
{
	struct stat st;
	int r = open_file();

	if (r == 0 && fstat(file.fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return r;
	if (S_ISREG(st.st_mode)) {
		/* Removed by others: what is written now would be lost. */
		if (st.st_nlink == 0) {
			close_file();
			r = open_file();
		} else if ((uint64_t)st.st_size + len > file.size_bytes && st.st_size > 0) {
			r = rotate();
		}
		if (r == 0 && fstat(file.fd, &st) < 0)
			r = -errno;
		if (r < 0)
			return r;
	}
	r = write_all(data, len);
	/* No half of a line stays; on a disk that is full this needs no room. */
	if (r < 0 && S_ISREG(st.st_mode) && ftruncate(file.fd, st.st_size) < 0)
		log_limited(LOG_WARN, "audit: %s: %s", file.path, strerror(errno));
	return r;
}

/* ---- the thread ---- */

/* Logs the begin and the end of a failure. */
static void
note_error(int error)
{
	int before = atomic_exchange(&last_error, error);

	if (error && !before)
		log_warn("audit: %s: %s: records wait, and are dropped when 1 MiB of them do",
			 hindrance[0] ? hindrance : file.path, strerror(-error));
	else if (!error && before)
		log_note("audit: %s: records are written again", file.path);
}

/* Writes the number of dropped records, if there are such, and the line after it. */
static int
write_record(const void *line, size_t len)
{
	static char lines[AUDIT_TEXT_BYTES + 128]; /* of the thread */
	uint64_t all = atomic_load(&dropped), nr = all - atomic_load(&reported);
	size_t n = 0;
	char when[32];
	int r;

	if (nr) {
		audit_time(clock_wall_ns(), when);
		n = (size_t)snprintf(lines, sizeof lines,
				     "{\"time\":\"%s\",\"op\":\"Dropped\",\"dropped\":%llu}\n", when,
				     (unsigned long long)nr);
	}
	memcpy(lines + n, line, len);
	r = write_lines(lines, n + len);
	if (r == 0)
		atomic_store(&reported, all);
	return r;
}

static void
send_record(const void *line, size_t len)
{
	int r = -EAGAIN;

	atomic_store(&since_ns, clock_ns());
	while (r < 0 && follow_conf()) {
		r = write_record(line, len);
		note_error(r);
		if (r == 0) {
			atomic_fetch_add(&records, 1);
		} else {
			close_file();
			nanosleep(&(struct timespec){ 0, RETRY_NS }, NULL);
		}
	}
	if (r < 0) {
		atomic_fetch_add(&dropped, 1);
		atomic_store(&last_error, 0);
	}
	atomic_store(&since_ns, 0);
}

static int
start_thread(void)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = outbox_start(&box, "audit", ring, sizeof ring, send_record);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	runs = r == 0;
	return r;
}

int
audit_set(const struct audit_conf *conf)
{
	bool begins = conf->path && !atomic_load(&is_on);
	int r = conf->path && !runs ? start_thread() : 0;

	if (r < 0)
		return r;
	pthread_mutex_lock(&want.lock);
	snprintf(want.path, sizeof want.path, "%s", conf->path ? conf->path : "");
	want.size_bytes = conf->size_bytes;
	want.keep = conf->keep;
	want.nr++;
	pthread_mutex_unlock(&want.lock);
	atomic_store(&takes_reads, conf->reads);
	atomic_store(&is_on, conf->path != NULL);
	if (begins)
		audit_put(&(struct audit_event){ .op = "Start" });
	return 0;
}

void
audit_stop(uint64_t max_ns)
{
	if (!runs)
		return;
	if (atomic_load(&is_on))
		audit_put(&(struct audit_event){ .op = "Stop" });
	atomic_store(&is_on, false);
	if (outbox_stop(&box, max_ns)) {
		runs = false;
		close_file();
		return;
	}
	log_error("audit: %s takes no records: %zu bytes of them are lost", want.path, outbox_waiting(&box));
}

/* ---- any thread ---- */

bool
stream_takes(enum audit_kind kind)
{
	return atomic_load_explicit(&is_on, memory_order_relaxed) &&
	       (kind != AUDIT_OTHER || atomic_load_explicit(&takes_reads, memory_order_relaxed));
}

bool
stream_takes_refusal(uint64_t *ret_held)
{
	static _Atomic uint64_t second, in_second, held;
	uint64_t now_s = clock_ns() / NS_PER_S, was = atomic_load(&second);

	if (was != now_s && atomic_compare_exchange_strong(&second, &was, now_s))
		atomic_store(&in_second, 0);
	if (atomic_fetch_add(&in_second, 1) >= AUDIT_REFUSALS_MAX) {
		atomic_fetch_add(&held, 1);
		atomic_fetch_add(&held_all, 1);
		return false;
	}
	*ret_held = atomic_load(&held) ? atomic_exchange(&held, 0) : 0;
	return true;
}

void
stream_put(enum audit_kind kind, const char *line, size_t len)
{
	if (!outbox_put(&box, line, len, kind == AUDIT_CHANGE ? 0 : QUEUE_SPARE))
		atomic_fetch_add(&dropped, 1);
}

void
audit_get_info(struct audit_info *ret)
{
	uint64_t since = atomic_load(&since_ns), now = clock_ns();

	*ret = (struct audit_info){ .is_on = atomic_load(&is_on),
				    .records = atomic_load(&records),
				    .held = atomic_load(&held_all),
				    .error = atomic_load(&last_error),
				    .waits_ns = since && now > since ? now - since : 0 };
	/* The number reported first: it never exceeds that of the dropped ones. */
	ret->unreported = atomic_load(&reported);
	ret->dropped = atomic_load(&dropped);
	ret->unreported = ret->dropped - ret->unreported;
}

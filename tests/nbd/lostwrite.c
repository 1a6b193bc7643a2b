/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An nbdkit plugin: a disk that loses what was not flushed when the power goes, and fails, waits or hangs
 * when it is told to.  The tests of tests/long/ put it under the unmodified daemon, through nbdfuse and a
 * loop device (tests/long/disk.sh).
 *
 *	nbdkit -f -U SOCKET lostwrite.so image=FILE size=BYTES ctl=FIFO status=FILE
 *
 * It keeps two pictures: `now`, what a read sees, and `durable`, the image file, what a power cut leaves.
 * Writes since the last flush lie between them, in the order they came.  A flush makes durable what was
 * complete when it *began*, no more.
 *
 * Commands, one a line on the FIFO, each with a number in front; when it is done the status file (replaced
 * whole) begins with it:
 *
 *	N stat
 *	N freeze | thaw              requests wait; then they go on
 *	N off SEED                   the power goes: of the unflushed writes some are kept, some torn (a
 *	                             prefix, or every other 4 KiB), some dropped; what waits, and what comes
 *	                             before `on`, gets EIO and changes nothing
 *	N on                         the power is there again, and nothing is frozen
 *	N fail KIND ERRNO [FROM TO]  read, write or flush: every one answers that (0: none again), in that
 *	                             range of bytes
 *	N delay KIND MS              every one takes that much longer
 *
 * Threads: nbdkit's, as many as it likes, and one for the commands.  One lock over everything but the
 * waiting.
 */
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define TEAR_BYTES 4096u

enum kind { READ, WRITE, FLUSH, KIND_NR };
static const char *const kind_name[KIND_NR] = { "read", "write", "flush" };

struct unflushed {
	struct unflushed *next;
	uint64_t off;
	uint32_t len;
	char data[];
};

struct trouble {
	int error;
	uint64_t from, to;
	unsigned delay_ms;
};

static char *image_path, *ctl_path, *status_path;
static int64_t size_bytes;
static char *now, *durable;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct unflushed *first, **end = &first;
static struct trouble trouble[KIND_NR];
static bool frozen, is_off;
static unsigned power; /* how often it went */
static uint64_t done[KIND_NR], failed[KIND_NR], delayed[KIND_NR], hung[KIND_NR], refused[KIND_NR];
static uint64_t unflushed_nr, written_bytes, flushed_writes, kept, torn, dropped;

/* ---- requests ---- */

static void
wait_ms(unsigned ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

/* With the lock held, which is let go while it waits.  0, or the errno that the request answers. */
static int
enter(enum kind k, uint64_t off, uint32_t len)
{
	const struct trouble *t = &trouble[k];
	unsigned born = power, ms = t->delay_ms;

	if (ms) {
		delayed[k]++;
		pthread_mutex_unlock(&lock);
		wait_ms(ms);
		pthread_mutex_lock(&lock);
	}
	if (frozen && power == born)
		hung[k]++;
	while (frozen && !is_off && power == born)
		pthread_cond_wait(&changed, &lock);
	if (is_off || power != born) {
		refused[k]++;
		return EIO;
	}
	if (t->error && (k == FLUSH || (off < t->to && off + len > t->from))) {
		failed[k]++;
		return t->error;
	}
	done[k]++;
	return 0;
}

static int
answer(int error)
{
	pthread_mutex_unlock(&lock);
	if (!error)
		return 0;
	nbdkit_set_error(error);
	return -1;
}

static int
lw_pread(void *handle, void *buf, uint32_t len, uint64_t off, uint32_t flags)
{
	int e;

	pthread_mutex_lock(&lock);
	e = enter(READ, off, len);
	if (!e)
		memcpy(buf, now + off, len);
	return answer(e);
}

static int
lw_pwrite(void *handle, const void *buf, uint32_t len, uint64_t off, uint32_t flags)
{
	struct unflushed *u = malloc(sizeof *u + len);
	int e;

	pthread_mutex_lock(&lock);
	e = u ? enter(WRITE, off, len) : ENOMEM;
	if (e) {
		free(u);
		return answer(e);
	}
	*u = (struct unflushed){ .off = off, .len = len };
	memcpy(u->data, buf, len);
	memcpy(now + off, buf, len);
	*end = u;
	end = &u->next;
	unflushed_nr++;
	written_bytes += len;
	return answer(0);
}

/* The oldest unflushed write leaves the list. */
static struct unflushed *
take_first(void)
{
	struct unflushed *u = first;

	first = u->next;
	if (!first)
		end = &first;
	unflushed_nr--;
	return u;
}

static int
lw_flush(void *handle, uint32_t flags)
{
	uint64_t covered;
	unsigned born;
	int e;

	pthread_mutex_lock(&lock);
	/* What comes while this one waits is not covered. */
	covered = flushed_writes + unflushed_nr;
	born = power;
	e = enter(FLUSH, 0, 0);
	while (!e && power == born && flushed_writes < covered) {
		struct unflushed *u = take_first();

		memcpy(durable + u->off, u->data, u->len);
		flushed_writes++;
		free(u);
	}
	return answer(e);
}

/* ---- the power goes ---- */

static uint64_t dice_state;

static unsigned
dice(unsigned n)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return (unsigned)(dice_state >> 11) % n;
}

static void
tear(const struct unflushed *u)
{
	uint32_t pages = u->len / TEAR_BYTES;

	torn++;
	if (dice(2)) {
		memcpy(durable + u->off, u->data, (size_t)dice(pages + 1) * TEAR_BYTES);
		return;
	}
	for (uint32_t i = dice(2); i < pages; i += 2)
		memcpy(durable + u->off + (size_t)i * TEAR_BYTES, u->data + (size_t)i * TEAR_BYTES,
		       TEAR_BYTES);
}

static void
power_off(uint64_t seed)
{
	/* How much a disk loses differs from cut to cut: nearly nothing, nearly all, or some of each. */
	unsigned keep, tears;

	dice_state = seed * 0x9e3779b97f4a7c15u + 1;
	keep = dice(11);
	tears = dice(11 - keep);
	is_off = true;
	power++;
	/* The lost ones first: `now` goes back to what is durable, which a kept one then changes again. */
	for (const struct unflushed *u = first; u; u = u->next)
		memcpy(now + u->off, durable + u->off, u->len);
	while (first) {
		struct unflushed *u = take_first();
		unsigned fate = dice(10);

		if (fate < keep) {
			memcpy(durable + u->off, u->data, u->len);
			kept++;
		} else if (fate < keep + tears && u->len > TEAR_BYTES) {
			tear(u);
		} else {
			dropped++;
		}
		memcpy(now + u->off, durable + u->off, u->len);
		flushed_writes++;
		free(u);
	}
}

/* ---- commands ---- */

static void
say_kinds(FILE *f, const char *what, const uint64_t nr[KIND_NR])
{
	for (int k = 0; k < KIND_NR; k++)
		fprintf(f, " %s_%s=%llu", what, kind_name[k], (unsigned long long)nr[k]);
}

static void
write_status(unsigned long nr)
{
	char tmp[4096];
	FILE *f;

	snprintf(tmp, sizeof tmp, "%s.new", status_path);
	f = fopen(tmp, "we");
	if (!f) {
		nbdkit_error("%s: %m", tmp);
		return;
	}
	fprintf(f, "%lu cuts=%u unflushed=%llu written_bytes=%llu kept=%llu torn=%llu dropped=%llu", nr,
		power, (unsigned long long)unflushed_nr, (unsigned long long)written_bytes,
		(unsigned long long)kept, (unsigned long long)torn, (unsigned long long)dropped);
	say_kinds(f, "done", done);
	say_kinds(f, "failed", failed);
	say_kinds(f, "delayed", delayed);
	say_kinds(f, "hung", hung);
	say_kinds(f, "refused", refused);
	putc('\n', f);
	if (fclose(f) != 0 || rename(tmp, status_path) < 0)
		nbdkit_error("%s: %m", status_path);
}

static struct trouble *
trouble_of(const char *kind)
{
	for (int k = 0; k < KIND_NR; k++) {
		if (strcmp(kind, kind_name[k]) == 0)
			return &trouble[k];
	}
	nbdkit_error("no kind of request is named '%s'", kind);
	return NULL;
}

static void
command(const char *line)
{
	unsigned long long a = 0, from = 0, to = UINT64_MAX;
	unsigned long nr = 0;
	char verb[16] = "", kind[16] = "";
	struct trouble *t;

	sscanf(line, "%lu %15s", &nr, verb);
	pthread_mutex_lock(&lock);
	if (strcmp(verb, "freeze") == 0) {
		frozen = true;
	} else if (strcmp(verb, "thaw") == 0) {
		frozen = false;
	} else if (strcmp(verb, "on") == 0) {
		is_off = frozen = false;
	} else if (strcmp(verb, "off") == 0) {
		sscanf(line, "%*u %*s %llu", &a);
		power_off(a);
	} else if (strcmp(verb, "fail") == 0 || strcmp(verb, "delay") == 0) {
		sscanf(line, "%*u %*s %15s %llu %llu %llu", kind, &a, &from, &to);
		t = trouble_of(kind);
		if (t && verb[0] == 'f') {
			t->error = (int)a;
			t->from = from;
			t->to = to;
		} else if (t) {
			t->delay_ms = (unsigned)a;
		}
	} else if (strcmp(verb, "stat") != 0) {
		nbdkit_error("no command: %s", line);
	}
	pthread_cond_broadcast(&changed);
	write_status(nr);
	pthread_mutex_unlock(&lock);
}

static void *
commands(void *arg)
{
	/* For writing too: a FIFO without a writer would end. */
	int fd = open(ctl_path, O_RDWR | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[256];

	if (!f) {
		nbdkit_error("%s: %m", ctl_path);
		return NULL;
	}
	while (fgets(line, sizeof line, f))
		command(line);
	fclose(f);
	return NULL;
}

/* ---- what nbdkit asks ---- */

static int
lw_config(const char *key, const char *value)
{
	if (strcmp(key, "size") == 0)
		return (size_bytes = nbdkit_parse_size(value)) < 0 ? -1 : 0;
	if (strcmp(key, "image") == 0)
		return (image_path = nbdkit_absolute_path(value)) ? 0 : -1;
	if (strcmp(key, "ctl") == 0)
		return (ctl_path = nbdkit_absolute_path(value)) ? 0 : -1;
	if (strcmp(key, "status") == 0)
		return (status_path = nbdkit_absolute_path(value)) ? 0 : -1;
	nbdkit_error("unknown parameter '%s'", key);
	return -1;
}

static int
lw_config_complete(void)
{
	if (image_path && ctl_path && status_path && size_bytes > 0 && size_bytes % TEAR_BYTES == 0)
		return 0;
	nbdkit_error("image=, ctl=, status= and size= (a multiple of 4096) are needed");
	return -1;
}

static int
lw_get_ready(void)
{
	int fd = open(image_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, size_bytes) < 0) {
		nbdkit_error("%s: %m", image_path);
		return -1;
	}
	durable = mmap(NULL, (size_t)size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	/* A private picture of the same file would see later changes of pages it has not touched. */
	now = mmap(NULL, (size_t)size_bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (durable == MAP_FAILED || now == MAP_FAILED) {
		nbdkit_error("mmap: %m");
		return -1;
	}
	memcpy(now, durable, (size_t)size_bytes);
	return 0;
}

static int
lw_after_fork(void)
{
	pthread_t t;
	int e = pthread_create(&t, NULL, commands, NULL);

	if (e) {
		nbdkit_error("pthread_create: %s", strerror(e));
		return -1;
	}
	pthread_detach(t);
	return 0;
}

static void *
lw_open(int readonly)
{
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t
lw_get_size(void *handle)
{
	return size_bytes;
}

/* Several connections are one disk: a flush on one covers what was written on the others. */
static int
lw_can_multi_conn(void *handle)
{
	return 1;
}

static int
lw_block_size(void *handle, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum)
{
	*minimum = 1;
	*preferred = TEAR_BYTES;
	*maximum = 0xffffffff;
	return 0;
}

static struct nbdkit_plugin plugin = {
	.name = "lostwrite",
	.longname = "a disk that loses unflushed writes",
	.config = lw_config,
	.config_complete = lw_config_complete,
	.config_help = "image=FILE size=BYTES ctl=FIFO status=FILE",
	.get_ready = lw_get_ready,
	.after_fork = lw_after_fork,
	.open = lw_open,
	.get_size = lw_get_size,
	.can_multi_conn = lw_can_multi_conn,
	.block_size = lw_block_size,
	.pread = lw_pread,
	.pwrite = lw_pwrite,
	.flush = lw_flush,
};

/* The macro defines what nbdkit looks for, without declaring it. */
struct nbdkit_plugin *plugin_init(void);
NBDKIT_REGISTER_PLUGIN(plugin)

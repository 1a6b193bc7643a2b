/* SPDX-License-Identifier: Apache-2.0 */
/* The host block: reading, waiting, heartbeats; see host.h. */
#include "extent/disk/host.h"

#include "extent/disk/disk.h"
#include "extent/disk/file.h"
#include "extent/disk/sync.h"
#include "base/age_clock.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define ASK_NS NS_PER_S /* interval at which a waiting start reads the block of another host */

/* ---- reading ---- */

static bool
same_block(const struct host_block *a, const struct host_block *b)
{
	return memcmp(a->instance, b->instance, 16) == 0 && a->beat == b->beat && a->closed == b->closed;
}

void
host_init(struct host *h)
{
	memset(h, 0, sizeof *h);
	h->fd = -1;
}

int
host_look(struct host *h, struct ring *r)
{
	void *buf = sync_alloc(HOST_BYTES);
	uint64_t size = 0;
	int e;

	if (!buf)
		return -ENOMEM;
	h->there = h->damaged = false;
	/* A file whose first write was interrupted is empty. */
	e = h->fd < 0 ? 0 : file_size(h->fd, &size);
	if (e == 0 && size >= h->off + HOST_BYTES) {
		e = sync_read(r, h->fd, buf, HOST_BYTES, h->off);
		if (e == 0) {
			int d = host_decode(buf, HOST_BYTES, &h->seen);

			h->there = d == 0;
			h->damaged = d == -EBADMSG;
		} else if (sync_is_unreadable(e)) {
			h->damaged = true;
			e = 0;
		}
	}
	free(buf);
	return e;
}

void
host_text(const struct host *h, char *buf, size_t len)
{
	buf[0] = 0;
	if (h->there && !h->seen.closed)
		snprintf(buf, len, "host '%s' (boot %02x%02x%02x%02x, beat %llu, process %llu)",
			 h->seen.id.name, h->seen.id.boot[0], h->seen.id.boot[1], h->seen.id.boot[2],
			 h->seen.id.boot[3], (unsigned long long)h->seen.beat,
			 (unsigned long long)h->seen.id.pid);
}

/* ---- start ---- */

static int
is_had(const struct host *h, const char *path, char *err, size_t err_len)
{
	char who[160];

	host_text(h, who, sizeof who);
	return refuse(err, err_len, -EBUSY, "%s: in use by %s; stop gantryd there first", path, who);
}

/* Judges the process that wrote the block that was read last. */
static enum file_process
judge_writer(const struct host *h)
{
	struct host_id here;

	file_host_id(&here);
	switch (host_compare(&h->seen.id, &here)) {
	case HOST_REBOOTED:
		return PROCESS_GONE;
	case HOST_RUNNING:
		return file_process(&h->seen.id, &here);
	default:
		return PROCESS_UNKNOWN;
	}
}

int
host_wait(struct host *h, struct ring *r, const char *path, char *err, size_t err_len)
{
	uint64_t until_ns = clock_ns() + 2 * HOST_BEAT_NS;
	enum file_process writer;
	struct host_block before;
	char who[160];
	int e = host_look(h, r);

	if (e < 0)
		return refuse(err, err_len, e, "%s: cannot read the host block: %s", path, strerror(-e));
	if (h->damaged)
		log_warn("%s: the host block cannot be read: whether another host has the disk is not known",
			 path);
	host_text(h, who, sizeof who);
	writer = h->there && !h->seen.closed ? judge_writer(h) : PROCESS_GONE;
	if (writer != PROCESS_UNKNOWN)
		return writer == PROCESS_GONE ? 0 : is_had(h, path, err, err_len);
	log_warn("%s: %s did not close it: waiting %llu s for a sign that it still has it", path, who,
		 (unsigned long long)(2 * HOST_BEAT_NS / NS_PER_S));
	for (before = h->seen; clock_ns() < until_ns;) {
		nanosleep(&(struct timespec){ .tv_sec = ASK_NS / NS_PER_S }, NULL);
		e = host_look(h, r);
		if (e < 0)
			return refuse(err, err_len, e, "%s: cannot read the host block: %s", path,
				      strerror(-e));
		if (!h->there || h->seen.closed)
			return 0;
		if (!same_block(&h->seen, &before))
			return is_had(h, path, err, err_len);
	}
	log_warn("%s: %s gave no sign: it is taken over", path, who);
	return 0;
}

static int
put(struct host *h, struct ring *r, uint64_t log_seq, bool closed)
{
	void *buf = sync_alloc(HOST_BYTES);
	int e;

	if (!buf)
		return -EAGAIN;
	h->tried = h->mine;
	h->tried.beat++;
	h->tried.log_seq = log_seq;
	h->tried.closed = closed;
	/* The claim keeps the time of the previous owner, because other disks may know a newer one. */
	if (h->ours)
		h->tried.wall_ns = age_clock_ns();
	host_encode(buf, &h->tried);
	e = sync_write(r, h->fd, buf, HOST_BYTES, h->off);
	free(buf);
	if (e == 0)
		h->mine = h->tried;
	return e;
}

int
host_claim(struct host *h, struct ring *r, const uint8_t *disk_uuid, uint64_t log_seq, const char *path,
	   char *err, size_t err_len)
{
	struct host_block before = h->seen;
	bool was_there = h->there;
	int e = host_look(h, r);

	/* Another process has started while this start read the log. */
	if (e == 0 && h->there && (!was_there || !same_block(&h->seen, &before)))
		return is_had(h, path, err, err_len);
	h->mine = (struct host_block){ 0 };
	if (e == 0 && h->there) {
		age_clock_known(h->seen.wall_ns);
		h->mine.wall_ns = h->seen.wall_ns;
	}
	memcpy(h->mine.disk_uuid, disk_uuid, 16);
	file_host_id(&h->mine.id);
	if (e == 0 && getrandom(h->mine.instance, sizeof h->mine.instance, 0) != sizeof h->mine.instance)
		e = -EIO;
	if (e == 0)
		e = put(h, r, log_seq, false);
	if (e < 0)
		return refuse(err, err_len, e, "%s: cannot write the host block: %s", path, strerror(-e));
	h->ours = true;
	h->due_ns = clock_ns() + HOST_BEAT_NS;
	return 0;
}

/* ---- while the disk is open ---- */

/* Writes the block if the block on the disk is still of this instance. It may be the one of a failed
 * write, which can have reached the disk. */
static int
put_over_ours(struct host *h, struct ring *r, uint64_t log_seq, bool closed)
{
	int e = host_look(h, r);

	if (e < 0)
		return e;
	if (h->there && !same_block(&h->seen, &h->mine) && !same_block(&h->seen, &h->tried))
		return -EBUSY;
	return put(h, r, log_seq, closed);
}

int
host_beat(struct host *h, struct ring *r, uint64_t log_seq)
{
	uint64_t now = clock_ns();
	int e;

	if (!h->ours || now < h->due_ns)
		return 0;
	e = put_over_ours(h, r, log_seq, false);
	h->due_ns = clock_ns() + (e == -EAGAIN || sync_is_no_room(e) ? HOST_BEAT_NS / 5 : HOST_BEAT_NS);
	return e;
}

int
host_close(struct host *h, struct ring *r, uint64_t log_seq)
{
	int e = h->ours ? put_over_ours(h, r, log_seq, true) : 0;

	h->ours = false;
	return e;
}

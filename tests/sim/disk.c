/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk, see sim.h.  A file is two arrays of pages: `dur` is what a power cut leaves, `cur` is what a read
 * sees.  Between them stand the writes that are over but not flushed, in order.  Pages are counted and never
 * changed, so that neither a write nor a flush copies more than once.
 *
 * At a cut every write that is not flushed, whether it was over or not, is kept, dropped or torn: any subset
 * of its pages, a prefix, or of one page any subset of its sectors.  A flush covers the writes that were over
 * when it began.  What a failed flush covered is kept or dropped when the process ends, whatever a later
 * flush says.
 *
 * A page may lie where the file system has no place of its own for it yet: in a hole, allocated but never
 * written, shared with another file.  What is written there is at the new place, and which place that is stands
 * in the file's metadata, which only a flush of this file makes durable; until then a cut leaves all of the page
 * as it was, or (the file system wrote its metadata by itself) as it is.
 */
#include "tests/sim/sim.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFLIGHT_MAX 256
#define UNFLUSHED_MAX 8192
#define FILE_PAGES 640
#define DIRS_MAX 64

struct page {
	uint32_t refs;
	struct page *next;
	_Alignas(16) uint8_t bytes[PAGE];
};

struct file {
	struct page *cur[FILE_PAGES], *dur[FILE_PAGES]; /* NULL: zeros */
	uint32_t page_nr;                               /* as far as it was written */
};

/* One page of a write that is over, not flushed. */
struct dirty {
	struct page *page; /* NULL: gone */
	uint64_t seq;
	int file;
	uint32_t nr;
	bool lost; /* a flush that should have covered it failed */
};

struct dirs {
	int16_t file[FILES_MAX]; /* what each name stands for, -1: not there */
};

/* Those of all disks. */
static int
file_nr(void)
{
	return SIM_FILES * (prof.disks ? prof.disks : 1);
}

static struct file files[FILES_MAX];
static int8_t disk_of[FILES_MAX];
static bool bad[FILES_MAX][FILE_PAGES]; /* cannot be read until it is written */
static bool holds_data[FILES_MAX];      /* a segment */
/* enum odd: which pages have no place of their own, as programs see it and as a cut leaves it. */
static uint8_t odd[FILES_MAX][FILE_PAGES], odd_dur[FILES_MAX][FILE_PAGES];
static struct dirs dirs[DIRS_MAX]; /* [0] is durable, the last is what programs see */
static int dir_nr;
static struct sim_io inflight[INFLIGHT_MAX], late[INFLIGHT_MAX];
static unsigned inflight_nr, late_nr, weight;
static struct dirty dirty[UNFLUSHED_MAX];
static unsigned dirty_nr;
static uint64_t write_seq;
static struct page *free_pages;
static struct page zero_page = { .refs = 1u << 30 };
unsigned simdisk_faults, simdisk_soft, simdisk_cut_units, simdisk_refused, simdisk_log_refused;
uint64_t simdisk_changes;
static uint64_t submitted;
const uint64_t *simdisk_cut_mask;
unsigned simdisk_hung;
unsigned simdisk_faulty = ~0u;
unsigned simdisk_short;
unsigned simdisk_tight;

/* Of a disk: what its file system has no room for at present. */
enum space { SPACE_DATA, SPACE_LOG, SPACE_OTHER, SPACE_NR };
static struct shortage {
	unsigned of;   /* bits of enum space */
	uint32_t left; /* number of writes that are still refused */
} shortage[DISKS_MAX];

/* ---- pages ---- */

static void
page_drop(struct page *p)
{
	if (!p || --p->refs)
		return;
	p->next = free_pages;
	free_pages = p;
}

/* Is it written, and where to is not durable? */
static bool
is_astray(const struct dirty *w)
{
	return odd_dur[w->file][w->nr] != ODD_NO;
}

static struct page *
page_new(const void *bytes)
{
	struct page *p = free_pages;

	if (memcmp(bytes, zero_page.bytes, PAGE) == 0) {
		zero_page.refs++;
		return &zero_page;
	}
	if (p)
		free_pages = p->next;
	else
		check(p = aligned_alloc(64, (sizeof *p + 63) & ~(size_t)63));
	p->refs = 1;
	memcpy(p->bytes, bytes, PAGE);
	return p;
}

static struct page *
page_ref(struct page *p)
{
	p->refs++;
	return p;
}

static void
slot_set(struct page **slot, struct page *p)
{
	page_drop(*slot);
	*slot = p;
}

static const uint8_t *
bytes_of(const struct page *p)
{
	return p ? p->bytes : zero_page.bytes;
}

const uint8_t *
simdisk_page(int file, uint32_t nr)
{
	return bytes_of(files[file].cur[nr]);
}

/* ---- names ---- */

int
simdisk_find(const char *name)
{
	unsigned seg, n = 0;

	if (strcmp(name, "super") == 0)
		return FILE_SUPER;
	if (strcmp(name, "log") == 0)
		return FILE_LOG;
	if (strcmp(name, "super2") == 0)
		return FILE_SUPER2;
	if (strcmp(name, "super.new") == 0 || strcmp(name, "super2.new") == 0)
		return FILE_SUPER_NEW;

	if (strcmp(name, "host") == 0)
		return FILE_HOST;
	if (sscanf(name, "seg-%u%n", &seg, (int *)&n) == 1 && seg < SEGS_MAX)
		return FILE_SEG + (int)seg + (strcmp(name + n, ".new") == 0 ? SEGS_MAX : 0);
	return -1;
}

static struct dirs *
dir_change(void)
{
	if (dir_nr == DIRS_MAX) {
		memmove(&dirs[1], &dirs[2], (DIRS_MAX - 2) * sizeof dirs[0]);
		dir_nr--;
	}
	dirs[dir_nr] = dirs[dir_nr - 1];
	return &dirs[dir_nr++];
}

static int
file_of(int name)
{
	return dirs[dir_nr - 1].file[name];
}

bool
simdisk_exists(int name)
{
	return file_of(name) >= 0;
}

static void
file_clear(struct file *f)
{
	for (uint32_t i = 0; i < f->page_nr; i++) {
		slot_set(&f->cur[i], NULL);
		slot_set(&f->dur[i], NULL);
	}
	f->page_nr = 0;
}

/* An inode that no name stands for, in any state of the directory. */
void
simdisk_create(int name)
{
	for (int i = 0; i < file_nr(); i++) {
		bool named = false;

		for (int d = 0; d < dir_nr; d++) {
			for (int n = 0; n < file_nr(); n++)
				named |= dirs[d].file[n] == i;
		}
		for (unsigned j = 0; j < dirty_nr; j++)
			named |= dirty[j].file == i && dirty[j].page;
		for (unsigned j = 0; j < inflight_nr; j++)
			named |= inflight[j].file == i;
		for (unsigned j = 0; j < late_nr; j++)
			named |= late[j].file == i;
		if (named)
			continue;
		file_clear(&files[i]);
		/* It may lie where another one was. */
		memset(bad[i], 0, sizeof bad[i]);
		memset(odd[i], prof.is_device ? ODD_NO : ODD_HOLE, FILE_PAGES);
		memset(odd_dur[i], prof.is_device ? ODD_NO : ODD_HOLE, FILE_PAGES);
		dir_change()->file[name] = (int16_t)i;
		holds_data[i] = name % SIM_FILES >= FILE_SEG;
		disk_of[i] = (int8_t)(name / SIM_FILES);
		return;
	}
	check(!"too many files");
}

void
simdisk_rename(int from, int to)
{
	struct dirs *d = dir_change();

	d->file[to] = d->file[from];
	d->file[from] = -1;
}

void
simdisk_unlink(int name)
{
	dir_change()->file[name] = -1;
}

void
simdisk_sync_dir(void)
{
	dirs[0] = dirs[dir_nr - 1];
	dir_nr = 1;
}

int
simdisk_open(int name)
{
	return file_of(name);
}

uint64_t
simdisk_bytes(int file)
{
	return (uint64_t)files[file].page_nr * PAGE;
}

/* ---- writing ---- */

/* Writes to come from here are visible; durable later. */
static void
land(int file, uint32_t nr, struct page *p)
{
	struct file *f = &files[file];

	check(nr < FILE_PAGES);
	if (dirty_nr == UNFLUSHED_MAX) {
		unsigned n = 0;

		for (unsigned i = 0; i < dirty_nr; i++) {
			if (dirty[i].page)
				dirty[n++] = dirty[i];
		}
		if (n == UNFLUSHED_MAX)
			sim_fail("it writes and writes, and nothing is flushed");
		dirty_nr = n;
	}
	bad[file][nr] = false;
	odd[file][nr] = ODD_NO;
	slot_set(&f->cur[nr], page_ref(p));
	f->page_nr = f->page_nr <= nr ? nr + 1 : f->page_nr;
	dirty[dirty_nr++] = (struct dirty){ .page = p, .seq = write_seq, .file = file, .nr = nr };
}

static void
take_pages(struct sim_io *io)
{
	if (io->page)
		return;
	io->page = malloc(io->nr * sizeof(struct page *));
	check(io->page);
	for (uint32_t i = 0; i < io->nr; i++)
		io->page[i] = page_new((const uint8_t *)io->buf + (size_t)i * PAGE);
}

static void
free_pages_of(struct sim_io *io)
{
	for (uint32_t i = 0; io->page && i < io->nr; i++)
		page_drop(io->page[i]);
	free(io->page);
	io->page = NULL;
}

static void
land_all(struct sim_io *io)
{
	write_seq++;
	take_pages(io);
	for (uint32_t i = 0; i < io->nr; i++) {
		if (io->page[i])
			land(io->file, io->first + i, page_ref(io->page[i]));
	}
	free_pages_of(io);
}

static void
make_durable(struct dirty *w)
{
	/* Nothing older may come over it at a cut. */
	for (struct dirty *o = dirty; o < w; o++) {
		if (o->page && o->file == w->file && o->nr == w->nr)
			slot_set(&o->page, NULL);
	}
	slot_set(&files[w->file].dur[w->nr], w->page);
	odd_dur[w->file][w->nr] = ODD_NO;
	w->page = NULL;
}

/* Of one file; of the others of its disk what needs no more than that the device writes what it was given. */
static void
flush(int file, uint64_t upto, bool fails)
{
	unsigned n = 0;

	for (unsigned i = 0; i < dirty_nr; i++) {
		struct dirty *w = &dirty[i];

		if (!w->page || w->lost || w->seq > upto)
			continue;
		if (w->file != file &&
		    (!prof.flush_covers_all || disk_of[w->file] != disk_of[file] || is_astray(w)))
			continue;
		if (fails)
			w->lost = true;
		else
			make_durable(w);
	}
	for (unsigned i = 0; i < dirty_nr; i++) {
		if (dirty[i].page)
			dirty[n++] = dirty[i];
	}
	dirty_nr = n;
}

int
simdisk_fsync(int file)
{
	bool fails = sim_disk_may_fail && !prof.data_faults_only && (simdisk_faulty >> disk_of[file] & 1) &&
		     one_in(prof.eio_flush);

	simdisk_faults += fails;
	simdisk_changes++;
	flush(file, write_seq, fails);
	return fails ? -EIO : 0;
}

void
simdisk_put(int file, uint64_t off, const void *bytes, size_t len)
{
	struct file *f = &files[file];

	for (uint32_t i = (uint32_t)(off / PAGE); len;
	     i++, len -= PAGE, bytes = (const uint8_t *)bytes + PAGE) {
		struct page *p = page_new(bytes);

		slot_set(&f->cur[i], page_ref(p));
		slot_set(&f->dur[i], p);
		f->page_nr = f->page_nr <= i ? i + 1 : f->page_nr;
	}
	memset(odd[file], ODD_NO, FILE_PAGES);
	memset(odd_dur[file], ODD_NO, FILE_PAGES);
}

void
simdisk_copied(int file, enum odd how, uint32_t one_of)
{
	for (uint32_t i = 0; i < files[file].page_nr; i++) {
		/* What is on its way is written before it is shared. */
		if (odd[file][i] != ODD_NO || odd_dur[file][i] != ODD_NO || !one_in(one_of))
			continue;
		if (how == ODD_HOLE && memcmp(simdisk_page(file, i), zero_page.bytes, PAGE) != 0)
			continue;
		odd[file][i] = odd_dur[file][i] = (uint8_t)how;
	}
}

bool
simdisk_odd(int file, uint32_t from, uint32_t to, uint32_t *ret_first, uint32_t *ret_nr, bool *ret_is_shared)
{
	uint32_t at = from, end;

	while (at < to && odd[file][at] == ODD_NO)
		at++;
	for (end = at; end < to && odd[file][end] == odd[file][at];)
		end++;
	*ret_first = at;
	*ret_nr = end - at;
	*ret_is_shared = at < to && odd[file][at] == ODD_SHARED;
	return at < to;
}

int
simdisk_unshare(int file, uint32_t first, uint32_t nr)
{
	write_seq++;
	for (uint32_t i = first; i < first + nr; i++) {
		struct page *p = files[file].cur[i];

		if (bad[file][i])
			return -EIO;
		if (odd[file][i] == ODD_SHARED)
			land(file, i, page_ref(p ? p : &zero_page));
	}
	return 0;
}

void
simdisk_unreadable(int file, uint32_t nr)
{
	say("page %u of file%d cannot be read any more", nr, file);
	bad[file][nr] = true;
}

void
simdisk_readable(int disk)
{
	for (int i = 0; i < SIM_FILES; i++) {
		int file = file_of(disk * SIM_FILES + i);

		if (file >= 0)
			memset(bad[file], 0, sizeof bad[file]);
	}
}

bool
simdisk_is_bad(int file, uint32_t nr)
{
	return file >= 0 && bad[file][nr];
}

bool
simdisk_is_data(int file, uint32_t page)
{
	return prof.is_device ? page >= (FMT_DEVICE_HEAD_BYTES + prof.log_bytes) / PAGE : holds_data[file];
}

bool
simdisk_nth(uint64_t n, int *ret_file, uint32_t *ret_page)
{
	for (int name = 0; name < file_nr(); name++) {
		int file = file_of(name);

		if (file < 0)
			continue;
		if (n < files[file].page_nr) {
			*ret_file = file;
			*ret_page = (uint32_t)n;
			return true;
		}
		n -= files[file].page_nr;
	}
	return false;
}

void
simdisk_damage(int file, uint32_t nr)
{
	uint8_t bytes[PAGE];
	struct page *p;

	if (one_in(2)) {
		simdisk_unreadable(file, nr);
		return;
	}
	say("page %u of file%d rots", nr, file);
	memcpy(bytes, bytes_of(files[file].cur[nr]), PAGE);
	for (int i = 0; i < 64; i++)
		bytes[below(128)] ^= (uint8_t)(1 + below(255));
	p = page_new(bytes);
	slot_set(&files[file].cur[nr], page_ref(p));
	slot_set(&files[file].dur[nr], p);
}

/* ---- copies ---- */

/* Of one disk. */
static struct copied_file {
	bool is_there;
	uint32_t page_nr;
	struct page *page[FILE_PAGES];
} copied[SIM_FILES];

static void
drop_copy(void)
{
	for (int i = 0; i < SIM_FILES; i++) {
		for (uint32_t k = 0; k < copied[i].page_nr; k++)
			slot_set(&copied[i].page[k], NULL);
		copied[i].page_nr = 0;
	}
}

void
simdisk_copy(int disk)
{
	drop_copy();
	for (int i = 0; i < SIM_FILES; i++) {
		int file = file_of(disk * SIM_FILES + i);

		copied[i].is_there = file >= 0;
		copied[i].page_nr = file < 0 ? 0 : files[file].page_nr;
		for (uint32_t k = 0; k < copied[i].page_nr; k++) {
			struct page *p = files[file].cur[k];

			copied[i].page[k] = p ? page_ref(p) : NULL;
		}
	}
}

void
simdisk_put_back(int disk)
{
	for (int i = 0; i < SIM_FILES; i++) {
		int name = disk * SIM_FILES + i, file;

		if (simdisk_exists(name))
			simdisk_unlink(name);
		simdisk_sync_dir();
		if (!copied[i].is_there)
			continue;
		simdisk_create(name);
		simdisk_sync_dir();
		file = file_of(name);
		files[file].page_nr = copied[i].page_nr;
		for (uint32_t k = 0; k < copied[i].page_nr; k++) {
			struct page *p = copied[i].page[k];

			files[file].cur[k] = p ? page_ref(p) : NULL;
			files[file].dur[k] = p ? page_ref(p) : NULL;
			odd[file][k] = odd_dur[file][k] = ODD_NO;
			bad[file][k] = false;
		}
	}
}

void
simdisk_begin(void)
{
	drop_copy();
	for (unsigned i = 0; i < dirty_nr; i++)
		page_drop(dirty[i].page);
	for (unsigned i = 0; i < inflight_nr; i++)
		free_pages_of(&inflight[i]);
	for (unsigned i = 0; i < late_nr; i++)
		free_pages_of(&late[i]);
	for (int i = 0; i < file_nr(); i++)
		file_clear(&files[i]);
	memset(bad, 0, sizeof bad);
	memset(odd, 0, sizeof odd);
	memset(odd_dur, 0, sizeof odd_dur);
	dirty_nr = inflight_nr = late_nr = weight = 0;
	write_seq = 0;
	dir_nr = 1;
	memset(&dirs[0], -1, sizeof dirs[0]);
	simdisk_hung = 0;
	simdisk_faulty = ~0u;
	simdisk_short = simdisk_tight = 0;
	memset(shortage, 0, sizeof shortage);
}

/* ---- operations ---- */

unsigned
simdisk_inflight(void)
{
	return inflight_nr;
}

static bool
is_hung(const struct sim_io *io)
{
	return simdisk_hung >> disk_of[io->file] & 1;
}

unsigned
simdisk_weight(void)
{
	unsigned w = weight;

	for (unsigned i = 0; simdisk_hung && i < inflight_nr; i++)
		w -= is_hung(&inflight[i]) ? inflight[i].weight : 0;
	return w;
}

unsigned
simdisk_late(void)
{
	return late_nr;
}

void
simdisk_submit(const struct sim_io *io)
{
	static const uint8_t weights[] = { 1, 4, 4, 16 };
	struct sim_io *n = &inflight[inflight_nr++];

	check(inflight_nr < INFLIGHT_MAX);
	*n = *io;
	n->page = NULL;
	n->weight = prof.slow && one_in(prof.slow) ? 1 : weights[below(4)] * 4;
	n->upto = write_seq;
	n->nr_in_order = submitted++;
	simdisk_changes += io->kind == IO_WRITE;
	weight += n->weight;
	trace(1 + (uint64_t)io->kind, (uint64_t)io->file << 32 | io->first, io->nr);
	if (io->kind == IO_WRITE && one_in(2))
		take_pages(n);
}

/* Part of it is on the disk, and the rest may come later: nobody knows. */
static void
write_failed(struct sim_io *io)
{
	struct sim_io *rest = &late[late_nr];

	take_pages(io);
	write_seq++;
	for (uint32_t i = 0; i < io->nr; i++) {
		if (one_in(2)) {
			land(io->file, io->first + i, page_ref(io->page[i]));
			slot_set(&io->page[i], NULL);
		}
	}
	if (one_in(2) || late_nr + 1 == INFLIGHT_MAX) {
		free_pages_of(io);
		return;
	}
	*rest = *io;
	late_nr++;
}

/* The kernel has no memory, or ends it early: some of it may be done, and nothing comes later. */
static int
soft_fault(struct sim_io *io)
{
	static const int errors[] = { -ENOMEM, -EAGAIN, -EINTR, -ENOBUFS };
	uint32_t done = below(io->nr);

	simdisk_soft++;
	counts.soft++;
	if (io->kind == IO_WRITE) {
		take_pages(io);
		write_seq++;
		for (uint32_t i = 0; i < done; i++)
			land(io->file, io->first + i, page_ref(io->page[i]));
		free_pages_of(io);
	}
	return one_in(2) ? (int)(done * PAGE) : errors[below(4)];
}

static bool
is_short(const struct sim_io *io)
{
	return (simdisk_short >> disk_of[io->file] & 1) && !one_in(16);
}

static bool
is_super(int file)
{
	int disk = disk_of[file];

	return file == file_of(disk * SIM_FILES + FILE_SUPER) ||
	       file == file_of(disk * SIM_FILES + FILE_SUPER2);
}

static enum space
space_of(const struct sim_io *io)
{
	int name = disk_of[io->file] * SIM_FILES;

	if (prof.is_device)
		return simdisk_is_data(io->file, io->first)        ? SPACE_DATA
		       : io->first >= FMT_DEVICE_HEAD_BYTES / PAGE ? SPACE_LOG
								   : SPACE_OTHER;
	return io->file == file_of(name + FILE_LOG)                            ? SPACE_LOG
	       : holds_data[io->file] && io->file != file_of(name + FILE_HOST) ? SPACE_DATA
									       : SPACE_OTHER;
}

/* Does the file system of the disk refuse a write of that kind?  It begins to refuse some now and then, and ends by itself. */
static bool
is_refused(int disk, enum space kind)
{
	struct shortage *s = &shortage[disk];

	if (!prof.no_room || !(prof.disks ? simdisk_tight >> disk & 1 : sim_disk_may_fail))
		return false;
	if (!s->left && one_in(prof.no_room)) {
		s->of = 1 + below((1u << SPACE_NR) - 1);
		s->left = 1 + below(one_in(2) ? 3 : 40);
		say("  there is no room for %x", s->of);
	}
	if (!s->left || !(s->of >> kind & 1) || one_in(4))
		return false;
	s->left--;
	simdisk_refused++;
	simdisk_log_refused += kind == SPACE_LOG;
	counts.no_room++;
	return true;
}

bool
simdisk_has_no_room(int disk)
{
	return is_refused(disk, SPACE_OTHER);
}

/* Some of it may be there, from its beginning on, but not all; and nothing comes later.  It is said how much, or why. */
static int
refuse_io(struct sim_io *io)
{
	static const int errors[] = { -ENOSPC, -EDQUOT, -EFBIG };
	uint32_t done = one_in(4) ? below(io->nr) : 0, how = below(4);

	take_pages(io);
	write_seq++;
	for (uint32_t i = 0; i < done; i++)
		land(io->file, io->first + i, page_ref(io->page[i]));
	free_pages_of(io);
	return how == 3 ? (int)(done * PAGE) : errors[how];
}

static int
perform(struct sim_io *io)
{
	uint32_t odds = io->kind == IO_READ    ? prof.eio_read
			: io->kind == IO_WRITE ? prof.eio_write
					       : prof.eio_flush;
	bool fails;

	if (prof.eio_super && io->kind != IO_READ && is_super(io->file))
		odds = prof.eio_super;
	fails = sim_disk_may_fail && one_in(odds);
	if ((prof.data_faults_only && !holds_data[io->file]) || !(simdisk_faulty >> disk_of[io->file] & 1))
		fails = false;
	if (io->kind != IO_FLUSH && holds_data[io->file] &&
	    ((sim_disk_may_fail && one_in(prof.soft)) || is_short(io)))
		return soft_fault(io);
	if (!fails && io->kind == IO_WRITE && is_refused(disk_of[io->file], space_of(io))) {
		if (io->is_block)
			model_block_refused();
		return refuse_io(io);
	}
	simdisk_faults += fails;
	counts.io_errors += fails;
	switch (io->kind) {
	case IO_READ:
		for (uint32_t i = 0; i < io->nr; i++)
			fails |= bad[io->file][io->first + i];
		if (fails)
			return -EIO;
		for (uint32_t i = 0; i < io->nr; i++)
			memcpy((uint8_t *)io->buf + (size_t)i * PAGE, simdisk_page(io->file, io->first + i),
			       PAGE);
		break;
	case IO_WRITE:
		if (fails) {
			write_failed(io);
			return -EIO;
		}
		land_all(io);
		break;
	case IO_FLUSH:
		flush(io->file, io->upto, fails);
		return fails ? -EIO : 0;
	}
	return (int)(io->nr * PAGE);
}

static void
complete(unsigned i)
{
	struct sim_io io = inflight[i];
	int res;

	simdisk_changes += io.kind != IO_READ;
	weight -= io.weight;
	inflight[i] = inflight[--inflight_nr];
	res = perform(&io);
	trace(5, (uint64_t)io.file << 32 | io.first, (uint64_t)(int64_t)res);
	say("  %s %s%d page %u nr %u: %d",
	    io.kind == IO_READ    ? "read"
	    : io.kind == IO_WRITE ? "write"
				  : "flush",
	    "file", io.file, io.first, io.nr, res);
	ring_post(io.ring, io.op, res);
}

void
simdisk_complete(uint32_t at)
{
	unsigned i = 0;

	for (; is_hung(&inflight[i]) || at >= inflight[i].weight; i++)
		at -= is_hung(&inflight[i]) ? 0 : inflight[i].weight;
	complete(i);
}

/* -1: there is none. */
static int
first_of(int disk)
{
	int first = -1;

	for (unsigned i = 0; i < inflight_nr; i++) {
		if (disk_of[inflight[i].file] == disk && !is_hung(&inflight[i]) &&
		    (first < 0 || inflight[i].nr_in_order < inflight[first].nr_in_order))
			first = (int)i;
	}
	return first;
}

bool
simdisk_is_busy(int disk)
{
	return first_of(disk) >= 0;
}

void
simdisk_complete_first(int disk)
{
	complete((unsigned)first_of(disk));
}

void
simdisk_land_late(uint32_t at)
{
	struct sim_io io = late[at];

	late[at] = late[--late_nr];
	trace(6, (uint64_t)io.file << 32 | io.first, io.nr);
	say("  late write to file%d page %u nr %u", io.file, io.first, io.nr);
	counts.late_writes++;
	land_all(&io);
}

bool
simdisk_is_locked(int file)
{
	for (unsigned i = 0; i < late_nr; i++) {
		if (late[i].file == file)
			return true;
	}
	return false;
}

static bool
is_written(int file)
{
	for (unsigned i = 0; i < inflight_nr; i++) {
		if (inflight[i].kind != IO_READ && inflight[i].file == file)
			return true;
	}
	return false;
}

bool
simdisk_writes_super(void)
{
	bool is = false;

	for (int i = 0; i < file_nr(); i += SIM_FILES)
		is |= is_written(file_of(i + FILE_SUPER)) || is_written(file_of(i + FILE_SUPER2));
	return is;
}

bool
simdisk_writes_log(void)
{
	return is_written(file_of(FILE_LOG));
}

/* ---- the end of a process ---- */

/* What a failed flush covered is there or not, from now on. */
static void
settle_lost(void)
{
	for (unsigned i = 0; i < dirty_nr; i++) {
		struct dirty *w = &dirty[i];

		if (!w->page || !w->lost)
			continue;
		if (one_in(2)) {
			make_durable(w);
		} else {
			bool newer = false;

			for (unsigned j = i + 1; j < dirty_nr; j++)
				newer |= dirty[j].page && dirty[j].file == w->file && dirty[j].nr == w->nr;
			if (!newer) {
				struct page *p = files[w->file].dur[w->nr];

				slot_set(&files[w->file].cur[w->nr], p ? page_ref(p) : NULL);
				odd[w->file][w->nr] = odd_dur[w->file][w->nr];
			}
			slot_set(&w->page, NULL);
		}
	}
}

/* Of several disks, a page of data that could not be read can be read again when a write to it was cut short: its old bytes are there.  A
 * start cannot tell a page that was bad while it was free from one that has gone bad since, and refuses (docs/engine.md section 3). */
static void
is_cut_short(const struct sim_io *io)
{
	for (uint32_t i = 0; prof.disks && i < io->nr; i++) {
		if (simdisk_is_data(io->file, io->first + i))
			bad[io->file][io->first + i] = false;
	}
}

void
simdisk_kill(void)
{
	trace(7, inflight_nr, dirty_nr);
	for (unsigned i = 0; i < inflight_nr; i++) {
		struct sim_io *io = &inflight[i];

		/* That it failed is told to nobody. */
		if (io->kind == IO_FLUSH && sim_disk_may_fail && prof.eio_flush && one_in(2))
			flush(io->file, io->upto, true);
		if (io->kind != IO_WRITE || one_in(3) || late_nr == INFLIGHT_MAX) {
			if (io->kind == IO_WRITE)
				is_cut_short(io);
			free_pages_of(io);
			continue;
		}
		take_pages(io);
		late[late_nr++] = *io;
	}
	inflight_nr = weight = 0;
	settle_lost();
}

enum fate { KEEP, DROP, SUBSET, PREFIX, SECTORS, FATE_NR };

/* Some sectors of new over what is there. */
static struct page *
tear_page(struct page *was, struct page *new)
{
	uint8_t bytes[PAGE];
	uint32_t upto = below(8), any = (uint32_t)rng() & 0xff;
	bool prefix = one_in(2);

	memcpy(bytes, bytes_of(was), PAGE);
	for (uint32_t s = 0; s < 8; s++) {
		if (prefix ? s < upto : any >> s & 1)
			memcpy(bytes + s * 512, new->bytes + s * 512, 512);
	}
	page_drop(new);
	return page_new(bytes);
}

/* The pages of one write, in order; takes the references. */
static void
cut_write(int file, uint32_t first, struct page **page, uint32_t nr, enum fate fate)
{
	struct file *f = &files[file];
	uint32_t upto = below(nr + 1);

	for (uint32_t i = 0; i < nr; i++) {
		bool keep = fate == KEEP || (fate == SUBSET && one_in(2)) || (fate == PREFIX && i < upto);
		bool is_whole = odd_dur[file][first + i] != ODD_NO;
		struct page *p = page[i];

		if (!p)
			continue;
		if (simdisk_cut_mask)
			keep = *simdisk_cut_mask >> (simdisk_cut_units < 64 ? simdisk_cut_units : 63) & 1;
		else if (is_whole && fate == SECTORS)
			keep = one_in(2);
		else if (fate == SECTORS)
			p = tear_page(f->dur[first + i], p);
		simdisk_cut_units++;
		if (keep || (fate == SECTORS && !is_whole && !simdisk_cut_mask)) {
			f->page_nr = f->page_nr <= first + i ? first + i + 1 : f->page_nr;
			odd_dur[file][first + i] = ODD_NO;
			slot_set(&f->dur[first + i], p);
		} else {
			page_drop(p);
		}
	}
}

static enum fate
choose_fate(uint32_t mood)
{
	if (mood == 0)
		return KEEP;
	if (mood == 1)
		return DROP;
	return (enum fate)below(FATE_NR);
}

static void
cut_list(struct sim_io *list, unsigned nr, const uint32_t *mood)
{
	for (unsigned i = 0; i < nr; i++) {
		struct sim_io *io = &list[i];

		if (io->kind == IO_WRITE) {
			is_cut_short(io);
			take_pages(io);
			cut_write(io->file, io->first, io->page, io->nr,
				  choose_fate(mood[disk_of[io->file]]));
			free(io->page);
		}
		io->page = NULL;
	}
}

void
simdisk_cut(void)
{
	uint32_t mood[DISKS_MAX] = { below(6) };

	trace(8, inflight_nr, dirty_nr);
	simdisk_cut_units = 0;
	for (int d = 1; d < prof.disks; d++)
		mood[d] = below(6);
	settle_lost();
	for (unsigned i = 0; i < dirty_nr;) {
		struct page *page[FILE_PAGES];
		unsigned n = 0;
		struct dirty w = dirty[i];

		while (i < dirty_nr && dirty[i].seq == w.seq && dirty[i].nr == w.nr + n && n < FILE_PAGES)
			page[n++] = dirty[i++].page;
		cut_write(w.file, w.nr, page, n, choose_fate(mood[disk_of[w.file]]));
	}
	dirty_nr = 0;
	cut_list(late, late_nr, mood);
	cut_list(inflight, inflight_nr, mood);
	inflight_nr = late_nr = weight = 0;
	memcpy(odd, odd_dur, sizeof odd);
	for (int n = 0; n < file_nr(); n++) {
		struct file *f = &files[n];

		for (uint32_t i = 0; i < f->page_nr; i++) {
			if (f->cur[i] != f->dur[i])
				slot_set(&f->cur[i], f->dur[i] ? page_ref(f->dur[i]) : NULL);
		}
	}
	dirs[0] = dirs[below((uint32_t)dir_nr)];
	dir_nr = 1;
}

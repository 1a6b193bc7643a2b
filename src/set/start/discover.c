/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the disks of a start, all in parallel, and identifies them; see start_int.h. */
#include "set/start/start_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int __attribute__((format(printf, 5, 6)))
start_refuse_with(struct start *s, int error, enum advice_id advice, const char *path, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->err, s->err_len, fmt, ap);
	va_end(ap);
	advice_add(s->err, s->err_len, advice, &(struct advice_values){ .path = path });
	return error;
}

const char *
start_path(const struct disk *d)
{
	return d->conf.disks.disk->path;
}

/* ---- all disks at once ---- */

static void *
step_main(void *arg)
{
	struct disk *d = arg;

	d->error = d->step(d);
	return NULL;
}

void
start_each(struct start *s, bool all, int (*fn)(struct disk *d))
{
	struct disk *mine = NULL;

	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		if (all ? d->is_out : !d->st)
			continue;
		d->step = fn;
		/* The step of one disk runs on this thread, so a store of one disk needs no other thread. */
		if (!mine)
			mine = d;
		else
			d->has_thread = pthread_create(&d->thread, NULL, step_main, d) == 0;
		if (d != mine && !d->has_thread)
			step_main(d);
	}
	if (mine)
		step_main(mine);
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].has_thread)
			pthread_join(s->disk[i].thread, NULL);
		s->disk[i].has_thread = false;
	}
}

/* Checks that an opened disk is the disk that the record of the store (store/record.h) names. Returns 0, or
 * -ENODEV after any error, so that the disk counts as absent. */
static int
check_unnamed(struct disk *d, int error)
{
	const struct store_record *record = d->of->conf->disks.record;
	char why[sizeof d->err];

	if (error == 0 && (memcmp(d->id.uuid, d->unnamed->uuid, UUID_BYTES) != 0 ||
			   memcmp(d->id.store_uuid, record->store_uuid, UUID_BYTES) != 0)) {
		store_stop(d->st);
		d->st = NULL;
		snprintf(d->err, sizeof d->err, "%.400s: another disk is there", d->unnamed->path);
		error = -ENODEV;
	}
	if (error == 0)
		return 0;
	snprintf(why, sizeof why, "%s", d->err);
	snprintf(d->err, sizeof d->err, "store.disks does not name it; it was at %.*s",
		 (int)advice_problem(why), why);
	/* The UUID in the record identifies the member. The identity that was read is that of another disk at
	 * the member's last path, and is cleared. */
	memset(&d->id, 0, sizeof d->id);
	memcpy(d->id.uuid, d->unnamed->uuid, UUID_BYTES);
	return -ENODEV;
}

int
start_open_one(struct disk *d)
{
	int e = d->of->ops->open(&d->conf, &d->st, &d->id, d->err, sizeof d->err);

	return d->unnamed ? check_unnamed(d, e) : e;
}

/* ---- identities of the disks ---- */

bool
start_is_known(const struct disk *d)
{
	static const uint8_t none[UUID_BYTES];

	return memcmp(d->id.uuid, none, UUID_BYTES) != 0;
}

int
start_refuse_disk(struct start *s, const struct disk *d)
{
	char name[DISK_NAME_BYTES];

	disk_name_of(name, d->id.uuid, "");
	start_refuse(s, d->error, "%s", d->err);
	if (!strstr(d->err, name))
		advice_insert(s->err, s->err_len, " (disk %s)", name);
	return d->error;
}

bool
start_is_unmade(const struct disk *d)
{
	switch (-d->error) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
	case ENOTDIR:
	case ENOMEDIUM:
	case ENOTRECOVERABLE:
		return !d->st && !d->id.is_made;
	default:
		return false;
	}
}

bool
start_is_none_made(const struct start *s)
{
	int unmade = 0;

	for (int i = 0; i < s->nr; i++)
		unmade += start_is_unmade(&s->disk[i]);
	return unmade == s->nr && !s->conf->disks.accept_missing_nr;
}

void
start_say_unmade(const struct disk *d, char *err, size_t err_len)
{
	const struct store_record *record = d->of->conf->disks.record;
	struct advice_values v = { .path = start_path(d) };
	char text[UUID_TEXT];

	snprintf(err, err_len, "%s", d->err);
	if (record) {
		uuid_write(text, record->store_uuid);
		advice_insert(
			err, err_len,
			"; this daemon has served store %s, and none of its disks is there: is the file "
			"system mounted, the device there?",
			text);
		advice_add(err, err_len, ADVICE_NONE_THERE, &v);
	} else if (start_is_bare(d)) {
		advice_insert(err, err_len, "; is it mounted?");
		advice_add(err, err_len, ADVICE_NO_STORE, &v);
	}
}

bool
start_was_made(const struct disk *d)
{
	return d->st || d->id.is_made || start_is_known(d);
}

bool
start_is_bare(const struct disk *d)
{
	return !d->st && !d->id.is_made && (d->error == -ENOENT || d->error == -ENOTRECOVERABLE);
}

/* Returns true for the error of a missing disk, or of a disk without a store. After any other error the start
 * is refused. */
static bool
is_absence(int error)
{
	switch (-error) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
	case ENOTDIR:
	case ENOMEDIUM:
	case EIO:
	case ENODATA:
	case EREMOTEIO:
	case EUCLEAN:
	case EROFS:
	case ENOTRECOVERABLE:
		return true;
	default:
		return false;
	}
}

int
start_check_opened(struct start *s)
{
	struct disk *first = NULL, *absent = NULL;

	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		/* An earlier attempt of this start has excluded the disk as drained. */
		if (d->is_drained)
			continue;
		first = first || !d->st ? first : d;
		absent = absent || d->st ? absent : d;
		if (!d->st && !is_absence(d->error))
			return start_refuse_disk(s, d);
	}
	if (!first && start_is_none_made(s)) {
		start_say_unmade(absent, s->err, s->err_len);
		return absent->error;
	}
	return first ? 0 : start_refuse_disk(s, absent);
}

const struct disk *
start_find_store(const struct start *s)
{
	const struct disk *best = NULL;
	int best_nr = 0;

	for (int i = 0; i < s->nr; i++) {
		int nr = 0;

		for (int j = 0; s->disk[i].st && j < s->nr; j++)
			nr += s->disk[j].st &&
			      memcmp(s->disk[i].id.store_uuid, s->disk[j].id.store_uuid, UUID_BYTES) == 0;
		if (nr > best_nr) {
			best = &s->disk[i];
			best_nr = nr;
		}
	}
	return best;
}

/* Checks that the disks belong to the store of the record. Returns 0 or -errno. */
static int
check_record(struct start *s)
{
	const struct store_record *record = s->conf->disks.record;
	const struct disk *of = start_find_store(s);
	char ours[UUID_TEXT], theirs[UUID_TEXT];

	if (!record || memcmp(of->id.store_uuid, record->store_uuid, UUID_BYTES) == 0)
		return 0;
	uuid_write(ours, record->store_uuid);
	uuid_write(theirs, of->id.store_uuid);
	return start_refuse(
		s, -EXDEV,
		"%s is of store %s, and this daemon has served store %s: is the right file system "
		"mounted, the right configuration used?",
		start_path(of), theirs, ours);
}

int
start_check_store(struct start *s)
{
	const struct disk *of = start_find_store(s);
	int e = check_record(s);

	if (e < 0)
		return e;

	for (int i = 0; i < s->nr; i++) {
		const struct disk *d = &s->disk[i];
		char disk[DISK_NAME_BYTES], its[UUID_TEXT], ours[UUID_TEXT];

		if (!d->st)
			continue;
		disk_name_of(disk, d->id.uuid, start_path(d));
		uuid_write(its, d->id.store_uuid);
		uuid_write(ours, of->id.store_uuid);
		if (memcmp(d->id.store_uuid, of->id.store_uuid, UUID_BYTES) != 0)
			return start_refuse_with(s, -EINVAL, ADVICE_FOREIGN_DISK, start_path(d),
						 "disk %s is of another store, %s; %s is of %s", disk, its,
						 start_path(of), ours);
		for (int j = 0; j < i; j++) {
			if (s->disk[j].st && memcmp(s->disk[j].id.uuid, d->id.uuid, UUID_BYTES) == 0)
				return start_refuse_with(
					s, -EINVAL, ADVICE_COPIED_DISK, start_path(d),
					"%s says to be disk %s, too: one is a copy of the other",
					start_path(&s->disk[j]), disk);
		}
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The disks of a start are opened, all in parallel, and identified; see start_int.h. */
#include "set/start/start_int.h"

#include "set/map/set_rules.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int __attribute__((format(printf, 3, 4))) start_refuse(struct start *s, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->err, s->err_len, fmt, ap);
	va_end(ap);
	return error;
}

const char *
start_path(const struct disk *d)
{
	return d->conf.disks.disk->path;
}

/* ---- all disks at once ---- */

struct step {
	struct disk *d;
	int (*fn)(struct disk *d);
};

static void *
step_main(void *arg)
{
	struct step *s = arg;

	s->d->error = s->fn(s->d);
	return NULL;
}

void
start_each(struct start *s, bool all, int (*fn)(struct disk *d))
{
	struct step step[STORE_DISKS_MAX];
	struct disk *mine = NULL;

	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		if (all ? d->is_out : !d->st)
			continue;
		step[i] = (struct step){ d, fn };
		/* The first disk runs on this thread: a store of one disk needs no other thread. */
		if (!mine)
			mine = d;
		else
			d->has_thread = pthread_create(&d->thread, NULL, step_main, &step[i]) == 0;
		if (d != mine && !d->has_thread)
			step_main(&step[i]);
	}
	if (mine)
		step_main(&step[mine - s->disk]);
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].has_thread)
			pthread_join(s->disk[i].thread, NULL);
		s->disk[i].has_thread = false;
	}
}

int
start_open_one(struct disk *d)
{
	return d->of->ops->open(&d->conf, &d->st, &d->id, d->err, sizeof d->err);
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
	char text[UUID_TEXT];

	uuid_write(text, d->id.uuid);
	return start_is_known(d) && !strstr(d->err, text)
		       ? start_refuse(s, d->error, "%s (disk %s)", d->err, text)
		       : start_refuse(s, d->error, "%s", d->err);
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
	case EROFS:
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
	bool is_seen = d->error == -ENOENT || d->error == -ENOTRECOVERABLE;

	snprintf(err, err_len, "%s%s", d->err, is_seen ? "; gantryd --format makes one" : "");
}

/* Returns true for the errors of a missing disk, or of a disk without a store. Any other error needs an
 * operator. */
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

		/* A previous attempt has excluded this disk. */
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

int
start_check_store(struct start *s)
{
	const struct disk *of = start_find_store(s);

	for (int i = 0; i < s->nr; i++) {
		const struct disk *d = &s->disk[i];
		char disk[UUID_TEXT], its[UUID_TEXT], ours[UUID_TEXT];

		if (!d->st)
			continue;
		uuid_write(disk, d->id.uuid);
		uuid_write(its, d->id.store_uuid);
		uuid_write(ours, of->id.store_uuid);
		if (memcmp(d->id.store_uuid, of->id.store_uuid, UUID_BYTES) != 0)
			return start_refuse(
				s, -EINVAL,
				"%s: disk %s is of another store, %s; %s is of %s: take it off store.disks, "
				"or put the right one there",
				start_path(d), disk, its, start_path(of), ours);
		for (int j = 0; j < i; j++) {
			if (s->disk[j].st && memcmp(s->disk[j].id.uuid, d->id.uuid, UUID_BYTES) == 0)
				return start_refuse(
					s, -EINVAL,
					"%s and %s: both say to be disk %s, so one is a copy of the other; "
					"take the copy off store.disks",
					start_path(&s->disk[j]), start_path(d), disk);
		}
	}
	return 0;
}

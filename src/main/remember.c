/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon remembers which store it has had, outside of its disks: one record (store/record.h) in store.state_dir for each
 * configuration file.  Without it an empty mount point looks like a new machine, and a disk that was added while the daemon served is
 * lost for a start whose configuration does not name it.
 *
 * On RADOS the pools are the memory, and there is no record.
 */
#include "main/daemon.h"

#include "base/advice.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/disk_name.h"
#include "base/path.h"
#include "store/record.h"
#include "store/store.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define AGAIN_NS (30 * NS_PER_S) /* after a write that failed */

struct remember {
	char file[PATH_MAX];  /* "": there is no place */
	char about[PATH_MAX]; /* a comment in the file */
	pthread_mutex_t lock; /* protects the next ones */
	bool is_known;
	struct store_record record;
	char failed[512]; /* why the last write failed; "": it did not */
	char *named[CONF_DISKS_MAX];
	int named_nr;

	struct store_record_disk joining; /* a disk that is being added; path "": none */

	_Atomic bool writes;      /* a thread writes */
	uint64_t again_ns;        /* of the main thread */
	struct store_record next; /* of the main thread */
};

int
remember_open(const struct conf *conf, const struct conf_source *source, struct remember **ret_m, char *err,
	      size_t err_len)
{
	struct remember *m = calloc(1, sizeof *m);
	int e;

	*ret_m = m;
	if (!m) {
		snprintf(err, err_len, "no memory");
		return -ENOMEM;
	}
	pthread_mutex_init(&m->lock, NULL);
	remember_named(m, conf);
	if (conf->store.backend != BACKEND_DISKS ||
	    daemon_state_path(conf, source, "store", m->file, sizeof m->file) < 0) {
		m->file[0] = 0;
		return 0;
	}
	snprintf(m->about, sizeof m->about, "of %s; written by gantryd, read before each start",
		 source->file ? source->file : CONF_DEFAULT_FILE);
	e = record_read(m->file, &m->record, err, err_len);
	m->is_known = e == 0;
	return e == -ENOENT ? 0 : e;
}

int
remember_store_conf(const struct conf *conf, const struct conf_source *source, struct store_disk_conf *disks,
		    struct store_conf *ret_conf, struct remember **ret_m, char *err, size_t err_len)
{
	int e = daemon_store_conf(conf, disks, ret_conf, err, err_len), r;

	*ret_m = NULL;
	if (e < 0)
		return e;
	r = remember_open(conf, source, ret_m, err, err_len);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		log_error("%s; a start on all disks of the store writes it again, and where it names none "
			  "that is "
			  "needed, it may be removed",
			  err);
	err[0] = 0;
	if (conf->store.backend == BACKEND_DISKS)
		ret_conf->disks.record = remember_known(*ret_m);
	return 0;
}

void
remember_way_out(const struct remember *m, int error, char *out, size_t cap)
{
	char store[UUID_TEXT] = "";

	if (error != -EXDEV)
		return;
	if (remember_known(m))
		uuid_write(store, remember_known(m)->store_uuid);
	advice_add(out, cap, ADVICE_OTHER_STORE,
		   &(struct advice_values){ .store = store, .record = remember_file(m) });
}

static void
drop_named(struct remember *m)
{
	for (int i = 0; i < m->named_nr; i++)
		free(m->named[i]);
	m->named_nr = 0;
}

void
remember_free(struct remember *m)
{
	struct timespec ts = { .tv_nsec = NS_PER_MS };

	if (!m)
		return;
	while (atomic_load(&m->writes))
		nanosleep(&ts, NULL);
	drop_named(m);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

const struct store_record *
remember_known(const struct remember *m)
{
	return m && m->is_known ? &m->record : NULL;
}

const char *
remember_file(const struct remember *m)
{
	return m ? m->file : "";
}

bool
remember_keeps(struct remember *m)
{
	bool keeps;

	pthread_mutex_lock(&m->lock);
	keeps = m->is_known && !m->failed[0];
	pthread_mutex_unlock(&m->lock);
	return keeps;
}

/* ---- writing ---- */

static bool
is_same(const struct store_record *a, const struct store_record *b)
{
	return a->nr == b->nr && memcmp(a->store_uuid, b->store_uuid, UUID_BYTES) == 0 &&
	       memcmp(a->disk, b->disk, (size_t)a->nr * sizeof a->disk[0]) == 0;
}

/* Writes it if it is news.  The caller holds the lock. */
static int
write_locked(struct remember *m, const struct store_record *record, char *err, size_t err_len)
{
	int e;

	if (!m->file[0] || (m->is_known && is_same(&m->record, record))) {
		m->failed[0] = 0;
		return 0;
	}
	e = record_write(m->file, record, m->about, err, err_len);
	snprintf(m->failed, sizeof m->failed, "%s", e < 0 ? err : "");
	if (e == 0) {
		m->is_known = true;
		m->record = *record;
	}
	return e;
}

/* Adds a disk with an absolute path. */
static void
add(struct store_record *record, const uint8_t uuid[UUID_BYTES], uint64_t size_bytes, const char *path)
{
	char real[PATH_MAX];

	record_add(record, uuid, size_bytes, path[0] && path[0] != '/' && realpath(path, real) ? real : path);
}

/* Makes the record of a store that serves.  A missing disk is where it was.  The caller holds the lock. */
static bool
make(const struct remember *m, const struct store *st, struct store_record *ret_record)
{
	const struct store_record *known = m->is_known ? &m->record : NULL;
	const struct store_record_disk *j = &m->joining;
	struct store_unit_info info;

	memset(ret_record, 0, sizeof *ret_record);
	for (int i = 0; i < store_unit_nr(st); i++) {
		const struct store_record_disk *was;
		uint8_t uuid[UUID_BYTES];

		store_unit_info(st, i, &info);
		if (!info.store_uuid || !info.uuid || uuid_parse(info.uuid, uuid) < 0)
			return false;
		memcpy(ret_record->store_uuid, info.store_uuid, UUID_BYTES);
		if (info.state == UNIT_DRAINED)
			continue;
		was = known && info.state == UNIT_MISSING ? record_find(known, uuid) : NULL;
		if (was && was->path[0])
			record_add(ret_record, uuid, was->size_bytes, was->path);
		else
			add(ret_record, uuid, info.size_bytes, info.name ? info.name : "");
	}
	if (j->path[0] && !record_find(ret_record, j->uuid))
		record_add(ret_record, j->uuid, j->size_bytes, j->path);
	return ret_record->nr > 0;
}

int
remember_store(struct remember *m, const struct store *st, char *err, size_t err_len)
{
	struct store_record *next = malloc(sizeof *next);
	int e = next ? 0 : -ENOMEM;

	if (e < 0)
		snprintf(err, err_len, "no memory for the record of the store");
	pthread_mutex_lock(&m->lock);
	if (e == 0 && make(m, st, next))
		e = write_locked(m, next, err, err_len);
	pthread_mutex_unlock(&m->lock);
	free(next);
	return e;
}

void
remember_joins(struct remember *m, const uint8_t uuid[UUID_BYTES], uint64_t size_bytes, const char *path)
{
	struct store_record *next = malloc(sizeof *next);
	char err[512] = "no memory for the record of the store";
	int e = next ? 0 : -ENOMEM;

	pthread_mutex_lock(&m->lock);
	memcpy(m->joining.uuid, uuid, UUID_BYTES);
	m->joining.size_bytes = size_bytes;
	snprintf(m->joining.path, sizeof m->joining.path, "%s", path);
	if (e == 0 && m->is_known) {
		*next = m->record;
		record_add(next, uuid, size_bytes, path);
		e = write_locked(m, next, err, sizeof err);
	}
	pthread_mutex_unlock(&m->lock);
	free(next);
	if (e < 0)
		log_error("%s", err);
}

void
remember_joined(struct remember *m)
{
	pthread_mutex_lock(&m->lock);
	m->joining.path[0] = 0;
	pthread_mutex_unlock(&m->lock);
}

int
remember_made(struct remember *m, const struct store_record *made, char *err, size_t err_len)
{
	struct store_record *next = calloc(1, sizeof *next);
	int e;

	if (!next) {
		snprintf(err, err_len, "no memory for the record of the store");
		return -ENOMEM;
	}
	memcpy(next->store_uuid, made->store_uuid, UUID_BYTES);
	for (int i = 0; i < made->nr; i++)
		add(next, made->disk[i].uuid, made->disk[i].size_bytes, made->disk[i].path);
	pthread_mutex_lock(&m->lock);
	e = write_locked(m, next, err, err_len);
	pthread_mutex_unlock(&m->lock);
	free(next);
	return e;
}

int
remember_less(struct remember *m, const uint8_t (*uuid)[UUID_BYTES], int nr, char *err, size_t err_len)
{
	struct store_record *next = calloc(1, sizeof *next);
	int e = next ? 0 : -ENOMEM;

	pthread_mutex_lock(&m->lock);
	if (e == 0 && m->is_known) {
		memcpy(next->store_uuid, m->record.store_uuid, UUID_BYTES);
		for (int i = 0; i < m->record.nr; i++) {
			const struct store_record_disk *d = &m->record.disk[i];
			bool goes = false;

			for (int j = 0; j < nr; j++)
				goes |= memcmp(d->uuid, uuid[j], UUID_BYTES) == 0;
			if (!goes)
				record_add(next, d->uuid, d->size_bytes, d->path);
		}
		e = write_locked(m, next, err, err_len);
	}
	pthread_mutex_unlock(&m->lock);
	free(next);
	return e;
}

void
remember_start(struct daemon *d)
{
	char err[512] = "";

	if (d->conf->store.backend == BACKEND_DISKS)
		below_look(atomic_load(&d->store));
	if (remember_store(d->remember, atomic_load(&d->store), err, sizeof err) < 0)
		log_error("%s; until it can be, a missing mount may look like a new machine", err);
	else if (d->conf->store.backend == BACKEND_DISKS && !d->remember->file[0])
		log_note("this store cannot be remembered outside of its disks: there is no store.state_dir");
}

static void *
write_main(void *arg)
{
	struct daemon *d = arg;
	char err[512] = "";

	if (remember_store(d->remember, atomic_load(&d->store), err, sizeof err) < 0)
		log_warn("%s", err);
	atomic_store(&d->remember->writes, false);
	return NULL;
}

void
remember_look(struct daemon *d)
{
	struct remember *m = d->remember;
	uint64_t now = clock_ns();
	bool is_news;
	pthread_t thread;

	if (!m || !m->file[0] || now < m->again_ns || atomic_load(&m->writes) ||
	    pthread_mutex_trylock(&m->lock) != 0)
		return;
	is_news =
		make(m, atomic_load(&d->store), &m->next) && !(m->is_known && is_same(&m->record, &m->next));
	m->again_ns = m->failed[0] ? now + AGAIN_NS : 0;
	pthread_mutex_unlock(&m->lock);
	if (!is_news)
		return;
	atomic_store(&m->writes, true);
	if (pthread_create(&thread, NULL, write_main, d) == 0)
		pthread_detach(thread);
	else
		atomic_store(&m->writes, false);
}

/* ---- disks that the configuration does not name ---- */

void
remember_named(struct remember *m, const struct conf *conf)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	drop_named(m);
	for (int i = 0; i < conf->store.disk_nr; i++) {
		m->named[m->named_nr] = strdup(conf->store.disks[i].path);
		m->named_nr += m->named[m->named_nr] != NULL;
	}
	pthread_mutex_unlock(&m->lock);
}

static bool
is_named(const struct remember *m, const char *path)
{
	for (int i = 0; i < m->named_nr; i++) {
		if (path_same(m->named[i], path))
			return true;
	}
	return false;
}

bool
remember_names_all(struct remember *m, const struct store *st)
{
	bool is_used, is_all = m->named_nr > 0;

	pthread_mutex_lock(&m->lock);
	for (int n = 0; n < m->named_nr; n++) {
		is_used = false;
		for (int i = 0; i < store_unit_nr(st); i++) {
			struct store_unit_info info;

			store_unit_info(st, i, &info);
			is_used |= path_same(m->named[n], info.name);
		}
		is_all &= is_used;
	}
	for (int i = 0; i < store_unit_nr(st); i++) {
		struct store_unit_info info;

		store_unit_info(st, i, &info);
		is_all &= info.state == UNIT_DRAINED || is_named(m, info.name);
	}
	pthread_mutex_unlock(&m->lock);
	return is_all;
}

void
remember_line(const char *path, uint64_t size_bytes, char *out, size_t cap)
{
	static const char *const units[] = { "", "KiB", "MiB", "GiB", "TiB" };
	char quoted[2 * PATH_MAX];
	size_t n = 0;
	struct stat st;
	int unit = 0;

	for (const char *p = path; *p && n + 3 < sizeof quoted; p++) {
		if (*p == '"' || *p == '\\')
			quoted[n++] = '\\';
		quoted[n++] = *p;
	}
	quoted[n] = '\0';
	/* A device is as large as it is, or as the line said; one that is away is not known to be a device. */
	if (!size_bytes || (stat(path, &st) == 0 && S_ISBLK(st.st_mode))) {
		snprintf(out, cap, "- { path: \"%s\" }", quoted);
		return;
	}
	for (; unit < 4 && size_bytes % 1024 == 0; unit++)
		size_bytes /= 1024;
	snprintf(out, cap, "- { path: \"%s\", size: %llu%s }", quoted, (unsigned long long)size_bytes,
		 units[unit]);
}

void
remember_health(struct daemon *d, struct admin_reasons *r)
{
	struct remember *m = d->remember;
	struct store *st = atomic_load(&d->store);
	char line[1200], remedy[1300], name[DISK_NAME_BYTES];

	if (!m || !st || d->conf->store.backend != BACKEND_DISKS || pthread_mutex_trylock(&m->lock) != 0)
		return;
	for (int i = 0; i < store_unit_nr(st); i++) {
		struct store_unit_info info;

		store_unit_info(st, i, &info);
		if (info.state == UNIT_DRAINED || info.state == UNIT_MISSING || is_named(m, info.name))
			continue;
		remember_line(info.name, info.size_bytes, line, sizeof line);
		advice_first(remedy, sizeof remedy, ADVICE_DISK_UNNAMED,
			     &(struct advice_values){ .line = line });
		admin_reason(r, REASON_DISK_UNNAMED, info.uuid,
			     "disk %s serves, and store.disks does not name it: %s",
			     disk_name(name, info.uuid, info.name), remedy);
	}
	if (m->failed[0])
		admin_reason(r, REASON_NOT_REMEMBERED, "", "%s", m->failed);
	pthread_mutex_unlock(&m->lock);
}

/* ---- messages for operators ---- */

/* Returns a disk on the file system of the record; NULL: there is none, or no record. */
static const char *
shares_with(const struct remember *m, const struct conf *conf)
{
	char dir[PATH_MAX];
	struct stat of, st;

	snprintf(dir, sizeof dir, "%s", m->file);
	if (strrchr(dir, '/'))
		*strrchr(dir, '/') = 0;
	if (!m->file[0] || stat(dir, &of) < 0)
		return NULL;
	for (int i = 0; i < conf->store.disk_nr; i++) {
		if (stat(conf->store.disks[i].path, &st) == 0 && S_ISDIR(st.st_mode) &&
		    st.st_dev == of.st_dev)
			return conf->store.disks[i].path;
	}
	return NULL;
}

void
remember_notes(const struct remember *m, const struct conf *conf, FILE *out)
{
	const char *disk = shares_with(m, conf);
	char line[1200], remedy[1300], name[DISK_NAME_BYTES], shared[600];

	if (conf->store.backend != BACKEND_DISKS)
		return;
	if (below_shared(conf, shared, sizeof shared))
		fprintf(out, "gantryd: %s\n", shared);
	if (!m->file[0])
		fputs("gantryd: this store cannot be remembered outside of its disks, as there is no "
		      "store.state_dir: a mount that is missing will look like a new machine\n",
		      out);
	if (disk)
		fprintf(out,
			"gantryd: %s is on one file system with the record of the store, %s: disks belong on "
			"mounts of their own\n",
			disk, m->file);
	for (int i = 0; m->is_known && i < m->record.nr; i++) {
		const struct store_record_disk *k = &m->record.disk[i];

		if (!k->path[0] || is_named(m, k->path))
			continue;
		remember_line(k->path, k->size_bytes, line, sizeof line);
		advice_first(remedy, sizeof remedy, ADVICE_DISK_UNNAMED,
			     &(struct advice_values){ .line = line });
		fprintf(out, "gantryd: store.disks does not name disk %s of this store: %s\n",
			disk_name_of(name, k->uuid, k->path), remedy);
	}
}

void
remember_show(const struct remember *m, const struct conf *conf, FILE *out)
{
	const char *disk = m ? shares_with(m, conf) : NULL;

	fputs("{\"file\":", out);
	json_string(out, m && m->file[0] ? m->file : NULL);
	fputs(",\"shares_with\":", out);
	json_string(out, disk);
	putc('}', out);
}

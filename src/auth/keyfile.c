/* SPDX-License-Identifier: Apache-2.0 */
/* A credentials file that is changed while others may read or change it, see keyfile.h. */
#include "auth/keyfile.h"

#include "auth/auth_int.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ACCESS_KEY_LEN 20 /* length of a generated access key */

struct keyfile {
	char *path;
	const char *name; /* in the folder */
	int dir_fd;       /* locked while the file may be changed */
	char *text;       /* NULL: there is no file yet */
	size_t len;
	struct auth_keys *keys;
	mode_t mode;
	bool give; /* to uid and gid */
	uid_t uid;
	gid_t gid;
};

/* ---- pairs ---- */

/* n characters of an alphabet, each as likely as the others. */
static int
random_text(char *out, size_t n, const char *alphabet)
{
	size_t letters = strlen(alphabet), i = 0;

	while (i < n) {
		unsigned char some[64];
		ssize_t got = getrandom(some, sizeof some, 0);

		if (got < 0 && errno != EINTR)
			return -errno;
		for (ssize_t k = 0; k < got && i < n; k++) {
			if (some[k] < 256 / letters * letters)
				out[i++] = alphabet[some[k] % letters];
		}
		OPENSSL_cleanse(some, sizeof some);
	}
	out[n] = 0;
	return 0;
}

/* One that no other can guess, for the access key of the pair. */
static int
make_secret(struct key_pair *ret)
{
	int e = random_text(ret->secret, sizeof ret->secret - 1,
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");

	if (e == 0)
		secret_id(ret->access_key, ret->secret, ret->secret_id);
	return e;
}

static int
make_pair(struct key_pair *ret)
{
	/* A letter in front, and no signs: neither a shell nor a YAML reader takes such a word for anything else. */
	int e = random_text(ret->access_key + 2, ACCESS_KEY_LEN - 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");

	memcpy(ret->access_key, "GK", 2);
	return e < 0 ? e : make_secret(ret);
}

/* ---- reading ---- */

static int
say(FILE *err, const char *path, int e)
{
	fprintf(err, "%s: %s\n", path, strerror(-e));
	return e;
}

/* The path with symbolic links followed, also where the file itself is not there. */
static char *
real_path(const char *path)
{
	char *real = realpath(path, NULL), *copy, *folder, *joined = NULL;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (real || errno != ENOENT || !*name)
		return real;
	copy = strdup(path);
	folder = copy ? realpath(dirname(copy), NULL) : NULL;
	if (folder && asprintf(&joined, "%s/%s", strcmp(folder, "/") ? folder : "", name) < 0)
		joined = NULL;
	free(folder);
	free(copy);
	return joined;
}

static int
open_folder(struct keyfile *f, bool change, FILE *err)
{
	char *folder = strdup(f->path);

	if (!folder)
		return say(err, f->path, -ENOMEM);
	f->dir_fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	if (f->dir_fd < 0)
		return say(err, f->path, -errno);
	/* The folder's lock and not the file's: another file takes its place. */
	if (!change || flock(f->dir_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return say(err, f->path, -errno);
	fprintf(err, "%s: another process changes it: waiting\n", f->path);
	while (flock(f->dir_fd, LOCK_EX) < 0) {
		if (errno != EINTR)
			return say(err, f->path, -errno);
	}
	return 0;
}

/* Whose it is, or will be: the daemon of that user has to read it. */
static void
find_owner(struct keyfile *f, const char *like)
{
	struct stat st;

	f->mode = 0600;
	if (f->text)
		f->give = stat(f->path, &st) == 0;
	else if (geteuid() == 0)
		f->give = (like && stat(like, &st) == 0) || fstat(f->dir_fd, &st) == 0;
	/* What root owns a group may read: the daemon's. */
	if (f->text && f->give && st.st_uid == 0)
		f->mode |= st.st_mode & 0040;
	if (f->give) {
		f->uid = st.st_uid;
		f->gid = st.st_gid;
	}
}

static int
fill(struct keyfile *f, bool change, FILE *err)
{
	int e = open_folder(f, change, err);
	struct stat st;

	if (e < 0)
		return e;
	if (change && lstat(f->path, &st) < 0 && errno == ENOENT)
		return credentials_parse("", 0, f->path, true, &f->keys, err);
	e = credentials_read(f->path, false, &f->text, &f->len, err);
	return e < 0 ? e : credentials_parse(f->text, f->len, f->path, true, &f->keys, err);
}

int
keyfile_open(const char *path, bool change, const char *like, struct keyfile **ret, FILE *err)
{
	struct keyfile *f = calloc(1, sizeof *f);
	int e;

	if (!f)
		return say(err, path, -ENOMEM);
	f->dir_fd = -1;
	f->path = real_path(path);
	e = f->path ? 0 : say(err, path, -errno);
	if (e == 0) {
		f->name = strrchr(f->path, '/') + 1;
		e = fill(f, change, err);
	}
	if (e < 0) {
		keyfile_close(f);
		return e;
	}
	find_owner(f, like);
	*ret = f;
	return 0;
}

static void
wipe_text(struct keyfile *f)
{
	if (f->text)
		OPENSSL_cleanse(f->text, f->len);
	free(f->text);
	f->text = NULL;
}

void
keyfile_close(struct keyfile *f)
{
	if (!f)
		return;
	wipe_text(f);
	auth_keys_put(f->keys);
	if (f->dir_fd >= 0)
		close(f->dir_fd);
	free(f->path);
	free(f);
}

const char *
keyfile_path(const struct keyfile *f)
{
	return f->path;
}

struct auth_keys *
keyfile_keys(const struct keyfile *f)
{
	return f->keys;
}

/* ---- writing ---- */

static int
write_all(int fd, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = write(fd, text + at, len - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int
write_beside(struct keyfile *f, const char *beside, const char *text, size_t len)
{
	int fd, e = 0;

	/* Under the lock it can only be what somebody who died has left. */
	if (unlinkat(f->dir_fd, beside, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(f->dir_fd, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* The group of a file that nobody but its owner may read is of no matter. */
	if (f->give && fchown(fd, f->uid, f->gid) < 0 && (f->uid != geteuid() || f->mode != 0600))
		e = -errno;
	if (e == 0 && fchmod(fd, f->mode) < 0)
		e = -errno;
	if (e == 0)
		e = write_all(fd, text, len);
	if (e == 0 && fsync(fd) < 0)
		e = -errno;
	if (close(fd) < 0 && e == 0)
		e = -errno;
	return e;
}

/* Takes the text over. */
static int
put_in_place(struct keyfile *f, char *text, size_t len, FILE *err)
{
	char beside[NAME_MAX + 1];
	int e = snprintf(beside, sizeof beside, ".%s.new", f->name) < (int)sizeof beside ? 0 : -ENAMETOOLONG;
	bool made = false;

	if (e == 0) {
		e = write_beside(f, beside, text, len);
		made = true;
	}
	if (e == 0 && renameat(f->dir_fd, beside, f->dir_fd, f->name) < 0)
		e = -errno;
	if (e == 0 && fsync(f->dir_fd) < 0)
		e = -errno;
	else if (e < 0 && made)
		unlinkat(f->dir_fd, beside, 0);
	wipe_text(f);
	f->text = text;
	f->len = len;
	return e < 0 ? say(err, f->path, e) : 0;
}

int
keyfile_new(struct keyfile *f, const struct key_wish *wish, struct key_pair *ret_pair, FILE *err)
{
	/* What a reader of the file is told at its head. */
	static const char head[] =
		"# Access keys of gantryd: gantryd.yaml(5), \"Access keys\".  `gantry key` adds and "
		"removes them, and keeps what else stands here.\n";
	char *text, made[AUTH_TIME_BYTES];
	struct key_wish w = *wish;
	size_t len;
	int e, taken;

	if (f->keys->nr == AUTH_KEYS_MAX) {
		fprintf(err, "%s: has %d keys already, and more it cannot have\n", f->path, AUTH_KEYS_MAX);
		return -ENOSPC;
	}
	do {
		e = make_pair(ret_pair);
		if (e < 0)
			return say(err, "random numbers", e);
	} while (keys_find(f->keys, span_of(ret_pair->access_key), &taken));
	w.made = auth_time_text((uint64_t)time(NULL), made);
	e = keyfile_add(f->text ? f->text : head, f->text ? f->len : sizeof head - 1, f->path, ret_pair, &w,
			&text, &len, err);
	return e < 0 ? e : put_in_place(f, text, len, err);
}

int
keyfile_revoke(struct keyfile *f, const char *access_key, const char *id, FILE *err)
{
	struct auth_entry *first;
	bool found = false;
	char *text;
	size_t len;
	int e, nr;

	first = keys_find(f->keys, span_of(access_key), &nr);
	for (int i = 0; i < nr; i++)
		found |= !id || strcmp(first[i].id, id) == 0;
	if (!found)
		return -ENOENT;
	e = keyfile_cut(f->text, f->len, f->path, access_key, id, &text, &len, err);
	return e < 0 ? e : put_in_place(f, text, len, err);
}

/* ---- a second secret ---- */

static bool
has_ended(const struct auth_entry *e, uint64_t now_s)
{
	return e->have_expires && e->expires_s <= now_s;
}

/* Names the secrets that stand in the way of another one. */
static void
say_busy(const struct keyfile *f, const struct auth_entry *first, int nr, uint64_t now_s, FILE *err)
{
	char text[AUTH_TIME_BYTES];
	int said = 0;

	fprintf(err, "%s: %s has several secrets already:", f->path, first->access_key);
	for (int i = 0; i < nr; i++) {
		if (has_ended(&first[i], now_s))
			continue;
		fprintf(err, "%s %s %s%s", said++ ? "," : "", first[i].id,
			first[i].have_expires ? "until " : "without an end",
			first[i].have_expires ? auth_time_text(first[i].expires_s, text) : "");
	}
	fputs("; another one can be made when one of them has ended, or was revoked (--secret ID)\n", err);
}

/* The one secret that has not ended. */
static int
find_live(const struct keyfile *f, const char *access_key, uint64_t now_s, const struct auth_entry **ret,
	  FILE *err)
{
	int nr, live = 0;
	const struct auth_entry *first = keys_find(f->keys, span_of(access_key), &nr);

	if (!first)
		return -ENOENT;
	for (int i = 0; i < nr; i++) {
		if (has_ended(&first[i], now_s))
			continue;
		*ret = &first[i];
		live++;
	}
	if (live > 1)
		say_busy(f, first, nr, now_s, err);
	else if (live == 0)
		fprintf(err, "%s: %s has expired: `gantry key new` makes another key\n", f->path, access_key);
	return live == 1 ? 0 : live ? -EBUSY : -EKEYEXPIRED;
}

static bool
id_is_taken(const struct keyfile *f, const struct key_pair *p)
{
	int nr;
	const struct auth_entry *first = keys_find(f->keys, span_of(p->access_key), &nr);

	for (int i = 0; i < nr; i++) {
		if (strcmp(first[i].id, p->secret_id) == 0)
			return true;
	}
	return false;
}

/* The text without the secrets of the key that have ended. */
static int
cut_ended(const struct keyfile *f, const struct auth_entry *live, uint64_t now_s, char **ret_text,
	  size_t *ret_len, FILE *err)
{
	const char *access_key = live->access_key;
	int nr, e = 0;
	const struct auth_entry *first = keys_find(f->keys, span_of(access_key), &nr);
	char *text = malloc(f->len + 1), *shorter;
	size_t len = f->len, shorter_len;

	if (!text)
		return say(err, f->path, -ENOMEM);
	memcpy(text, f->text, len);
	for (int i = 0; i < nr && e == 0; i++) {
		/* The same secret with another session token is not cut: it has the same id. */
		if (!has_ended(&first[i], now_s) || strcmp(first[i].id, live->id) == 0)
			continue;
		e = keyfile_cut(text, len, f->path, access_key, first[i].id, &shorter, &shorter_len, err);
		if (e < 0)
			break;
		OPENSSL_cleanse(text, len);
		free(text);
		text = shorter;
		len = shorter_len;
	}
	if (e < 0) {
		OPENSSL_cleanse(text, len);
		free(text);
		return e;
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}

int
keyfile_rotate(struct keyfile *f, const char *access_key, uint64_t until_s, struct key_pair *ret_pair,
	       struct key_end *ret_old, FILE *err)
{
	uint64_t now_s = (uint64_t)time(NULL);
	struct key_turn t = { .pair = ret_pair, .until_s = until_s, .made_s = now_s };
	const struct auth_entry *old = NULL;
	char *text, *turned;
	size_t len, turned_len;
	int e = find_live(f, access_key, now_s, &old, err);

	if (e < 0)
		return e;
	snprintf(ret_pair->access_key, sizeof ret_pair->access_key, "%s", access_key);
	do {
		e = make_secret(ret_pair);
		if (e < 0)
			return say(err, "random numbers", e);
	} while (id_is_taken(f, ret_pair));
	t.old_id = old->id;
	ret_old->ends = old->have_expires || until_s != UINT64_MAX;
	ret_old->expires_s = old->have_expires && old->expires_s < until_s ? old->expires_s : until_s;
	memcpy(ret_old->secret_id, old->id, sizeof ret_old->secret_id);
	e = cut_ended(f, old, now_s, &text, &len, err);
	if (e < 0)
		return e;
	e = keyfile_turn(text, len, f->path, &t, &turned, &turned_len, err);
	OPENSSL_cleanse(text, len);
	free(text);
	return e < 0 ? e : put_in_place(f, turned, turned_len, err);
}

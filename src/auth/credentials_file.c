/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the credentials file, see auth.h: the checks of its owner, its mode and its size. On the main thread. */
#include "auth/auth_int.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What root owns may be read by a group, which is how a secret is mounted for a daemon that is not root.  whose: also the
 * owner and the mode matter. */
static int
check_file(int fd, const char *path, bool whose, FILE *err)
{
	struct stat st;
	mode_t others = 077;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid == 0 && geteuid() != 0)
		others = 037;
	if (!S_ISREG(st.st_mode))
		fprintf(err, "%s: is not a regular file\n", path);
	else if (whose && st.st_uid != geteuid() && st.st_uid != 0)
		fprintf(err, "%s: belongs to user %u; it must be the daemon's own or root's\n", path,
			(unsigned)st.st_uid);
	else if (whose && (st.st_mode & others))
		fprintf(err, "%s: others may read or write it (mode %04o); chmod 0600 it\n", path,
			(unsigned)st.st_mode & 07777);
	else if (st.st_size > (off_t)CREDENTIALS_BYTES_MAX)
		fprintf(err, "%s: is larger than %zu bytes\n", path, CREDENTIALS_BYTES_MAX);
	else
		return 0;
	return -EINVAL;
}

static int
read_all(int fd, char **ret_text, size_t *ret_len)
{
	char *text = malloc(CREDENTIALS_BYTES_MAX);
	size_t len = 0;

	if (!text)
		return -ENOMEM;
	while (len < CREDENTIALS_BYTES_MAX) {
		ssize_t n = read(fd, text + len, CREDENTIALS_BYTES_MAX - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int r = -errno;

			OPENSSL_cleanse(text, len);
			free(text);
			return r;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}

int
credentials_read(const char *path, bool whose, char **ret_text, size_t *ret_len, FILE *err)
{
	/* O_NONBLOCK: a pipe without a writer does not block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;

	if (fd < 0) {
		r = -errno;
		fprintf(err, "%s: %s\n", path, strerror(-r));
		return r;
	}
	r = check_file(fd, path, whose, err);
	if (r == 0) {
		r = read_all(fd, ret_text, ret_len);
		if (r < 0)
			fprintf(err, "%s: %s\n", path, strerror(-r));
	}
	close(fd);
	return r;
}

int
auth_keys_load(const char *path, struct auth_keys **ret_keys, FILE *err)
{
	char *text = NULL;
	size_t len = 0;
	int r = credentials_read(path, true, &text, &len, err);

	if (r < 0)
		return r;
	r = auth_keys_parse(text, len, path, ret_keys, err);
	OPENSSL_cleanse(text, len);
	free(text);
	return r;
}

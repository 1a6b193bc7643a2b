/* SPDX-License-Identifier: Apache-2.0 */
/* Parses an argument that is a directory, a file, or a URL; see tree.h. */
#include "client/cmd/move/tree.h"
#include "client/cmd/common/words.h"

#include "base/span.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn static void
no_memory(void)
{
	fprintf(stderr, "gantry: out of memory\n");
	exit(EXIT_FAILED);
}

void
place_init(struct place *p, const char *word)
{
	const char *host, *path, *key;
	int n;

	*p = (struct place){ .word = word, .is_url = words_is_url(word) };
	if (!p->is_url)
		return;
	if (strpbrk(word, "?#"))
		words_bad(NULL, "a URL with a '?' or '#' in it (in a key they are %3F and %23)", word);
	host = strstr(word, "://") + 3;
	path = host + strcspn(host, "/");
	key = *path ? path + 1 + strcspn(path + 1, "/") : path;
	p->has_bucket = *path && key > path + 1;
	p->bucket =
		p->has_bucket ? strndup(word, (size_t)(key - word)) : strndup(word, (size_t)(path - word));
	key += *key == '/';
	p->prefix = malloc(strlen(key) + 2);
	if (!p->bucket || !p->prefix)
		no_memory();
	n = span_decode((struct span){ key, strlen(key) }, 0, p->prefix, strlen(key) + 1);
	if (n < 0)
		words_bad(NULL, "the key of the URL cannot be decoded", word);
	p->prefix[n] = 0;
}

void
place_fini(struct place *p)
{
	free(p->bucket);
	free(p->prefix);
}

void
place_as_directory(struct place *p)
{
	size_t n = strlen(p->prefix);
	char *more;

	if (!n || p->prefix[n - 1] == '/')
		return;
	more = realloc(p->prefix, n + 2);
	if (!more)
		no_memory();
	p->prefix = more;
	memcpy(p->prefix + n, "/", 2);
}

char *
place_url(const struct place *p, const char *name)
{
	char *key, *url;

	if (asprintf(&key, "%s%s", p->prefix, name) < 0)
		return NULL;
	url = gantry_url_join(p->bucket, key);
	free(key);
	return url;
}

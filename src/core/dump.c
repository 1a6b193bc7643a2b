/* SPDX-License-Identifier: Apache-2.0 */
/* cores_dump(): asks every core for its live requests, waits a little, and shows what came. */
#define LOG_MODULE "core"
#include "core/core_int.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS (100 * NS_PER_MS)

struct dump {
	_Atomic int users; /* who asks, and cores_tell() */
	char id[32];       /* of one request; empty: all of them */
	int nr;
	struct {
		char *text;
		_Atomic bool done; /* the text is whole */
	} answer[];
};

static void
dump_free(void *arg)
{
	struct dump *d = arg;

	if (atomic_fetch_sub(&d->users, 1) != 1)
		return;
	for (int i = 0; i < d->nr; i++)
		free(d->answer[i].text);
	free(d);
}

static void
add_line(void *cookie, const char *text)
{
	fprintf(cookie, "%s\n", text);
}

static void
dump_core(struct core *c, void *arg)
{
	struct dump *d = arg;
	size_t len;
	FILE *f = open_memstream(&d->answer[c->index].text, &len);

	if (f) {
		if (d->id[0])
			reqs_show(c->reqs, d->id, add_line, f);
		else
			reqs_dump(c->reqs, add_line, f);
		fclose(f);
	}
	atomic_store(&d->answer[c->index].done, true);
}

static struct dump *
dump_new(const struct cores *cs, const char *id)
{
	struct dump *d = calloc(1, sizeof *d + (size_t)cs->nr * sizeof d->answer[0]);

	if (!d)
		return NULL;
	d->nr = cs->nr;
	snprintf(d->id, sizeof d->id, "%s", id);
	atomic_init(&d->users, 2);
	return d;
}

static void
show(char *text, void (*line)(void *cookie, const char *text), void *cookie)
{
	char *rest = NULL;

	for (char *p = text ? strtok_r(text, "\n", &rest) : NULL; p; p = strtok_r(NULL, "\n", &rest))
		line(cookie, p);
}

void
cores_dump(struct cores *cs, void (*line)(void *cookie, const char *text), void *cookie)
{
	struct dump *d = dump_new(cs, "");

	if (!d) {
		line(cookie, "out of memory");
		return;
	}
	cores_tell(cs, dump_core, dump_free, d, WAIT_NS);
	for (int i = 0; i < cs->nr; i++) {
		char stuck[64];

		if (atomic_load(&d->answer[i].done)) {
			show(d->answer[i].text, line, cookie);
		} else if (!atomic_load(&cs->core[i].pub.over)) {
			snprintf(stuck, sizeof stuck, "core %d does not answer", i);
			line(cookie, stuck);
		}
	}
	dump_free(d);
}

int
cores_show(struct cores *cs, const char *id, void (*line)(void *cookie, const char *text), void *cookie)
{
	struct dump *d = *id ? dump_new(cs, id) : NULL;
	int r = -ENOENT;

	if (!d)
		return *id ? -ENOMEM : -ENOENT;
	cores_tell(cs, dump_core, dump_free, d, WAIT_NS);
	for (int i = 0; i < cs->nr; i++) {
		if (!atomic_load(&d->answer[i].done)) {
			if (r < 0 && !atomic_load(&cs->core[i].pub.over))
				r = -EAGAIN;
		} else if (d->answer[i].text && *d->answer[i].text) {
			show(d->answer[i].text, line, cookie);
			r = 0;
		}
	}
	dump_free(d);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a credentials file with a second secret for an access key, see keyfile.h. */
#include "auth/keyfile.h"

#include "auth/keylayout.h"

#include <errno.h>
#include <stdlib.h>

#define EDITS_MAX 4

/* A part of the text that is replaced. */
struct edit {
	size_t at, end;
	char text[AUTH_SECRET_MAX + 64];
};

struct turn {
	const struct key_turn *t;
	struct layout *l;
	int item; /* index of the previous secret's entry; -1: not found */
	/* what changes in the previous entry, and in its copy; in the order of the text */
	struct edit old[EDITS_MAX], copy[EDITS_MAX];
	int old_nr, copy_nr;
};

/* ---- what changes ---- */

static void
put_edit(struct edit *list, int *nr, size_t at, size_t end, const char *text)
{
	int i = (*nr)++;

	for (; i > 0 && list[i - 1].at > at; i--)
		list[i] = list[i - 1];
	list[i].at = at;
	list[i].end = end;
	snprintf(list[i].text, sizeof list[i].text, "%s", text);
}

/* Replaces the value of a member; where the entry does not have it, puts it before the secret. */
static void
put_time(struct turn *t, struct edit *list, int *nr, const struct entry_nodes *n, const yaml_node_t *value,
	 const char *name, uint64_t s)
{
	char time[AUTH_TIME_BYTES], text[256];
	size_t at = layout_byte(t->l, n->secret_name->start_mark.index);

	auth_time_text(s, time);
	if (value) {
		snprintf(text, sizeof text, "\"%s\"", time);
		put_edit(list, nr, layout_byte(t->l, value->start_mark.index),
			 layout_byte(t->l, value->end_mark.index), text);
	} else if (n->in_braces) {
		snprintf(text, sizeof text, "%s: \"%s\", ", name, time);
		put_edit(list, nr, at, at, text);
	} else {
		snprintf(text, sizeof text, "%s: \"%s\"\n%*s", name, time,
			 (int)n->secret_name->start_mark.column, "");
		put_edit(list, nr, at, at, text);
	}
}

static void
find(void *cookie, int i, const struct entry_nodes *n)
{
	struct turn *t = cookie;
	const struct key_turn *want = t->t;
	char id[AUTH_SECRET_ID_LEN + 1], text[sizeof want->pair->secret + 1];
	const char *access_key = (const char *)n->access_key->data.scalar.value;
	uint64_t end_s = UINT64_MAX;
	size_t end;

	secret_id(access_key, (const char *)n->secret->data.scalar.value, id);
	if (strcmp(access_key, want->pair->access_key) != 0 || strcmp(id, want->old_id) != 0 ||
	    i >= t->l->nr || t->item >= 0)
		return;
	t->item = i;
	if (n->expires)
		credentials_time(span_of((const char *)n->expires->data.scalar.value), &end_s);
	if (want->until_s < end_s)
		put_time(t, t->old, &t->old_nr, n, n->expires, "expires", want->until_s);
	put_time(t, t->copy, &t->copy_nr, n, n->made, "made", want->made_s);
	end = layout_byte(t->l, n->secret->end_mark.index);
	/* A scalar in lines of its own ends where the next line begins. */
	snprintf(text, sizeof text, "%s%s", want->pair->secret, layout_begins_line(t->l, end) ? "\n" : "");
	put_edit(t->copy, &t->copy_nr, layout_byte(t->l, n->secret->start_mark.index), end, text);
	explicit_bzero(text, sizeof text);
}

/* ---- the text ---- */

/* Writes the text from `at` to `end` with the edits; one outside of it makes no text that is good. */
static void
write_edited(FILE *f, const char *text, size_t at, size_t end, const struct edit *list, int nr)
{
	for (int i = 0; i < nr; i++) {
		if (list[i].at < at || list[i].end > end)
			continue;
		fwrite(text + at, 1, list[i].at - at, f);
		fputs(list[i].text, f);
		at = list[i].end;
	}
	fwrite(text + at, 1, end - at, f);
}

static void
write_turned(FILE *f, const struct turn *t)
{
	const struct layout *l = t->l;
	const struct item *item = &l->item[t->item];
	size_t at = item->at, end = item->end;

	if (!l->in_brackets) {
		at = layout_unindented(l, at);
		end = layout_begins_line(l, end) ? end : layout_line_end(l, end);
	}
	fwrite(l->text, 1, at, f);
	write_edited(f, l->text, at, end, t->old, t->old_nr);
	if (l->in_brackets)
		fputs(", ", f);
	else if (!layout_begins_line(l, end))
		putc('\n', f);
	write_edited(f, l->text, at, end, t->copy, t->copy_nr);
	fwrite(l->text + end, 1, l->len - end, f);
}

/* ---- the result ---- */

/* The one entry of that secret; NULL: none, or several. */
static const struct auth_entry *
one(const struct auth_keys *keys, const char *access_key, const char *id)
{
	const struct auth_entry *found = NULL;

	for (int i = 0; i < keys->nr; i++) {
		if (strcmp(keys->entry[i].access_key, access_key) != 0 || strcmp(keys->entry[i].id, id) != 0)
			continue;
		if (found)
			return NULL;
		found = &keys->entry[i];
	}
	return found;
}

static bool
is_rest_same(const struct auth_keys *before, const struct auth_entry *was, const struct auth_keys *after,
	     const struct auth_entry *old, const struct auth_entry *new)
{
	int i = 0, j = 0;

	for (;;) {
		while (i < before->nr && &before->entry[i] == was)
			i++;
		while (j < after->nr && (&after->entry[j] == old || &after->entry[j] == new))
			j++;
		if (i == before->nr || j == after->nr)
			return i == before->nr && j == after->nr;
		if (!entry_same(&before->entry[i++], &after->entry[j++]))
			return false;
	}
}

static bool
is_turned(const struct auth_keys *before, const struct auth_keys *after, const void *cookie)
{
	const struct key_turn *t = cookie;
	const char *access_key = t->pair->access_key;
	const struct auth_entry *was = one(before, access_key, t->old_id),
				*old = one(after, access_key, t->old_id),
				*new = one(after, access_key, t->pair->secret_id);
	struct auth_entry want;

	if (!was || !old || !new || strcmp(new->secret + SECRET_BEGINS, t->pair->secret) != 0)
		return false;
	want = *was;
	if (t->until_s != UINT64_MAX && (!was->have_expires || t->until_s < was->expires_s)) {
		want.have_expires = true;
		want.expires_s = t->until_s;
	}
	if (!entry_same(&want, old))
		return false;
	want = *was;
	want.secret = new->secret;
	want.have_made = true;
	want.made_s = t->made_s;
	return entry_same(&want, new) && is_rest_same(before, was, after, old, new);
}

int
keyfile_turn(const char *text, size_t len, const char *source, const struct key_turn *t, char **ret_text,
	     size_t *ret_len, FILE *err)
{
	struct layout l = { .text = text, .len = len };
	struct turn turn = { .t = t, .l = &l, .item = -1 };
	struct auth_keys *before;
	FILE *f = NULL;
	int e = edit_begin(&l, source, &before, err);

	if (e < 0)
		return e;
	if (layout_nodes(&l, find, &turn) == 0)
		f = open_memstream(ret_text, ret_len);
	if (f && turn.item >= 0)
		write_turned(f, &turn);
	explicit_bzero(turn.copy, sizeof turn.copy);
	return edit_end(&l, source, before, is_turned, t, f, ret_text, ret_len, err);
}

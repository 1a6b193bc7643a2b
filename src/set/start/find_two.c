/* SPDX-License-Identifier: Apache-2.0 */
/* Searches an engine for buckets with two copies. */
#include "set/start/start.h"

#include "store/user.h"

#include <string.h>

/* A page of an engine's list of buckets, which ends at the first bucket with two copies. */
struct two_list {
	struct store_list ls;
	bool is_found;
	uint16_t last_len;
	char last[STORE_BUCKET_MAX];
};

static bool
on_bucket(struct store_list *ls, const struct store_entry *e)
{
	struct two_list *l = container_of(ls, struct two_list, ls);

	l->is_found = e->copies > 1;
	l->last_len = (uint16_t)e->name_len;
	memcpy(l->last, e->name, e->name_len);
	return !l->is_found;
}

int
set_find_two(struct store *engine, char ret_name[STORE_BUCKET_MAX + 1])
{
	struct two_list l = { .ls.more = true };
	char after[STORE_BUCKET_MAX];
	struct store_user *user;
	int r = store_user_new(&engine, 1, &user);

	if (r < 0)
		return r;
	while (r >= 0 && !l.is_found && l.ls.more) {
		memcpy(after, l.last, l.last_len);
		l.ls = (struct store_list){ .max = 1000, .entry = on_bucket };
		l.ls.after = l.last_len ? after : NULL;
		l.ls.after_len = l.last_len;
		r = STORE_DO(user, &l.ls.op, store_list(store_user_port(user, 0), &l.ls));
	}
	store_user_free(user);
	memcpy(ret_name, l.last, l.last_len);
	ret_name[l.last_len] = 0;
	return r < 0 ? r : l.is_found;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a target that only some operations have: see struct target. */
#include "dialect/dialect_int.h"

static void *
get(struct target *t, unsigned parts, enum target_part part, void *had)
{
	return parts & part && !had ? t->source.get(t->source.cookie, part) : NULL;
}

enum fault
target_get(struct target *t, unsigned parts, const char **ret_why)
{
	unsigned char *attrs = get(t, parts, TARGET_ATTRS, t->attrs);
	struct copy_source *copy = get(t, parts, TARGET_COPY, t->copy);
	struct list_query *list = get(t, parts, TARGET_LIST, t->list);

	if (attrs)
		t->attrs = attrs;
	if (copy) {
		memset(copy, 0, offsetof(struct copy_source, key));
		copy->key[0] = 0;
		t->copy = copy;
	}
	if (list) {
		memset(list, 0, offsetof(struct list_query, prefix));
		list->prefix[0] = list->after[0] = list->start_after[0] = 0;
		list->max = op_info[t->op].level == LEVEL_SERVICE ? 10000 : DIALECT_LIST_MAX;
		t->list = list;
	}
	if ((parts & TARGET_ATTRS && !t->attrs) || (parts & TARGET_COPY && !t->copy) ||
	    (parts & TARGET_LIST && !t->list))
		return refuse(ret_why, FAULT_BUSY, "There is no memory for what the request asks for.");
	return FAULT_NONE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a precondition says to what is there: the same for all back ends.  Pure; any thread. */
#include "store/ops.h"

#include <errno.h>
#include <string.h>

static bool
etag_in(const struct store_pre *pre, const struct store_etag *e)
{
	for (int i = 0; i < pre->etag_nr && i < STORE_PRE_ETAGS; i++) {
		if (pre->etags[i].parts == e->parts && memcmp(pre->etags[i].sum, e->sum, sizeof e->sum) == 0)
			return true;
	}
	return false;
}

static int
judge_kind(const struct store_pre *pre, const struct store_etag *there, uint64_t version)
{
	switch (pre->kind) {
	case PRE_ABSENT:
		return there ? -EEXIST : 0;
	case PRE_MATCH_ANY:
		return there ? 0 : -ENOENT;
	case PRE_MATCH:
		return !there ? -ENOENT : etag_in(pre, there) ? 0 : -ESTALE;
	case PRE_NONE_MATCH:
		return there && etag_in(pre, there) ? -EEXIST : 0;
	case PRE_VERSION:
		return !there ? -ENOENT : version == pre->version ? 0 : -ESTALE;
	default:
		return 0;
	}
}

/* What the client asked for comes first: whoever says "only if it is not there" is told that it is. */
int
store_judge(const struct store_pre *pre, const struct store_etag *there, uint64_t version)
{
	int e = judge_kind(pre, there, version);

	return e == 0 && pre->keep && there ? -EPERM : e;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of store.h about quotas, for each store that has a quota ledger. */
#include "model/quota.h"

#include "store/ops.h"

#include <errno.h>

int
store_set_quotas(struct store *st, const struct store_pattern_quota *quota, int nr)
{
	return st->quotas ? quota_set_rules(st->quotas, quota, nr) : nr ? -EOPNOTSUPP : 0;
}

int
store_bucket_quota(struct store *st, const char *name, size_t len, struct store_quota_info *ret_info)
{
	return st->quotas ? quota_look(st->quotas, name, len, ret_info) : -EOPNOTSUPP;
}

int
store_list_quotas(struct store *st, struct store_quota_info **ret_list)
{
	return st->quotas ? quota_list(st->quotas, ret_list) : -EOPNOTSUPP;
}

int
store_largest_buckets(struct store *st, struct store_quota_info *list, int max)
{
	return st->quotas ? quota_largest(st->quotas, list, max) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The lifecycle rule of `gantry bucket set --expire` among the rules of a bucket; see lifecycle.h. */
#include "s3doc/lifecycle_int.h"

#include <errno.h>

static bool
is_ours(const struct lifecycle_rule *r)
{
	return span_is(r->id, LIFECYCLE_EXPIRE_ID);
}

int
lifecycle_set_expire(struct text *out, const void *packed, size_t packed_len, uint32_t days)
{
	struct unpacker u = lifecycle_rules(packed, packed_len);
	struct lifecycle_rule r, ours = { .h = { .flags = R_ENABLED | R_DAYS, .days = days },
					  .id = span_of(LIFECYCLE_EXPIRE_ID),
					  .prefix = span_of(""),
					  .tags = span_of("") };
	int nr = 0;

	text_reset(out);
	pack_number(out, LIFECYCLE_FORM, 1);
	while (lifecycle_next(&u, &r)) {
		if (is_ours(&r))
			continue;
		lifecycle_pack(out, &r);
		nr++;
	}
	if (packed_len && u.bad)
		return -EINVAL;
	if (days) {
		lifecycle_pack(out, &ours);
		nr++;
	}
	if (nr == 0)
		text_reset(out);
	if (!text_ok(out))
		return -ENOMEM;
	return nr > LIFECYCLE_RULES_MAX || out->len > LIFECYCLE_PACKED_MAX ? -E2BIG : 0;
}

int
lifecycle_look(const void *packed, size_t packed_len, uint32_t *ret_days)
{
	struct unpacker u = lifecycle_rules(packed, packed_len);
	struct lifecycle_rule r;
	int others = 0;

	*ret_days = 0;
	while (lifecycle_next(&u, &r)) {
		if (is_ours(&r) && r.h.flags & R_ENABLED && r.h.flags & R_DAYS)
			*ret_days = r.h.days;
		else
			others++;
	}
	return others;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a bucket, as a PUT of them leaves them in the store.  Included once per program. */
#ifndef GANTRY_TESTS_WALK_RULES_H
#define GANTRY_TESTS_WALK_RULES_H

#include "tests/unit/walk/rig.h"

#include "dialect/text.h"
#include "s3doc/lifecycle.h"
#include "walk/bucket_config.h"

#define RULE(prefix, when)                                                                                   \
	"<Rule><Status>Enabled</Status><Filter><Prefix>" prefix "</Prefix></Filter>" when "</Rule>"
#define PAST "<Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration>"

_Static_assert(BUCKET_CORS == 1 && BUCKET_LIFECYCLE == 2 && BUCKET_TAGGING == 3, "they are on disks");

static inline void
set(const char *bucket, enum bucket_attr kind, const void *p, uint32_t len)
{
	static struct store_bucket_set op;
	static struct bucket_attrs ba;
	struct text all = { 0 };

	assert_int_equal(RIG_DO(&ba.stat.op, bucket_attrs_read(rig.port, bucket, strlen(bucket), &ba)), 0);
	bucket_attrs_replace(&ba, kind, p, len, &all);
	assert_true(text_ok(&all));
	assert_int_equal(
		RIG_DO(&op.op, store_bucket_set_attrs(rig.port, bucket, strlen(bucket), ba.stat.version,
						      all.p, (uint32_t)all.len, &op)),
		0);
	text_free(&all);
	bucket_attrs_free(&ba);
}

/* rules: NULL takes them away. */
static inline void
set_rules(const char *bucket, const char *rules)
{
	struct text packed = { 0 };
	char xml[1024];
	const char *why = NULL;

	snprintf(xml, sizeof xml, "<LifecycleConfiguration>%s</LifecycleConfiguration>", rules ? rules : "");
	if (rules)
		assert_int_equal(lifecycle_from_xml(xml, strlen(xml), &packed, &why), FAULT_NONE);
	set(bucket, BUCKET_LIFECYCLE, packed.p, (uint32_t)packed.len);
	text_free(&packed);
}

#endif

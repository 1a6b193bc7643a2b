/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations on uploads and their parts ask of the upload itself.  The core's thread. */
#include "ops/ops_int.h"

#include <errno.h>
#include <string.h>

enum fault
upload_fault(int err)
{
	return err == -ENOENT ? FAULT_NO_SUCH_UPLOAD : fault_of(err);
}

int
upload_declared(const void *attrs, size_t len, struct declared *ret)
{
	size_t n;
	const char *v = dialect_attr(attrs, len, ATTR_SUM_ALGORITHM, &n);

	memset(ret, 0, sizeof *ret);
	if (!v)
		return 0;
	if (sums_find_algorithm(v, n, &ret->kind) < 0)
		return -EBADMSG;
	ret->have = true;
	v = dialect_attr(attrs, len, ATTR_SUM_TYPE, &n);
	ret->type = v && n == 9 ? SUM_TYPE_COMPOSITE : SUM_TYPE_FULL_OBJECT;
	return 0;
}

/*
 * A part has the checksum that its upload declared, given or not (item 56), and none of the attributes that
 * an object has.  The upload's are read into the place of the latter: there is no other on this path, which
 * is one where bytes move.
 */
enum fault
part_prepare(struct req *rq, const char **ret_why)
{
	struct target *t = &rq->target;
	struct declared d;
	int r = rq->stat.op.result;

	if (r == 0)
		r = upload_declared(t->attrs, rq->stat.attrs_len, &d);
	t->attrs_len = 0;
	if (r < 0)
		return r == -EBADMSG ? FAULT_DAMAGED : upload_fault(r);
	if (!d.have)
		return FAULT_NONE;
	for (enum checksum_kind i = 0; i < SUM_MD5; i++) {
		const struct checksum *c = &t->sum[i];

		if (i != d.kind && (c->wanted || (c->given && !c->payload_hash))) {
			*ret_why =
				"The checksum is of another algorithm than the one that the upload declared.";
			return FAULT_BAD_REQUEST;
		}
	}
	/* The payload's hash is that checksum, if it is of that kind. */
	t->sum[d.kind].payload_hash = false;
	if (!t->sum[d.kind].given)
		t->sum[d.kind].wanted = true;
	return FAULT_NONE;
}

static bool
is_full(const struct target *t)
{
	if (t->algorithm == SUM_CRC64NVME)
		return true;
	/* Composite when nothing is said (protocol.md 4.6). */
	return t->checksum_type == SUM_TYPE_FULL_OBJECT;
}

int
upload_declare(struct target *t)
{
	const char *name = checksum_name(t->algorithm), *type = is_full(t) ? "FULL_OBJECT" : "COMPOSITE";
	char ttl[16];
	int r = 0;

	if (t->ttl_s) {
		snprintf(ttl, sizeof ttl, "%u", t->ttl_s);
		r = dialect_attrs_add(t->attrs, &t->attrs_len, DIALECT_ATTRS_MAX, ATTR_TTL, strlen(ATTR_TTL),
				      ttl, strlen(ttl));
	}
	if (r < 0 || !t->have_algorithm)
		return r;
	r = dialect_attrs_add(t->attrs, &t->attrs_len, DIALECT_ATTRS_MAX, ATTR_SUM_ALGORITHM,
			      strlen(ATTR_SUM_ALGORITHM), name, strlen(name));
	return r < 0 ? r
		     : dialect_attrs_add(t->attrs, &t->attrs_len, DIALECT_ATTRS_MAX, ATTR_SUM_TYPE,
					 strlen(ATTR_SUM_TYPE), type, strlen(type));
}

bool
upload_attr_stays(const char *name, size_t len)
{
	return (len != strlen(ATTR_SUM_ALGORITHM) || memcmp(name, ATTR_SUM_ALGORITHM, len) != 0) &&
	       (len != strlen(ATTR_TTL) || memcmp(name, ATTR_TTL, len) != 0);
}

uint32_t
upload_ttl(const void *attrs, size_t attrs_len)
{
	size_t len;
	const char *text = dialect_attr(attrs, attrs_len, ATTR_TTL, &len);
	uint64_t s;

	return text && span_decimal((struct span){ text, len }, &s) == 0 && s <= UINT32_MAX ? (uint32_t)s : 0;
}

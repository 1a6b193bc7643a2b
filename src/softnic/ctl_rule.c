/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softnicctl rule: reads fault rules from words like op=write, puts them into the fabric and prints them in
 * the same words.  fabric.h says how a rule gets in and out of the table, fault.c what it does.
 */
#include "softnic/ctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/random.h>
#include <infiniband/verbs.h>

static const char *const status_names[] = {
	"SUCCESS",
	"LOC_LEN_ERR",
	"LOC_QP_OP_ERR",
	"LOC_EEC_OP_ERR",
	"LOC_PROT_ERR",
	"WR_FLUSH_ERR",
	"MW_BIND_ERR",
	"BAD_RESP_ERR",
	"LOC_ACCESS_ERR",
	"REM_INV_REQ_ERR",
	"REM_ACCESS_ERR",
	"REM_OP_ERR",
	"RETRY_EXC_ERR",
	"RNR_RETRY_EXC_ERR",
	"LOC_RDD_VIOL_ERR",
	"REM_INV_RD_REQ_ERR",
	"REM_ABORT_ERR",
	"INV_EECN_ERR",
	"INV_EEC_STATE_ERR",
	"FATAL_ERR",
	"RESP_TIMEOUT_ERR",
	"GENERAL_ERR",
	"TM_ERR",
	"TM_RNDV_INCOMPLETE",
};
enum { STATUS_NR = sizeof(status_names) / sizeof(status_names[0]) };
_Static_assert(IBV_WC_REM_ACCESS_ERR == 10 && IBV_WC_TM_RNDV_INCOMPLETE == STATUS_NR - 1, "names in order");

static const char *const op_names[FAB_OP_NR] = {
	[FAB_OP_ANY] = "any",
	[FAB_OP_READ] = "read",
	[FAB_OP_WRITE] = "write",
	[FAB_OP_SEND] = "send",
	[FAB_OP_CREATE_QP] = "create_qp",
	[FAB_OP_REG_MR] = "reg_mr",
	[FAB_OP_CREATE_AH] = "create_ah",
	[FAB_OP_CREATE_CQ] = "create_cq",
	[FAB_OP_MODIFY_QP] = "modify_qp",
	[FAB_OP_DESTROY_QP] = "destroy_qp",
	[FAB_OP_DEREG_MR] = "dereg_mr",
	[FAB_OP_CREATE_DCT] = "create_dct",
};

static const struct {
	const char *name;
	int value;
} errors[] = {
	{ "ENOMEM", ENOMEM },           { "EINVAL", EINVAL },         { "EIO", EIO },
	{ "EAGAIN", EAGAIN },           { "EPERM", EPERM },           { "EFAULT", EFAULT },
	{ "ENOSPC", ENOSPC },           { "EBUSY", EBUSY },           { "ENODEV", ENODEV },
	{ "EACCES", EACCES },           { "ETIMEDOUT", ETIMEDOUT },   { "EHOSTUNREACH", EHOSTUNREACH },
	{ "ENETUNREACH", ENETUNREACH }, { "EOPNOTSUPP", EOPNOTSUPP },
};
enum { ERRORS_NR = sizeof(errors) / sizeof(errors[0]) };

const char *
ctl_status_name(unsigned status)
{
	return status < STATUS_NR ? status_names[status] : "?";
}

/* ---- words to a rule ---- */

struct rule {
	struct fab_match m;
	struct fab_act a;
	bool seeded;
};

static bool
number(const char *s, uint64_t max, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(s, &end, 0);
	if (*s < '0' || *s > '9' || *end || errno || v > max)
		return false;
	*ret = v;

	return true;
}

static bool
number32(const char *s, uint32_t max, uint32_t *ret)
{
	uint64_t v;

	if (!number(s, max, &v))
		return false;
	*ret = (uint32_t)v;

	return true;
}

static bool
status(const char *s, struct fab_act *a)
{
	uint64_t v;

	a->flags |= FAB_ACT_STATUS;
	if (strncasecmp(s, "IBV_WC_", 7) == 0)
		s += 7;
	for (unsigned i = 1; i < STATUS_NR; i++) {
		size_t len = strlen(status_names[i]);

		/* RETRY_EXC says as much as RETRY_EXC_ERR. */
		if (strcasecmp(s, status_names[i]) == 0 ||
		    (strcmp(status_names[i] + len - 4, "_ERR") == 0 && strlen(s) == len - 4 &&
		     strncasecmp(s, status_names[i], len - 4) == 0)) {
			a->status = i;
			return true;
		}
	}
	if (!number(s, STATUS_NR - 1, &v) || v == 0)
		return false;
	a->status = (uint32_t)v;

	return true;
}

static bool
chance(const char *s, uint64_t *ret_prob)
{
	char *end;
	double v = strtod(s, &end);

	if (strcmp(end, "%") == 0)
		v /= 100;
	else if (*end)
		return false;
	if (*s < '0' || *s > '9' || !(v > 0) || v > 1)
		return false;
	*ret_prob = (uint64_t)(v * 4294967296.0);

	return *ret_prob > 0;
}

static bool
match_word(struct rule *r, const char *key, const char *v)
{
	struct fab_match *m = &r->m;

	if (strcmp(key, "dev") == 0) {
		m->dev = (uint32_t)(ctl_dev(v) + 1);
		return m->dev > 0;
	}
	if (strcmp(key, "op") == 0) {
		for (m->op = 0; m->op < FAB_OP_NR && strcmp(v, op_names[m->op]);)
			m->op++;
		return m->op < FAB_OP_NR;
	}
	if (strcmp(key, "pid") == 0)
		return number32(v, INT32_MAX, &m->pid);
	if (strcmp(key, "qpn") == 0)
		return number32(v, 0xffffff, &m->qpn);
	if (strcmp(key, "dctn") == 0)
		return number32(v, 0xffffff, &m->dctn);
	if (strcmp(key, "minlen") == 0)
		return number(v, UINT64_MAX, &m->min_len);
	if (strcmp(key, "skip") == 0)
		return number(v, UINT64_MAX / 2, &m->skip);
	if (strcmp(key, "every") == 0)
		return number(v, UINT64_MAX, &m->every);
	if (strcmp(key, "limit") == 0)
		return number(v, UINT64_MAX, &m->limit);
	if (strcmp(key, "prob") == 0)
		return chance(v, &m->prob);
	if (strcmp(key, "seed") == 0) {
		r->seeded = true;
		return number(v, UINT64_MAX, &m->seed);
	}

	return false;
}

static bool
error_word(const char *v, uint32_t *ret)
{
	for (int i = 0; i < ERRORS_NR; i++) {
		if (strcasecmp(v, errors[i].name) == 0) {
			*ret = (uint32_t)errors[i].value;
			return true;
		}
	}

	return number32(v, 4095, ret) && *ret;
}

static bool
act_word(struct fab_act *a, const char *key, const char *v)
{
	if (strcmp(key, "status") == 0)
		return status(v, a);
	if (strcmp(key, "vendor") == 0)
		return number32(v, 0xff, &a->vendor);
	if (strcmp(key, "error") == 0)
		return error_word(v, &a->error);
	if (strcmp(key, "delay") == 0)
		return ctl_duration(v, &a->delay_ns);
	if (strcmp(key, "hold") == 0)
		return ctl_duration(v, &a->hold_ns);
	if (strcmp(key, "pause") == 0)
		return ctl_duration(v, &a->pause_ns);
	if (strcmp(key, "at") == 0)
		return number(v, UINT64_MAX, &a->kill_at);
	if (strcmp(key, "torn") == 0) {
		a->flags |= FAB_ACT_TORN;
		return number32(v, 100, &a->torn_pct);
	}
	if (strcmp(key, "corrupt") == 0) {
		a->flags |= FAB_ACT_CORRUPT;
		return number(v, UINT64_MAX - 1, &a->corrupt_at);
	}
	if (strcmp(key, "scramble") == 0) {
		a->flags |= FAB_ACT_SCRAMBLE;
		return number32(v, 1 << 20, &a->chunk_bytes) && a->chunk_bytes >= 16;
	}
	if (strcmp(key, "kill") == 0) {
		a->flags |= strcmp(v, "target") == 0 ? FAB_ACT_KILL_TARGET : FAB_ACT_KILL_SELF;
		return strcmp(v, "target") == 0 || strcmp(v, "initiator") == 0;
	}

	return false;
}

static bool
word(struct rule *r, const char *s)
{
	const char *eq = strchr(s, '=');
	char key[16];

	if (strcmp(s, "drop") == 0 || strcmp(s, "dup") == 0) {
		r->a.flags |= s[1] == 'r' ? FAB_ACT_DROP : FAB_ACT_DUP;
		return true;
	}
	if (strcmp(s, "scramble") == 0) {
		r->a.flags |= FAB_ACT_SCRAMBLE;
		r->a.chunk_bytes = 1024;
		return true;
	}
	if (!eq || (size_t)(eq - s) >= sizeof(key))
		return false;
	snprintf(key, sizeof(key), "%.*s", (int)(eq - s), s);

	return match_word(r, key, eq + 1) || act_word(&r->a, key, eq + 1);
}

/* What makes no sense together; NULL if all is well.  Fills in what was left out. */
static const char *
settle(struct rule *r)
{
	bool call = r->m.op >= FAB_OP_CREATE_QP;
	struct fab_act *a = &r->a;

	if (call && (a->flags || a->hold_ns || a->pause_ns || r->m.qpn || r->m.dctn))
		return "a call can only fail or take its time: error=, delay=, with dev, pid and counts";
	if (!call && a->error)
		return "error= is for calls, op=create_qp and the like; a transfer has status=";
	if (call && !a->error && !a->delay_ns)
		a->error = ENOMEM;
	if (!call && !a->flags && !a->delay_ns && !a->hold_ns)
		return "it says what to match, but not what to do";
	if (a->flags & FAB_ACT_DROP && a->flags & (FAB_ACT_STATUS | FAB_ACT_DUP))
		return "drop gives no completion, so neither status= nor dup";
	if (a->flags & FAB_ACT_STATUS && !(a->flags & FAB_ACT_TORN) &&
	    a->flags & (FAB_ACT_CORRUPT | FAB_ACT_SCRAMBLE))
		return "status= alone copies nothing; say how much with torn=";
	if (a->pause_ns && !(a->flags & FAB_ACT_SCRAMBLE))
		return "pause= is between the chunks of scramble";
	if (a->kill_at && !(a->flags & (FAB_ACT_KILL_TARGET | FAB_ACT_KILL_SELF)))
		return "at= says where kill= happens";
	if (a->vendor && !(a->flags & FAB_ACT_STATUS))
		return "vendor= goes with status=";
	if (a->flags & FAB_ACT_STATUS && !a->vendor)
		a->vendor = a->status == IBV_WC_RETRY_EXC_ERR     ? 0x81
			    : a->status == IBV_WC_REM_ACCESS_ERR  ? 0x88
			    : a->status == IBV_WC_REM_OP_ERR      ? 0x89
			    : a->status == IBV_WC_REM_INV_REQ_ERR ? 0x8a
								  : 0xf0;
	if (r->seeded && !(a->flags & FAB_ACT_SCRAMBLE) && (!r->m.prob || r->m.prob == 1ull << 32))
		return "seed= goes with prob= or scramble";
	if (!r->seeded && getrandom(&r->m.seed, 4, 0) != 4)
		return "no random number for the seed";
	if (!r->m.prob)
		r->m.prob = 1ull << 32;

	return NULL;
}

/* ---- a rule to words ---- */

static void
print_number(const char *key, uint64_t v)
{
	if (v)
		printf(" %s=%llu", key, (unsigned long long)v);
}

static void
print_act(const struct fab_act *a)
{
	if (a->flags & FAB_ACT_STATUS)
		printf(" status=%s vendor=%#x", ctl_status_name(a->status), a->vendor);
	for (int i = 0; i < ERRORS_NR; i++) {
		if (a->error == (uint32_t)errors[i].value)
			printf(" error=%s", errors[i].name);
	}
	ctl_print_duration("delay", a->delay_ns);
	ctl_print_duration("hold", a->hold_ns);
	if (a->flags & FAB_ACT_TORN)
		printf(" torn=%u", a->torn_pct);
	if (a->flags & FAB_ACT_CORRUPT)
		printf(" corrupt=%llu", (unsigned long long)a->corrupt_at);
	if (a->flags & FAB_ACT_SCRAMBLE)
		printf(" scramble=%u", a->chunk_bytes);
	ctl_print_duration("pause", a->pause_ns);
	if (a->flags & (FAB_ACT_KILL_TARGET | FAB_ACT_KILL_SELF))
		printf(" kill=%s at=%llu", a->flags & FAB_ACT_KILL_TARGET ? "target" : "initiator",
		       (unsigned long long)a->kill_at);
	if (a->flags & FAB_ACT_DROP)
		printf(" drop");
	if (a->flags & FAB_ACT_DUP)
		printf(" dup");
}

static void
print_rule(uint32_t id, const struct fab_rule *r)
{
	const struct fab_match *m = &r->match;
	bool chancy = m->prob < 1ull << 32;

	printf("%u op=%s", id, m->op < FAB_OP_NR ? op_names[m->op] : "?");
	if (m->dev)
		printf(" dev=mlx5_%u", m->dev - 1);
	print_number("pid", m->pid);
	if (m->qpn)
		printf(" qpn=%#x", m->qpn);
	if (m->dctn)
		printf(" dctn=%#x", m->dctn);
	print_number("minlen", m->min_len);
	print_number("skip", m->skip);
	print_number("every", m->every);
	print_number("limit", m->limit);
	if (chancy)
		printf(" prob=%g", (double)m->prob / 4294967296.0);
	if (chancy || r->act.flags & FAB_ACT_SCRAMBLE)
		printf(" seed=%llu", (unsigned long long)m->seed);
	print_act(&r->act);
	printf(" seen=%llu hits=%llu\n", (unsigned long long)atomic_load(&r->seen),
	       (unsigned long long)atomic_load(&r->hits));
}

/* ---- the table, with the file locked ---- */

static void
set_active(struct fabric *f)
{
	bool any = false;

	for (int i = 0; i < FAB_RULES; i++)
		any |= atomic_load(&f->rule[i].id) != 0;
	if (any)
		atomic_fetch_or(&f->active, FAB_ACTIVE_RULES);
	else
		atomic_fetch_and(&f->active, ~(uint32_t)FAB_ACTIVE_RULES);
}

static int
add(struct fabric *f, const struct rule *in)
{
	for (int i = 0; i < FAB_RULES; i++) {
		struct fab_rule *r = &f->rule[i];

		if (atomic_load(&r->id))
			continue;
		r->match = in->m;
		r->act = in->a;
		atomic_store(&r->seen, 0);
		atomic_store(&r->hits, 0);
		atomic_store(&r->id, atomic_fetch_add(&f->rule_next, 1) + 1);
		set_active(f);
		print_rule(atomic_load(&r->id), r);
		return 0;
	}
	fprintf(stderr, "softnicctl: there are %d rules already\n", FAB_RULES);

	return 1;
}

/* Rule id, or all of them with 0. */
static int
del(struct fabric *f, uint32_t id)
{
	bool found = id == 0;

	for (int i = 0; i < FAB_RULES; i++) {
		uint32_t has = atomic_load(&f->rule[i].id);

		if (has == 0 || (id && has != id))
			continue;
		atomic_store(&f->rule[i].id, 0);
		found = true;
	}
	set_active(f);
	fab_event(f); /* work requests that wait because of the rule go on */
	if (!found)
		fprintf(stderr, "softnicctl: no rule %u\n", id);

	return found ? 0 : 1;
}

static int
list(struct fabric *f)
{
	for (int i = 0; i < FAB_RULES; i++) {
		uint32_t id = atomic_load(&f->rule[i].id);

		if (id)
			print_rule(id, &f->rule[i]);
	}

	return 0;
}

int
ctl_cmd_rule(int argc, char **argv)
{
	const char *what = argc ? argv[0] : "list";
	struct rule r = { 0 };
	struct fabric *f = NULL;
	uint32_t id = 0;
	int fd, rc;

	if (strcmp(what, "add") == 0 && argc > 1) {
		for (int i = 1; i < argc; i++) {
			if (!word(&r, argv[i]))
				return ctl_refuse("rule", argv[i]);
			if (ctl_is_again("rule", argv, i))
				return 2;
		}
		const char *wrong = settle(&r);

		if (wrong) {
			fprintf(stderr, "softnicctl: rule: %s\n", wrong);
			return 2;
		}
	} else if (strcmp(what, "del") == 0) {
		if (argc < 2 || !number32(argv[1], UINT32_MAX, &id) || id == 0)
			return ctl_refuse("rule", argc < 2 ? NULL : argv[1]);
		if (argc > 2)
			return ctl_refuse("rule", argv[2]);
	} else if (strcmp(what, "list") && strcmp(what, "clear")) {
		return ctl_refuse("rule", strcmp(what, "add") ? what : NULL);
	} else if (argc > 1) {
		return ctl_refuse("rule", argv[1]);
	}
	if (ctl_open(&f, &fd) < 0)
		return 1;
	flock(fd, LOCK_EX);
	rc = what[0] == 'a' ? add(f, &r) : what[0] == 'l' ? list(f) : del(f, id);
	flock(fd, LOCK_UN);

	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories of a set over disks in memory: clients put, delete, upload, read and list keys with one copy and with two, while disks
 * fail, hang, cannot be read, are drained and added, and threads are stopped for a while; then all stops, or the power goes, a disk is away
 * at the next start, and so on.  After each stop or cut any of the disks is away for once, and comes back older than the others.
 *
 * One client more makes, changes and removes a bucket of its own, with one copy and with two, its attributes and a few objects; only this client
 * does, so each answer must agree with a state that the bucket may have.  In some histories this is the only bucket with two copies.
 *
 * What a read finds must be a value that its key may have had at some time during the read: of a write that had begun, and that no other
 * one, which began after that had ended, had replaced, or had been read in place of, before the read began.  A write without an answer happens before the next start
 * serves, or never.  With one disk that failed, of all with both copies, keys with two copies are read and written.  At the end, when nothing
 * moves any more, both copies are equal, no disk has a record in addition, and each disk can be away.
 *
 * SEED= is the first history, HISTORIES= how many.  The same seed gives the same history: the first one is gone through twice.
 */
#include "mem_rig.h"

#define CLIENTS 4
#define KEYS 2
#define WRITES_MAX 600

enum result { WRITE_RUNS, WRITE_DONE, WRITE_NOT_DONE, WRITE_UNKNOWN };

/* Times are steps of the history. */
struct write {
	uint32_t value;
	enum result result;
	uint64_t began, ended;
	uint64_t seen; /* when a read had found it; 0: none has */
};

struct key {
	const char *bucket;
	char name[8];
	int nr;
	struct write write[WRITES_MAX];
};

static struct key keys[2 * KEYS];
static int keys_nr; /* of this history: without those of two copies, or with them */
static uint64_t seed, step, cut_at, trace;
static uint32_t value_nr;
static bool has_faults; /* in this life errors are to be expected */
static bool is_moving;
static bool is_whole;       /* this life began with all disks, and both copies of all keys */
static bool was_unreadable; /* in this life a disk was: it may have missed updates */
static int running, ops_nr, wrong_nr;
static unsigned long long counts[9];
enum {
	COUNT_READ,
	COUNT_WRITE,
	COUNT_ERROR,
	COUNT_CUT,
	COUNT_AWAY,
	COUNT_FAULT,
	COUNT_MOVE,
	COUNT_REFUSED,
	COUNT_OWN
};

static void __attribute__((format(printf, 1, 2))) wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("SEED=%llu HISTORIES=1: ", (unsigned long long)seed);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	wrong_nr++;
}

static uint64_t
now(void)
{
	/* The first moment after the cut of which the clients know. */
	if (mem_disks_is_cut() && !cut_at)
		cut_at = ++step;
	return ++step;
}

static void
note(uint64_t what)
{
	trace = (trace ^ what) * 0x9e3779b97f4a7c15u;
	trace ^= trace >> 29;
}

/* ---- what may be read ---- */

static bool
may_be(const struct key *k, uint32_t value, uint64_t began, uint64_t ended)
{
	for (int i = 0; i < k->nr; i++) {
		const struct write *w = &k->write[i];
		bool is_replaced = false;

		if (w->value != value || w->result == WRITE_NOT_DONE || w->began > ended)
			continue;
		for (int j = 0; j < k->nr && w->ended; j++) {
			const struct write *other = &k->write[j];

			is_replaced |= other->result == WRITE_DONE && other->began > w->ended &&
				       other->ended < began;
			is_replaced |= other->seen && other->began > w->ended && other->seen < began;
		}
		if (!is_replaced)
			return true;
	}
	return false;
}

static void
print_key(const struct key *k)
{
	for (int i = 0; i < k->nr; i++)
		printf("  %s/%s: value %u, steps %llu to %llu: %s\n", k->bucket, k->name, k->write[i].value,
		       (unsigned long long)k->write[i].began, (unsigned long long)k->write[i].ended,
		       (const char *[]){ "runs", "done", "not done", "not known" }[k->write[i].result]);
}

/* Of values but none, which are each written once. */
static void
note_seen(struct key *k, uint32_t value, uint64_t ended)
{
	for (int i = 0; value && i < k->nr; i++) {
		if (k->write[i].value == value && !k->write[i].seen)
			k->write[i].seen = ended;
	}
}

static void
judge_read(struct key *k, int r, uint64_t began)
{
	uint64_t ended = now();

	note((uint64_t)(uint32_t)r);
	counts[COUNT_READ]++;
	counts[COUNT_ERROR] += r < 0;
	if (r < 0) {
		if (!has_faults)
			wrong("%s/%s cannot be read: %d", k->bucket, k->name, r);
		return;
	}
	if (may_be(k, (uint32_t)r, began, ended)) {
		note_seen(k, (uint32_t)r, ended);
		return;
	}
	wrong("%s/%s has value %d from step %llu to %llu", k->bucket, k->name, r, (unsigned long long)began,
	      (unsigned long long)ended);
	print_key(k);
}

/* ---- clients ---- */

static struct write *
begin_write(struct key *k, uint32_t value)
{
	struct write *w = &k->write[k->nr++];

	check(k->nr <= WRITES_MAX);
	*w = (struct write){ .value = value, .began = now() };
	return w;
}

static void
end_write(struct write *w, int r)
{
	note((uint64_t)(uint32_t)r);
	counts[COUNT_WRITE]++;
	counts[COUNT_ERROR] += r < 0;
	w->result = r >= 0 ? WRITE_DONE : r == -ECANCELED ? WRITE_UNKNOWN : WRITE_NOT_DONE;
	/* What is not known may still happen. */
	w->ended = w->result == WRITE_UNKNOWN ? 0 : now();
	if (r < 0 && !has_faults && !is_moving)
		wrong("a write ends with %d", r);
}

static void
do_list(struct store_user *u, const char *bucket)
{
	struct listing l;
	uint64_t began = now();
	int r = list_names(u, bucket, &l);

	if (r < 0)
		return;
	for (int i = 0; i < keys_nr; i++) {
		bool is_listed = false, may;

		if (strcmp(keys[i].bucket, bucket) != 0)
			continue;
		for (int j = 0; j < l.nr; j++)
			is_listed |= strcmp(l.name[j], keys[i].name) == 0;
		may = !is_listed && may_be(&keys[i], 0, began, now());
		for (uint32_t v = 1; is_listed && v <= value_nr && !may; v++)
			may = may_be(&keys[i], v, began, step);
		if (may)
			continue;
		wrong("%s/%s is %slisted from step %llu on", bucket, keys[i].name, is_listed ? "" : "not ",
		      (unsigned long long)began);
		print_key(&keys[i]);
	}
}

static void
client(void *arg)
{
	struct store_user *u;

	check(store_user_new(&st, 1, &u) == 0);
	for (int i = 0; i < ops_nr; i++) {
		struct key *k = &keys[turns_below((uint32_t)keys_nr)];
		uint32_t what = turns_below(10);
		struct write *w;

		if (what < 4) {
			uint64_t began = now();

			judge_read(k, get(u, k->bucket, k->name), began);
		} else if (what < 7) {
			w = begin_write(k, ++value_nr);
			end_write(w, put(u, k->bucket, k->name, w->value));
		} else if (what == 7) {
			w = begin_write(k, ++value_nr);
			end_write(w, put_upload(u, k->bucket, k->name, w->value));
		} else if (what == 8) {
			w = begin_write(k, 0);
			end_write(w, del(u, k->bucket, k->name));
		} else {
			do_list(u, k->bucket);
		}
		if (turns_below(4) == 0)
			turns_sleep(turns_below(20) * NS_PER_MS);
	}
	store_user_free(u);
	running--;
}

/* ---- a bucket that comes and goes ---- */

#define OWN "own"
#define OBJECTS 3
#define STATES_MAX 64

/* What the bucket has: copies 0 is none; value 0 is none. */
struct own {
	unsigned copies;
	uint32_t attrs, value[OBJECTS];
};

/* The states that it may have. */
struct owns {
	int nr;
	struct own s[STATES_MAX];
};

static struct owns own, own_at_cut;
static bool own_is_noted; /* own_at_cut is what the power left */

enum act {
	OWN_MAKE,
	OWN_REMOVE,
	OWN_PUT,
	OWN_DELETE,
	OWN_SET,
	OWN_GET,
	OWN_LOOK,
	OWN_ATTRS,
	OWN_LIST,
	OWN_ACTS
};

/* An operation, and its result if it went well: a value, a number of copies or a bitmap of objects. */
struct own_op {
	enum act act;
	unsigned copies;
	uint32_t value;
	int i, result;
};

static void
own_add(struct owns *to, const struct own *s)
{
	for (int i = 0; i < to->nr; i++) {
		if (memcmp(&to->s[i], s, sizeof *s) == 0)
			return;
	}
	check(to->nr < STATES_MAX);
	to->s[to->nr++] = *s;
}

static unsigned
own_objects(const struct own *s)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < OBJECTS; i++)
		bits |= (unsigned)(s->value[i] > 0) << i;
	return bits;
}

/* The result that an operation has in a state, which it makes another. */
static int
own_result(struct own *s, const struct own_op *o)
{
	if (o->act == OWN_MAKE) {
		if (s->copies)
			return s->copies == o->copies ? -EEXIST
			       : own_objects(s)       ? -ENOTEMPTY
						      : (s->copies = o->copies, 0);
		*s = (struct own){ .copies = o->copies };
		return 0;
	}
	if (!s->copies)
		return -ENXIO;
	switch (o->act) {
	case OWN_REMOVE:
		if (own_objects(s))
			return -ENOTEMPTY;
		*s = (struct own){ .copies = 0 };
		return 0;
	case OWN_PUT:
		s->value[o->i] = o->value;
		return 0;
	case OWN_DELETE: {
		int was = s->value[o->i] > 0;

		s->value[o->i] = 0;
		return was;
	}
	case OWN_SET:
		s->attrs = o->value;
		return 0;
	case OWN_GET:
		return (int)s->value[o->i];
	case OWN_LOOK:
		return (int)s->copies;
	case OWN_ATTRS:
		return (int)s->attrs;
	default:
		return (int)own_objects(s);
	}
}

static int
own_attrs(struct store_user *u)
{
	struct store_port *p = store_user_port(u, 0);
	struct store_stat s = { .version = 0 };
	uint32_t value = 0;
	int r = STORE_DO(u, &s.op, store_bucket_get_attrs(p, OWN, strlen(OWN), &value, sizeof value, &s));

	check(r < 0 || !s.attrs_len || s.attrs_len == sizeof value);
	return r < 0 ? r : (int)value;
}

static int
own_list(struct store_user *u)
{
	struct listing l;
	int r = list_names(u, OWN, &l);
	unsigned bits = 0;

	for (int i = 0; r >= 0 && i < l.nr; i++)
		bits |= 1u << (l.name[i][0] - '0');
	return r < 0 ? r : (int)bits;
}

static int
own_do(struct store_user *u, const struct own_op *o)
{
	struct store_port *p = store_user_port(u, 0);
	char name[2] = { (char)('0' + o->i), 0 };
	struct store_bucket_set set;
	struct store_stat s = { .version = 0 };
	int r;

	switch (o->act) {
	case OWN_MAKE:
		return make_bucket(u, OWN, o->copies);
	case OWN_REMOVE:
		return remove_bucket(u, OWN);
	case OWN_PUT:
		return put(u, OWN, name, o->value);
	case OWN_DELETE:
		return del(u, OWN, name);
	case OWN_SET:
		return STORE_DO(u, &set.op,
				store_bucket_set_attrs(p, OWN, strlen(OWN), STORE_VERSION_ANY, &o->value,
						       sizeof o->value, &set));
	case OWN_GET:
		return get(u, OWN, name);
	case OWN_LOOK:
		r = STORE_DO(u, &s.op, store_bucket_head(p, OWN, strlen(OWN), &s));
		return r < 0 ? r : (int)s.copies;
	case OWN_ATTRS:
		return own_attrs(u);
	default:
		return own_list(u);
	}
}

static void
own_note_cut(const struct owns *before)
{
	if (!mem_disks_is_cut() || own_is_noted)
		return;
	own_is_noted = true;
	own_at_cut = own;
	for (int i = 0; i < before->nr; i++)
		own_add(&own_at_cut, &before->s[i]);
}

static void
own_print(const struct own_op *o, int r)
{
	static const char *const name[] = { "make", "remove", "put",   "delete", "set",
					    "get",  "look",   "attrs", "list" };

	wrong("%s of object %d (%u copies, value %u) in the bucket " OWN ": %d", name[o->act], o->i,
	      o->copies, o->value, r);
	for (int i = 0; i < own.nr; i++)
		printf("  it may have: %u copies, attributes %u, values %u %u %u\n", own.s[i].copies,
		       own.s[i].attrs, own.s[i].value[0], own.s[i].value[1], own.s[i].value[2]);
}

/* Does an operation, and keeps the states that agree with its result.  False: the result is not known, and the change may be made until the
 * next start. */
static bool
own_act(struct store_user *u, const struct own_op *o)
{
	struct owns before = own, after = { .nr = 0 };
	bool is_change = o->act < OWN_GET, is_unknown, is_told;
	int r;

	own_note_cut(&before);
	r = own_do(u, o);
	note((uint64_t)(uint32_t)r);
	is_unknown = is_change && r == -ECANCELED;
	is_told = r >= 0 || r == -EEXIST || r == -ENOTEMPTY || r == -ENXIO;
	counts[COUNT_OWN]++;
	counts[COUNT_ERROR] += r < 0;
	/* A drain of an earlier life may leave one disk. */
	if (!is_told && !has_faults && !is_moving &&
	    !(o->act == OWN_MAKE && o->copies > 1 && (r == -EDOM || r == -EAGAIN)))
		own_print(o, r);
	for (int i = 0; i < before.nr; i++) {
		struct own s = before.s[i];
		int want = own_result(&s, o);

		if (is_unknown || (is_told && want == r))
			own_add(&after, is_change ? &s : &before.s[i]);
		if (!is_told)
			own_add(&after, &before.s[i]);
	}
	if (after.nr)
		own = after;
	else
		own_print(o, r);
	own_note_cut(&before);
	return !is_unknown;
}

static struct own_op
own_random(void)
{
	struct own_op o = { .act = (enum act)turns_below(OWN_ACTS), .i = (int)turns_below(OBJECTS) };

	/* Few objects: it is often empty. */
	if (o.act == OWN_PUT && turns_below(2))
		o.act = OWN_DELETE;
	o.copies = conf.disks.nr > 1 ? 1 + turns_below(2) : 1;
	if (o.act == OWN_PUT || o.act == OWN_SET)
		o.value = ++value_nr;
	return o;
}

static void
own_client(void *arg)
{
	struct store_user *u;

	check(store_user_new(&st, 1, &u) == 0);
	for (int i = 0; i < 2 * ops_nr && !wrong_nr; i++) {
		struct own_op o = own_random();

		if (!own_act(u, &o))
			break;
		if (turns_below(4) == 0)
			turns_sleep(turns_below(20) * NS_PER_MS);
	}
	store_user_free(u);
	running--;
}

/* Reads all of it. */
static void
own_judge(void)
{
	for (int i = 0; i < OBJECTS + 3 && !wrong_nr; i++) {
		struct own_op o = { .act = i < OBJECTS ? OWN_GET : OWN_LOOK + (enum act)(i - OBJECTS),
				    .i = i < OBJECTS ? i : 0 };

		own_act(user, &o);
	}
}

/* ---- what disks suffer ---- */

/* The power may go soon after a disk has failed, while it is not done yet what follows from that. */
static void
may_cut(void)
{
	if (mem_disks_is_cut() || turns_below(2))
		return;
	turns_sleep(turns_below(5) * NS_PER_MS);
	/* It may have gone meanwhile, as begin_life() had it. */
	if (!mem_disks_is_cut())
		mem_disks_cut_after(turns_below(6));
}

/* Waits until the primary of a key has a version that the secondary has not, which hangs.  False: it does not come to that. */
static bool
wait_unsettled(const struct key *k, const char *first, const char *second)
{
	uint64_t until = clock_ns() + 300 * NS_PER_MS;

	for (; clock_ns() < until; turns_yield()) {
		uint64_t one = 0, two = 0;
		bool has_one, has_two;

		if (mem_disk_is_absent(first) || mem_disk_is_absent(second))
			return false;
		has_one = mem_disk_has(first, k->bucket, k->name, &one);
		has_two = mem_disk_has(second, k->bucket, k->name, &two);
		if (has_one != has_two || one != two)
			return true;
	}
	return false;
}

/* One of the two disks of a key fails between the change of the one and of the other, while any disk hangs, and threads are stopped. */
static void
fail_in_between(void)
{
	const struct key *k = &keys[KEYS + turns_below(KEYS)];
	struct store_key of = key_of(k->bucket, k->name);
	const struct disk_table *t = newest_table();
	const char *first = path_of(t->first[set_slot(&of)]), *second = path_of(t->second[set_slot(&of)]),
		   *hangs;

	if (!first || !second || !mem_disk_is_open(first) || !mem_disk_is_open(second))
		return;
	mem_disk_hang(second, turns_below(2));
	if (wait_unsettled(k, first, second)) {
		hangs = disks[turns_below((uint32_t)conf.disks.nr)].path;
		if (turns_below(2))
			turns_sleep(turns_below(20) * NS_PER_MS);
		mem_disk_hang(second, false);
		if (mem_disk_is_open(hangs))
			mem_disk_hang(hangs, turns_below(2));
		if (turns_below(2))
			turns_stall_others(turns_below(300));
		mem_disk_fail(turns_below(3) ? first : second, 0);
		may_cut();
		turns_sleep(turns_below(100) * NS_PER_MS);
		if (mem_disk_is_open(hangs))
			mem_disk_hang(hangs, false);
	}
	mem_disk_hang(second, false);
}

static void
trouble(void *arg)
{
	const char *path = disks[turns_below((uint32_t)conf.disks.nr)].path;

	turns_sleep(turns_below(100) * NS_PER_MS);
	if (!mem_disk_is_open(path)) {
		running--;
		return;
	}
	counts[COUNT_FAULT]++;
	switch (turns_below(keys_nr > KEYS ? 8 : 4)) {
	case 0:
		mem_disk_fail(path, turns_below(12));
		may_cut();
		break;
	case 1:
		mem_disk_hang(path, true);
		turns_sleep(turns_below(100) * NS_PER_MS);
		mem_disk_fail(path, 0);
		may_cut();
		turns_sleep(turns_below(300) * NS_PER_MS);
		mem_disk_hang(path, false);
		break;
	case 2:
		mem_disk_hang(path, true);
		turns_sleep(turns_below(100) * NS_PER_MS);
		mem_disk_hang(path, false);
		break;
	case 3:
		was_unreadable = true;
		mem_disk_unreadable(path, true);
		turns_sleep(turns_below(300) * NS_PER_MS);
		mem_disk_unreadable(path, false);
		break;
	default:
		fail_in_between();
		break;
	}
	running--;
}

static void
operator(void *arg)
{
	for (uint32_t i = 1 + turns_below(3); i; i--) {
		uint32_t what = turns_below(4);

		turns_sleep(turns_below(100) * NS_PER_MS);
		/* Slow ones are caught between any two steps. */
		store_set_move_rate(st, turns_below(2) ? 30000 : 0);
		counts[COUNT_MOVE]++;
		if (what < 2)
			note((uint64_t)(uint32_t)change_disks(
				DISK_DRAIN, disks[turns_below((uint32_t)conf.disks.nr)].path));
		else if (what == 2 && conf.disks.nr < DISKS)
			note((uint64_t)(uint32_t)change_disks(DISK_ADD, paths[turns_below(DISKS)]));
		else
			note((uint64_t)(uint32_t)change_disks(DISK_CANCEL, NULL));
	}
	running--;
}

/* ---- starts ---- */

/* Starts, perhaps with a disk away. */
static void
start_with_some(void)
{
	int away = turns_below(2) ? (int)turns_below((uint32_t)conf.disks.nr) : -1;

	if (away >= 0) {
		mem_disk_absent(disks[away].path, true);
		memcpy(accepted[0], mem_disk_uuid(disks[away].path), UUID_BYTES);
		conf.disks.accept_missing_nr = 1;
		counts[COUNT_AWAY]++;
		has_faults = true;
		if (start() == 0)
			return;
		counts[COUNT_REFUSED]++;
		mem_disk_absent(disks[away].path, false);
		conf.disks.accept_missing_nr = 0;
	}
	if (start() < 0)
		wrong("a start with all disks is refused: %s", err);
}

static void
all_back(void)
{
	conf.disks.accept_missing_nr = 0;
	for (int i = 0; i < DISKS; i++) {
		if (mem_disk_is_made(paths[i]))
			mem_disk_absent(paths[i], false);
	}
}

/* ---- a life ---- */

static void
begin_life(void)
{
	has_faults = is_moving = is_whole = was_unreadable = own_is_noted = false;
	cut_at = 0;
	configure();
	start_with_some();
	if (wrong_nr)
		return;
	if (!has_faults && turns_below(2)) {
		is_whole = wait_quiet();
		if (!is_whole)
			wrong("it does not come to rest after a start");
	}
	turns_stall(turns_below(2) ? 50 : 0);
	if (turns_below(2)) {
		has_faults = true;
		running++;
		turns_go(trouble, NULL);
	}
	if (turns_below(2)) {
		is_moving = true;
		running++;
		turns_go(operator, NULL);
	}
	for (int i = 0; i < CLIENTS; i++) {
		running++;
		turns_go(client, NULL);
	}
	if (turns_below(4)) {
		running++;
		turns_go(own_client, NULL);
	}
	if (turns_below(2))
		mem_disks_cut_after(1 + turns_below(150));
}

/* What had no answer when the power went, or when all stopped, has happened or not; what began after that has not. */
static void
end_writes(void)
{
	for (int i = 0; i < keys_nr; i++) {
		for (int j = 0; j < keys[i].nr; j++) {
			struct write *w = &keys[i].write[j];

			/* What was read then may be no more. */
			w->seen = cut_at && w->seen > cut_at ? 0 : w->seen;
			if (cut_at && w->began > cut_at)
				w->result = WRITE_NOT_DONE;
			else if (cut_at && w->ended > cut_at)
				w->result = WRITE_UNKNOWN;
			if (!w->ended || (cut_at && w->ended > cut_at))
				w->ended = cut_at ? cut_at : now();
		}
	}
}

/* The disks of this life that have failed. */
static int
failed_disks(void)
{
	int nr = 0;

	for (int i = 0; i < DISKS; i++)
		nr += mem_disk_is_made(paths[i]) && mem_disk_is_open(paths[i]) &&
		      mem_disk_has_failed(paths[i]);
	return nr;
}

/* Puts a value, once more if the disk fails just now, and reads it. */
static void
must_serve(struct key *k)
{
	int r = -ECANCELED;

	for (int tries = 0; tries < 2 && r == -ECANCELED; tries++) {
		struct write *w = begin_write(k, ++value_nr);

		r = put_again(user, k->bucket, k->name, w->value);
		end_write(w, r);
	}
	if (r < 0)
		wrong("%s/%s cannot be written with one failed disk: %d", k->bucket, k->name, r);
	else if ((r = get(user, k->bucket, k->name)) != (int)value_nr)
		wrong("%s/%s was put with one failed disk, and is %d", k->bucket, k->name, r);
}

/* Of keys with two copies one disk may fail. */
static void
judge_service(void)
{
	if (!is_whole || was_unreadable || is_moving || failed_disks() > 1)
		return;
	for (int i = KEYS; i < keys_nr && !wrong_nr; i++)
		must_serve(&keys[i]);
}

static void
end_life(void)
{
	uint64_t until = clock_ns() + PATIENCE_NS;
	struct mem_image *image;

	while (running && clock_ns() < until)
		store_user_turn(user);
	turns_stall(0);
	if (running) {
		wrong("something does not end");
		return;
	}
	store_set_move_rate(st, 0);
	judge_service();
	now();
	image = mem_disks_cut();
	down();
	if (image) {
		counts[COUNT_CUT]++;
		mem_disks_put_back(image);
		own = own_is_noted ? own_at_cut : own;
	}
	mem_image_free(image);
	end_writes();
	all_back();
}

/* ---- starts that might have been ---- */

/* Reads all keys twice, of which some cannot be read. */
static void
judge_some(void)
{
	for (int i = 0; i < 2 * keys_nr && !wrong_nr; i++) {
		struct key *k = &keys[i % keys_nr];
		uint64_t began = now();

		judge_read(k, get(user, k->bucket, k->name), began);
	}
}

/* Puts keys with two copies, of which some cannot be written. */
static void
put_some(void)
{
	for (int i = KEYS; i < keys_nr; i++) {
		struct write *w = begin_write(&keys[i], ++value_nr);

		end_write(w, put(user, keys[i].bucket, keys[i].name, w->value));
	}
}

/* Each disk is away for once; then it is there, and older than the others, and then another one is away. */
static void
judge_starts(void)
{
	static struct key was[2 * KEYS];
	struct mem_image *image = mem_disks_copy(NULL);
	struct owns own_was = own;
	uint64_t step_was = step;
	uint32_t value_was = value_nr;

	memcpy(was, keys, sizeof was);
	has_faults = true;
	for (int away = 0; away < DISKS && !wrong_nr; away++) {
		const char *path = paths[away];

		if (!mem_disk_is_made(path))
			continue;
		cut_at = 0;
		mem_disk_absent(path, true);
		configure();
		memcpy(accepted[0], mem_disk_uuid(path), UUID_BYTES);
		conf.disks.accept_missing_nr = 1;
		if (start() == 0) {
			judge_some();
			own_judge();
			put_some();
			judge_some();
			down();
			end_writes();
		}
		all_back();
		configure();
		if (start() == 0) {
			judge_some();
			own_judge();
			down();
			end_writes();
		}
		mem_disks_put_back(image);
		own = own_was;
		memcpy(keys, was, sizeof was);
		step = step_was;
		value_nr = value_was;
	}
	all_back();
	cut_at = 0;
	mem_image_free(image);
}

/* ---- the end of a history ---- */

static void
judge_all(int found[2 * KEYS])
{
	for (int i = 0; i < keys_nr && !wrong_nr; i++) {
		uint64_t began = now();
		int r = get(user, keys[i].bucket, keys[i].name);

		judge_read(&keys[i], r, began);
		if (found[i] >= 0 && r >= 0 && r != found[i])
			wrong("%s/%s was %d, and is %d", keys[i].bucket, keys[i].name, found[i], r);
		found[i] = r >= 0 ? r : found[i];
	}
}

/* The members have so many records of a key. */
static void
judge_records(const struct key *k, int want)
{
	int nr = 0;

	for (int i = 0; i < conf.disks.nr; i++)
		nr += table_find(newest_table(), mem_disk_uuid(disks[i].path)) >= 0 &&
		      mem_disk_has(disks[i].path, k->bucket, k->name, NULL);
	if (nr != want)
		wrong("%d disks have %s/%s", nr, k->bucket, k->name);
}

/* Of the bucket that comes and goes all members have one record, and each object is on as many of them as it has copies. */
static void
own_judge_copies(void)
{
	for (int i = 0; i < set_engines(set_of(st)) && !wrong_nr; i++) {
		struct store_port *e = port_engine(set_port(store_user_port(user, 0)), i);
		struct store_stat s = { .copies = 0 };
		int r = STORE_DO(user, &s.op, store_bucket_head(e, OWN, strlen(OWN), &s));

		if (r != (own.s[0].copies ? 0 : -ENXIO) || (r == 0 && s.copies != own.s[0].copies))
			wrong("engine %d has bucket " OWN " with %u copies: %d", i, s.copies, r);
	}
	for (int i = 0; i < OBJECTS && !wrong_nr; i++) {
		struct key k = { .bucket = OWN, .name = { (char)('0' + i) } };

		judge_records(&k, own.s[0].value[i] ? (int)own.s[0].copies : 0);
	}
}

/* With all disks there nothing is missing, and both copies are equal. */
static void
judge_whole(int found[2 * KEYS])
{
	has_faults = false;
	configure();
	if (start() < 0) {
		wrong("the last start is refused: %s", err);
		return;
	}
	if (!wait_quiet()) {
		struct store_copies_info c;
		struct store_move_info m;

		store_copies_info(st, &c);
		store_move_info(st, &m);
		wrong("it does not come to rest: %s %s", c.trouble, m.trouble);
	}
	judge_all(found);
	own_judge();
	own_judge_copies();
	for (int i = 0; i < keys_nr && !wrong_nr; i++)
		judge_records(&keys[i], found[i] > 0 ? (i < KEYS ? 1 : 2) : 0);
	for (int i = KEYS; i < keys_nr && !wrong_nr; i++) {
		int r = conf.disks.nr > 1 ? get_second(user, keys[i].bucket, keys[i].name) : found[i];

		if (r != found[i])
			wrong("the second copy of %s/%s is %d, the first %d", keys[i].bucket, keys[i].name, r,
			      found[i]);
	}
	down();
}

/* With any disk away what has two copies is there. */
static void
judge_without(int found[2 * KEYS])
{
	/* A disk may have been drained meanwhile. */
	configure();
	for (int away = 0; away < conf.disks.nr && conf.disks.nr > 1 && !wrong_nr; away++) {
		struct mem_image *image = mem_disks_copy(NULL);

		mem_disk_absent(disks[away].path, true);
		memcpy(accepted[0], mem_disk_uuid(disks[away].path), UUID_BYTES);
		conf.disks.accept_missing_nr = 1;
		if (start() < 0 && conf.disks.nr == 2) {
			/* Half of the disks are not enough. */
		} else if (!st) {
			wrong("a start without %s is refused: %s", disks[away].path, err);
		} else {
			for (int i = KEYS; i < keys_nr; i++) {
				int r = get(user, keys[i].bucket, keys[i].name);

				if (r != found[i])
					wrong("without %s %s/%s is %d, and was %d", disks[away].path,
					      keys[i].bucket, keys[i].name, r, found[i]);
			}
			has_faults = own.s[0].copies < 2;
			own_judge();
			down();
		}
		all_back();
		mem_disks_put_back(image);
		mem_image_free(image);
	}
}

static void
history(uint64_t of)
{
	int found[2 * KEYS];

	seed = of;
	rig_begin(seed, 2 + (int)(seed % 3));
	keys_nr = seed % 4 ? 2 * KEYS : KEYS;
	own = (struct owns){ .nr = 1 };
	step = cut_at = trace = 0;
	value_nr = 0;
	running = 0;
	for (int i = 0; i < keys_nr; i++) {
		keys[i] = (struct key){ .bucket = i < KEYS ? ONE : TWO };
		snprintf(keys[i].name, sizeof keys[i].name, "k%d", i);
		keys[i].write[keys[i].nr++] = (struct write){ .result = WRITE_DONE, .began = 1, .ended = 1 };
		found[i] = -1;
	}
	step = 1;
	ops_nr = 5 + (int)turns_below(20);
	conf.disks.heal_after_ns = turns_below(2) ? NS_PER_S : 1000000 * NS_PER_S;
	rig_pauses = turns_below(2) ? 4 : 0;
	up();
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	if (keys_nr > KEYS)
		assert_int_equal(make_bucket(user, TWO, 2), 0);
	down();
	for (uint32_t lives = 1 + turns_below(3); lives && !wrong_nr; lives--) {
		begin_life();
		if (!wrong_nr)
			end_life();
		if (!wrong_nr && turns_below(4))
			judge_starts();
	}
	if (!wrong_nr)
		judge_whole(found);
	if (!wrong_nr)
		judge_without(found);
	note(mem_disks_changes());
	if (!wrong_nr)
		rig_end();
}

int
main(void)
{
	const char *nr = getenv("HISTORIES");
	unsigned long long histories = nr ? strtoull(nr, NULL, 0) : 80;
	uint64_t first = turns_seed(), was;

	log_init(LOG_PLAIN, getenv("V") ? LOG_NOTE : LOG_ERROR);
	for (uint64_t i = 0; i < histories && !wrong_nr; i++) {
		history(first + i);
		was = trace;
		if (i == 0 && !wrong_nr)
			history(first);
		if (i == 0 && trace != was)
			wrong("the same seed gives another history");
	}
	printf("%llu histories: %llu reads, %llu writes, %llu requests to a bucket that comes and goes, %llu "
	       "errors, "
	       "%llu cuts, %llu starts without a disk, %llu of them refused, %llu faults, %llu changes of "
	       "disks\n",
	       histories, counts[COUNT_READ], counts[COUNT_WRITE], counts[COUNT_OWN], counts[COUNT_ERROR],
	       counts[COUNT_CUT], counts[COUNT_AWAY], counts[COUNT_REFUSED], counts[COUNT_FAULT],
	       counts[COUNT_MOVE]);
	return wrong_nr != 0;
}

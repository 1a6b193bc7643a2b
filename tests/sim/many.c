/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A history of a set of disks, see sim.h: lives with some of them away, of which one may stop before the others do or
 * fail, and starts with any of them, cut anywhere.
 *
 * The checker sees answers alone.  Each key and each bucket's attributes belong to one client, which changes them one
 * after the other; so what may be there is a handful of values: the last that was acknowledged, and those behind it whose
 * outcome nobody knows.  What was seen once after a start is what is there.
 */
#include "tests/sim/many_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct cell many_keys[BUCKETS][KEYS], many_buckets[BUCKETS];
static struct cell battr[BUCKETS];
uint64_t many_events;
static int bucket_ops[BUCKETS];        /* changes of it under way */
static int bucket_removals[BUCKETS];   /* those of them that remove it */
static bool bucket_cut[BUCKETS];       /* one was cut short in this life, and it has not been made since */
static uint64_t bucket_over[BUCKETS];  /* the last event at which one ended */
static uint64_t bucket_mixed[BUCKETS]; /* the last event at which two were */
static uint64_t bucket_gone[BUCKETS]; /* the last event at which one ended that has removed it, or may have */
static unsigned members, away;        /* bits of disks */
static unsigned strangers;            /* configured, and no members */
static uint8_t home[STORE_SLOT_NR];
uint8_t many_uuid[DISKS_MAX][UUID_BYTES];
static unsigned last_in; /* who took part in the table that acted last */
static unsigned
	deciding; /* of those, who may decide about buckets at the next start: the others were left out of one that was begun */
uint32_t many_ids;
static int start_result;
static char start_error[1024];
static unsigned faulty;  /* disks that may fail in this life; one that stops */
static unsigned lacking; /* disks for which there was no memory in this life */
static unsigned tight;   /* disks whose file systems may have no room in this life */

static int
count(unsigned bits)
{
	return __builtin_popcount(bits);
}

/* ---- cells ---- */

void
cell_set(struct cell *c, uint32_t id)
{
	if (c->nr != 1 || c->may[0] != id)
		c->since = ++many_events;
	c->may[0] = id;
	c->nr = 1;
}

bool
cell_may_be(const struct cell *c, uint32_t id)
{
	for (int i = 0; i < c->nr; i++) {
		if (c->may[i] == id)
			return true;
	}
	return c->pending == id || c->other == id;
}

bool
cell_rests(const struct cell *c)
{
	return c->pending == UNKNOWN_ID && c->other == UNKNOWN_ID;
}

void
cell_may_too(struct cell *c, uint32_t id)
{
	for (int i = 0; i < c->nr; i++) {
		if (c->may[i] == id)
			return;
	}
	check(c->nr < MAY_MAX);
	c->may[c->nr++] = id;
	c->since = ++many_events;
}

/* Somebody saw it. */
void
cell_seen(struct cell *c, uint32_t id, const char *what, int b, int k)
{
	if (!cell_may_be(c, id)) {
		for (int i = 0; i < c->nr; i++)
			say("may be %u", c->may[i]);
		sim_fail("%s of bucket %d, key %d: holds %u, may hold %u%s", what, b, k, id,
			 c->nr ? c->may[0] : 0, c->nr > 1 ? ", or others" : "");
	}
	if (cell_rests(c) && !c->is_open)
		cell_set(c, id);
}

static bool
is_in(const struct cell *c, uint32_t id)
{
	for (int i = 0; i < c->nr; i++) {
		if (c->may[i] == id)
			return true;
	}
	return false;
}

void
cell_looked_at(struct cell *c, uint32_t id, uint64_t since, const char *what, int b, int k)
{
	/* What was there when it began is not known any more. */
	if (c->since > since)
		return;
	if (id != c->pending && id != c->other && c->news && c->news < since)
		sim_fail("%s of bucket %d, key %d: is %u again, and a newer one was seen", what, b, k, id);
	cell_seen(c, id, what, b, k);
	if (!is_in(c, id) && !c->news)
		c->news = ++many_events;
}

/* ---- attributes of objects ---- */

static uint32_t content_of[IDS_MAX]; /* what has the bytes below these attributes; 0: it is bytes itself */

uint32_t
many_content(uint32_t id)
{
	return id < IDS_MAX && content_of[id] ? content_of[id] : id;
}

/* What a look at a key's bytes alone shows of it.  False: it may be one of several. */
static bool
of_content(const struct cell *c, uint32_t bytes, uint32_t *ret_id)
{
	int nr = 0;

	*ret_id = bytes;
	for (int i = 0; i < c->nr + 2; i++) {
		uint32_t id = i < c->nr ? c->may[i] : i == c->nr ? c->pending : c->other;

		if (id == UNKNOWN_ID || many_content(id) != bytes)
			continue;
		*ret_id = id;
		nr++;
	}
	return nr < 2;
}

/* ---- names ---- */

struct store_key
many_key(int b, int k)
{
	return (struct store_key){ .bucket = bucket_name(b),
				   .key = key_name(k),
				   .bucket_len = (uint16_t)strlen(bucket_name(b)),
				   .key_len = (uint16_t)strlen(key_name(k)) };
}

int
many_home(int b, int k)
{
	const struct set *s = sim_store ? set_of(sim_store) : NULL;
	unsigned place = many_place(b, k);
	int engine = s ? set_primary_at(s, (unsigned)place) : SET_NOWHERE;

	if ((prof.moves || many_has_two(b)) && engine != SET_NOWHERE)
		return moves_disk(s, engine);
	return many_has_two(b) ? 0 : home[place];
}

unsigned
many_homes(int b, int k)
{
	return 1u << many_home(b, k) | (prof.moves || many_has_two(b) ? moves_had(many_place(b, k)) : 0);
}

bool
many_is_away(int b, int k)
{
	return many_has_two(b) ? pairs_is_away(b, k) : away >> many_home(b, k) & 1;
}

int
many_etag_nr(const struct store_etag *e)
{
	uint32_t id;

	memcpy(&id, e->sum, sizeof id);
	return (int)id;
}

/* ---- clients ---- */

struct many_client many_clients[CLIENTS];
struct many_client *many_self;
static _Alignas(4096) char memory[CLIENTS][STORE_PIECE + BUF_SLACK_BYTES];

static void
on_done(struct store_op *op)
{
	container_of(op, struct many_client, u.op)->flag = true;
}

struct store_port *
many_port(struct many_client *c)
{
	struct sim_port *sp = &ports[c->port];

	if (sp->asleep)
		store_turn(sp->p, TURN_WAKES);
	sp->asleep = false;
	many_self = c;
	return sp->p;
}

void
many_begin(struct many_client *c)
{
	static const bool yes = true;

	c->port = (int)below((uint32_t)prof.ports);
	co_wait(&yes, c->port);
	if (prof.two)
		moves_note();
	memset(&c->u, 0, sizeof c->u);
	c->u.op.done = on_done;
	c->flag = false;
}

/* The result of an operation whose start said r. */
int
many_wait(struct many_client *c, int r)
{
	if (r < 0)
		return r;
	if (r == 0)
		co_wait(&c->flag, c->port);
	return c->u.op.result;
}

unsigned
many_disks_of(const struct set *set, uint64_t engines)
{
	unsigned bits = 0;

	for (int i = 0; i < set_engines(set); i++)
		bits |= (unsigned)(engines >> i & 1) << moves_disk(set, i);
	return bits;
}

/* The disks that have failed in this life. */
static unsigned
failed(void)
{
	const struct set *set = set_of(sim_store);
	unsigned bits = 0;

	for (int i = 0; i < set_engines(set); i++)
		bits |= (unsigned)disk_failed(&extent_store(set_engine(set, i))->vol->disk)
			<< moves_disk(set, i);
	return bits;
}

unsigned
many_short(void)
{
	return lacking | tight;
}

unsigned
many_away(void)
{
	return away;
}

unsigned
many_hurt(void)
{
	return away | failed() | faulty;
}

static bool
is_below_half(void)
{
	const struct set *set = set_of(sim_store);
	unsigned all = many_disks_of(set, set_all(set)) | away;

	/* A table that was begun has more members, or fewer. */
	if ((prof.moves || prof.two) && set_is_read_only(set) && failed())
		return true;
	return 2 * count(all & ~away & ~failed()) < count(all);
}

/* May it be answered so?  What only one of those disks explains, or that fewer than half are left. */
void
many_check_error(int r, unsigned disks, const char *what)
{
	if (r == -EAGAIN || (r == -EXDEV && (prof.moves || prof.two)))
		counts.not_now++;
	else if (r == -ENOSPC && (prof.moves || prof.two))
		counts.no_space++;
	else if (r == -ENODEV && !(away & disks))
		sim_fail("%s is told that a disk is missing, and none that it needs is", what);
	else if ((r == -ECANCELED || r == -ENOSPC) && (tight & disks))
		counts.not_now++;
	else if ((r == -ECANCELED || r == -EIO || r == -ENOSPC) && (lacking & disks))
		counts.not_now++; /* it was in a block whose data could not be written */
	else if ((r == -ECANCELED || r == -EIO || r == -EROFS) && !(failed() & disks) && !is_below_half())
		sim_fail("%s ends with %d, and no disk that it needs failed", what, r);
	else if (r != -ENODEV && r != -ECANCELED && r != -EIO && r != -EROFS)
		sim_fail("%s ends with %d", what, r);
}

void
many_check_carried(int r, const char *what)
{
	if (r == -EXDEV && !many_hurt() && !many_short())
		sim_fail("%s is told that its key has moved", what);
}

/* Of one that is not there nobody knows how many copies it has. */
bool
many_may_lack(int b, uint64_t since)
{
	return cell_may_be(&many_buckets[b], 0) || many_buckets[b].since >= since ||
	       many_bucket_changed(b, since);
}

bool
many_bucket_stays(int b, uint64_t since)
{
	return !cell_may_be(&many_buckets[b], 0) && !bucket_cut[b] && many_buckets[b].since < since;
}

void
many_check_key_error(int r, int b, int k, uint64_t since, const char *what)
{
	if (r == -ENODEV && many_has_two(b)) {
		/* Of a bucket that is not there the key goes where one of a single copy would be. */
		if (!pairs_first_is_away(b, k) && !(many_may_lack(b, since) && pairs_one_is_away(b, k)))
			sim_fail("%s is told that a disk is missing, and one that has all is there", what);
		return;
	}
	many_check_error(r, many_has_two(b) && many_may_lack(b, since) ? ~0u : many_homes(b, k), what);
}

/* Where some disks have made the change, and one has no room for it now, nobody knows. */
void
many_check_bucket_error(int r, bool needs_all, const char *what)
{
	if (r != -ECANCELED && !(r == -ENOSPC && many_short()))
		many_check_error(r, needs_all ? ~0u : 0, what);
}

/* It was not done for sure. */
static bool
is_refused(int r)
{
	return r == -ENODEV || r == -ENXIO || r == -EAGAIN || r == -ENOENT || r == -EROFS || r == -EXDEV ||
	       r == -EEXIST || r == -ESTALE || r == -EDOM || r == -EDQUOT || r == -ENOSPC;
}

/* A change of a cell ended so: done, not done, or nobody knows. */
void
cell_over(struct cell *c, int r, uint32_t id)
{
	bool was_seen = c->news != 0;

	c->pending = UNKNOWN_ID;
	c->news = 0;
	if (was_seen && is_refused(r))
		sim_fail("%u was seen, and its change is answered %d", id, r);
	if (r >= 0 || was_seen) {
		cell_set(c, id);
		c->is_open = false;
	} else if (!is_refused(r)) {
		cell_may_too(c, id);
		c->is_open = true;
	}
}

void
cell_twins_over(struct cell *c, int r1, uint32_t id1, int r2, uint32_t id2)
{
	bool was_seen = c->news != 0;

	c->pending = c->other = UNKNOWN_ID;
	c->news = 0;
	if (was_seen && is_refused(r1) && is_refused(r2))
		sim_fail("%u or %u was seen, and both are refused", id1, id2);
	c->is_open |= (r1 < 0 && !is_refused(r1)) || (r2 < 0 && !is_refused(r2));
	if (r1 >= 0 || r2 >= 0 || was_seen) {
		c->nr = 0;
		c->is_open = (r1 < 0 && !is_refused(r1)) || (r2 < 0 && !is_refused(r2));
	}
	if (!is_refused(r1))
		cell_may_too(c, id1);
	if (!is_refused(r2))
		cell_may_too(c, id2);
}

static void
on_written(struct store_op *op)
{
	container_of(op, struct many_client, write.op)->flag = true;
}

static int
write_piece(struct many_client *c)
{
	int r;

	c->write = (struct store_write){ .op.done = on_written };
	r = store_put_write(many_port(c), &c->u.put, &c->write, &c->buf, STORE_PIECE, false);
	if (r == 0)
		co_wait(&c->flag, c->port);
	c->flag = false;
	return r < 0 ? r : c->write.op.result;
}

/* A precondition, of which it is known what comes of it; the answer, or 0. */
static int
choose_pre(struct store_pre *pre, const struct cell *c)
{
	uint32_t there = many_content(c->may[0]), other = ++many_ids;

	if (c->nr != 1 || !cell_rests(c) || c->is_open)
		return 0;
	pre->kind = one_in(2) ? PRE_ABSENT : PRE_MATCH;
	pre->etag_nr = 1;
	if (pre->kind == PRE_ABSENT)
		return there ? -EEXIST : 0;
	if (!there || one_in(4)) {
		memcpy(pre->etags[0].sum, &other, sizeof other);
		return there ? -ESTALE : -ENOENT;
	}
	memcpy(pre->etags[0].sum, &there, sizeof there);
	return 0;
}

static bool
is_of_pre(int r)
{
	return r == -EEXIST || r == -ESTALE || r == -ENOENT;
}

int
many_put(struct many_client *c, int b, int k)
{
	struct store_key sk = many_key(b, k);
	struct store_commit sc = { .inline_data = NULL };
	struct cell *cell = &many_keys[b][k];
	uint32_t id = ++many_ids, size = one_in(2) ? 8 : SIZE;
	uint64_t since;
	struct store_use grown;
	bool is_gone;
	int r, expected = 0;

	if ((prof.moves || many_has_two(b)) && k < CLIENTS && one_in(6))
		size = BIG;
	many_begin(c);
	quotas_size(id, size);
	grown = (struct store_use){ .objects = quotas_is_sure(cell) && !cell->may[0],
				    .bytes = quotas_is_sure(cell) && size > quotas_size_of(cell->may[0]) };
	if (one_in(4))
		expected = choose_pre(&sc.pre, cell);
	is_gone = cell_may_be(&many_buckets[b], 0);
	counts.puts++;
	quotas_leaves(b, cell);
	cell->pending = id;
	cell->since = since = ++many_events;
	say("client %d puts %u in bucket %d key %d, at home on %d", c->nr, id, b, k, many_home(b, k));
	memcpy(sc.meta.etag.sum, &id, sizeof id);
	sc.meta.expires_ns = sim_expiry(id);
	r = store_put_init(many_port(c), &c->u.put, &sk, size);
	memset(c->buf.mem, (int)id, STORE_PIECE);
	for (uint32_t left = size; r >= 0 && size != 8; left -= STORE_PIECE) {
		if (left <= STORE_PIECE) {
			sc.last = &c->buf;
			sc.last_len = left;
			break;
		}
		r = write_piece(c);
	}
	if (sc.last) {
		/* It goes with the record. */
	} else if (r >= 0) {
		sc.inline_data = "inlined!";
		sc.inline_len = 8;
	}
	if (r >= 0)
		r = many_wait(c, store_put_commit(many_port(c), &c->u.put, &sc));
	store_put_abort(many_port(c), &c->u.put);
	say("put of %u: %d", id, r);
	many_check_carried(r, "a PUT");
	if (r >= 0 && many_is_away(b, k))
		sim_fail("a PUT of bucket %d key %d is acknowledged, and its disk is away", b, k);
	if (r == -EDQUOT)
		quotas_check_refused(b, since, "a PUT");
	cell_over(cell, r, id);
	if (r >= 0)
		quotas_check_grown(b, since, &grown, "a PUT");
	if ((r >= 0 && expected) || (is_of_pre(r) && r != expected))
		sim_fail("a PUT is answered %d, its precondition says %d", r, expected);
	if (r == -ENXIO && !is_gone && many_bucket_stays(b, since))
		sim_fail("a PUT is told that bucket %d is not there, and it was all the time", b);
	if (r < 0 && r != -ENXIO && r != -EDQUOT && !is_of_pre(r))
		many_check_key_error(r, b, k, since, "a PUT");
	return r;
}

/* One that began when there was no bucket has the number of copies of none: where the bucket came meanwhile it found nothing in it, which is
 * what was there. */
void
many_delete(struct many_client *c, int b, int k)
{
	struct store_key sk = many_key(b, k);
	struct cell *cell = &many_keys[b][k];
	uint64_t since;
	int r;

	many_begin(c);
	counts.dels++;
	quotas_leaves(b, cell);
	cell->pending = 0;
	cell->since = since = ++many_events;
	say("client %d deletes bucket %d key %d", c->nr, b, k);
	r = many_wait(c, store_delete(many_port(c), &sk, NULL, &c->u.del));
	say("delete: %d", r);
	if (r >= 0 && many_is_away(b, k) && !(many_has_two(b) && many_may_lack(b, since)))
		sim_fail("a delete of bucket %d key %d is acknowledged, and its disk is away", b, k);
	cell_over(cell, r, 0);
	if (r < 0 && r != -ENXIO)
		many_check_key_error(r, b, k, since, "a delete");
}

static void
on_read(struct store_op *op)
{
	container_of(op, struct many_client, rd.op)->flag = true;
}

/* The bytes are those of the PUT that made it; those of parts are of several. */
static void
read_all(struct many_client *c, int b, int k)
{
	const struct store_obj *obj = &c->u.obj;
	uint8_t byte = (uint8_t)many_etag_nr(&obj->meta.etag);
	int second = pairs_second(b, k);
	uint64_t since = many_events;
	uint32_t skew;

	/* A reader may be slow. */
	for (uint32_t n = prof.read_hold                 ? below(prof.read_hold)
			  : many_has_two(b) && one_in(4) ? below(300)
							 : 0;
	     n; n--)
		co_yield ();

	for (uint64_t off = 0, n; off < obj->size_bytes; off += n - skew) {
		int r;

		n = store_read_plan(obj, off, obj->size_bytes - off, STORE_PIECE, &skew);
		c->rd = (struct store_read){ .op.done = on_read };
		c->flag = false;
		r = store_read(many_port(c), &c->u.obj, &c->rd, &c->buf, off - skew, (uint32_t)n);
		if (r == 0)
			co_wait(&c->flag, c->port);
		r = r < 0 ? r : c->rd.op.result;
		if (r == -EBADMSG && lost_is((uint32_t)many_etag_nr(&obj->meta.etag))) {
			counts.lost_reads++;
			return;
		}
		if (r < 0) {
			if (!(many_homes(b, k) & (failed() | faulty | lacking | pairs_rotten())))
				sim_fail("reading bucket %d key %d at %llu: %d", b, k,
					 (unsigned long long)off, r);
			/* A second without room has missed what the first has taken: its slot is copied again, and until then has one copy. */
			if (second >= 0 && !((failed() | faulty | many_short()) >> second & 1) &&
			    r != -EAGAIN &&
			    !(pairs_rotten() && (pairs_rotten() == 1u << second || lacking)) &&
			    many_keys[b][k].since <= since)
				sim_fail("reading bucket %d key %d at %llu: %d, and disk %d has it", b, k,
					 (unsigned long long)off, r, second);
			return;
		}
		for (uint64_t i = skew; i < n && obj->size_bytes != 8 && !obj->part_nr; i++) {
			if ((uint8_t)c->buf.mem[c->rd.lead + i] != byte)
				sim_fail("bucket %d key %d has bytes that nobody wrote there", b, k);
		}
	}
	if (lost_is((uint32_t)many_etag_nr(&obj->meta.etag)))
		sim_fail("bucket %d key %d can be read, and its bytes are lost", b, k);
}

static uint32_t
attrs_id(const void *attrs, uint32_t len)
{
	uint32_t id = 0;

	if (len)
		memcpy(&id, attrs, sizeof id);
	return id;
}

/* Whoever set the attributes, or put it. */
static uint32_t
seen_id(const struct store_obj *obj)
{
	uint32_t bytes = (uint32_t)many_etag_nr(&obj->meta.etag),
		 id = attrs_id(obj->meta.attrs, obj->meta.attrs_len);

	if (id && many_content(id) != bytes)
		sim_fail("%u has attributes that were set of %u", bytes, many_content(id));
	return id ? id : bytes;
}

/* Of one that it is certain about: all that is there is this client's. */
static void
do_attrs(struct many_client *c, int b, int k)
{
	struct store_key sk = many_key(b, k);
	struct cell *cell = &many_keys[b][k];
	uint64_t version = 0, since;
	uint32_t id = many_ids + 1;
	bool is_gone;
	int r;

	if (cell->nr != 1 || !cell_rests(cell) || cell->is_open || id >= IDS_MAX)
		return;
	many_ids++;
	if (one_in(2)) {
		many_begin(c);
		r = many_wait(c, store_open(many_port(c), &sk, &c->u.obj));
		if (r >= 0) {
			version = c->u.obj.version;
			store_close(many_port(c), &c->u.obj);
		}
	}
	many_begin(c);
	/* Another one may have removed the bucket meanwhile. */
	if (cell->nr != 1 || cell->is_open)
		return;
	is_gone = cell_may_be(&many_buckets[b], 0);
	counts.attrs++;
	content_of[id] = many_content(cell->may[0]);
	cell->pending = id;
	cell->since = since = ++many_events;
	memset(c->attrs, 0, sizeof c->attrs);
	memcpy(c->attrs, &id, sizeof id);
	say("client %d sets attributes %u of %u in bucket %d key %d", c->nr, id, cell->may[0], b, k);
	r = many_wait(c, store_set_attrs(many_port(c), &sk, version, c->attrs, sizeof c->attrs, &c->u.del));
	say("attributes %u: %d", id, r);
	if (r >= 0 && (many_is_away(b, k) || !cell->may[0]))
		sim_fail("attributes of bucket %d key %d are set, and %s", b, k,
			 cell->may[0] ? "its disk is away" : "nothing is there");
	if ((r == -ENOENT && cell->may[0] && !cell_may_be(cell, 0)) || r == -ESTALE)
		sim_fail("attributes of bucket %d key %d: %d, and %u is there", b, k, r, cell->may[0]);
	cell_over(cell, r, id);
	if (r == -ENXIO && !is_gone && many_bucket_stays(b, since))
		sim_fail("attributes are told that bucket %d is not there, and it was all the time", b);
	if (r < 0 && r != -ENXIO && r != -ENOENT)
		many_check_key_error(r, b, k, since, "setting attributes");
}

void
many_get(struct many_client *c, int b, int k)
{
	struct store_key sk = many_key(b, k);
	uint64_t since;
	bool is_there;
	int r;

	many_begin(c);
	is_there = !cell_may_be(&many_buckets[b], 0);
	since = ++many_events;
	counts.gets++;
	r = many_wait(c, store_open(many_port(c), &sk, &c->u.obj));
	if (r == -ENODEV || r == -EAGAIN) {
		many_check_key_error(r, b, k, since, "a GET");
		return;
	}
	if (many_is_away(b, k) &&
	    !((r == -ENXIO || r == -ENOENT) && many_has_two(b) && many_may_lack(b, since)))
		sim_fail("a GET of bucket %d key %d is answered %d, and its disk is away", b, k, r);
	if (r < 0 && r != -ENOENT && r != -ENXIO)
		sim_fail("open: %d", r);
	if (r == -ENXIO && is_there && many_bucket_stays(b, since))
		sim_fail("a GET is told that bucket %d is not there, and it was all the time", b);
	say("client %d sees %d in bucket %d key %d, at home on %d", c->nr,
	    r < 0 ? 0 : many_etag_nr(&c->u.obj.meta.etag), b, k, many_home(b, k));
	cell_looked_at(&many_keys[b][k], r < 0 ? 0 : seen_id(&c->u.obj), since, "the object", b, k);
	if (r >= 0 && (prof.moves || prof.two || prof.lost))
		read_all(c, b, k);
	if (r >= 0)
		store_close(many_port(c), &c->u.obj);
}

void
many_of_bucket_over(struct cell *cell, int b, uint64_t since)
{
	/* It may have been of a bucket that was removed before this was told. */
	if (bucket_gone[b] > since) {
		cell_may_too(cell, 0);
		cell->is_open |= many_buckets[b].is_open;
	}
}

static void
do_battr(struct many_client *c, int b)
{
	struct cell *cell = &battr[b];
	uint32_t id = ++many_ids;
	uint64_t since;
	int r;

	many_begin(c);
	counts.attrs++;
	cell->pending = id;
	cell->since = since = ++many_events;
	memset(c->attrs, 0, sizeof c->attrs);
	memcpy(c->attrs, &id, sizeof id);
	say("client %d sets attributes %u of bucket %d", c->nr, id, b);
	r = many_wait(c, store_bucket_set_attrs(many_port(c), bucket_name(b), strlen(bucket_name(b)),
						STORE_VERSION_ANY, c->attrs, sizeof c->attrs, &c->u.set));
	say("attributes %u: %d", id, r);
	cell_over(cell, r, id);
	many_of_bucket_over(cell, b, since);
	if (r < 0 && r != -ENXIO)
		many_check_bucket_error(r, false, "setting a bucket's attributes");
}

static void
see_battr(struct many_client *c, int b)
{
	char attrs[64];
	uint64_t since;
	int r;

	many_begin(c);
	since = ++many_events;
	r = many_wait(c, store_bucket_get_attrs(many_port(c), bucket_name(b), strlen(bucket_name(b)), attrs,
						sizeof attrs, &c->u.stat));
	if (r >= 0 && !many_bucket_changed(b, since))
		cell_seen(&battr[b], attrs_id(attrs, c->u.stat.attrs_len), "the attributes", b, -1);
}

/* ---- buckets ---- */

static void
bucket_begin(int b, uint32_t pending)
{
	many_buckets[b].pending = pending;
	if (!bucket_ops[b]++)
		return;
	bucket_mixed[b] = ++many_events;
	cell_may_too(&many_buckets[b], 0);
	cell_may_too(&many_buckets[b], 1);
}

/* Was there another change of it since? */
static bool
bucket_end(int b, uint64_t since)
{
	bucket_over[b] = ++many_events;
	if (--bucket_ops[b])
		bucket_mixed[b] = ++many_events;
	return bucket_mixed[b] > since;
}

bool
many_bucket_changed(int b, uint64_t since)
{
	return bucket_ops[b] || bucket_over[b] > since;
}

/* What goes with a bucket: its attributes, its bound. */
#define OF_BUCKET 2

static struct cell *
of_bucket(int b, int i)
{
	return i ? &many_bounds[b] : &battr[b];
}

static void
of_bucket_may_go(int b, bool is_open)
{
	for (int i = 0; i < OF_BUCKET; i++) {
		cell_may_too(of_bucket(b, i), 0);
		of_bucket(b, i)->is_open |= is_open;
	}
}

void
many_make(struct many_client *c, int b)
{
	bool could_be, could_not, mixed;
	uint64_t since;
	int r;

	many_begin(c);
	could_be = cell_may_be(&many_buckets[b], 1);
	could_not = cell_may_be(&many_buckets[b], 0);
	since = ++many_events;
	bucket_begin(b, 1);
	say("client %d makes bucket %d", c->nr, b);
	r = many_wait(c, store_bucket_create(many_port(c), bucket_name(b), strlen(bucket_name(b)),
					     many_has_two(b) ? 2 : 0, &c->u.del));
	say("making bucket %d: %d", b, r);
	mixed = bucket_end(b, since);
	/* With two disks, of which one leaves, too. */
	if (r == -EDOM && !(many_has_two(b) && (prof.moves || set_disks(set_of(sim_store)) < 2)))
		sim_fail("there are %d disks, and two copies are refused", set_disks(set_of(sim_store)));
	if (r != 0 && r != -EEXIST && r != -EDOM)
		many_check_bucket_error(r, false, "making a bucket");
	if (!mixed && ((r == -EEXIST && !could_be) || (r == 0 && !could_not)))
		sim_fail("making bucket %d is answered %d", b, r);
	if (mixed) {
		if (!bucket_ops[b])
			many_buckets[b].pending = UNKNOWN_ID;
		uploads_end_with(b, false, false);
		cell_may_too(&many_buckets[b], 0);
		cell_may_too(&many_buckets[b], 1);
		many_buckets[b].is_open |= r < 0 && r != -EEXIST;
		/* They are seen up to the end of this life, and the next start may have another bucket. */
		of_bucket_may_go(b, many_buckets[b].is_open);
	} else {
		cell_over(&many_buckets[b], r == -EEXIST ? 0 : r, 1);
		bucket_cut[b] &= r != 0;
		for (int i = 0; r == 0 && i < OF_BUCKET; i++) {
			if (of_bucket(b, i)->since < since)
				cell_set(of_bucket(b, i), 0);
		}
	}
}

/* Is an object there, and was it ever since? */
static int
there_since(int b, uint64_t since)
{
	for (int k = 0; k < KEYS; k++) {
		const struct cell *c = &many_keys[b][k];

		if (!cell_may_be(c, 0) && c->since < since)
			return k;
	}
	return -1;
}

int
many_is_full(int b)
{
	int is = uploads_in(b);

	if (many_buckets[b].nr > 1 || many_buckets[b].may[0] == 0 || many_buckets[b].is_open)
		return -1;
	for (int k = 0; is <= 0 && k < KEYS; k++) {
		const struct cell *c = &many_keys[b][k];

		if (!cell_may_be(c, 0))
			return 1;
		is = c->nr > 1 || c->is_open ? -1 : is;
	}
	return is;
}

static void
bucket_is_gone(int b)
{
	for (int k = 0; k < KEYS; k++) {
		struct cell *c = &many_keys[b][k];

		if (cell_rests(c) && !c->is_open)
			cell_set(c, 0);
		else if (!cell_may_be(c, 0))
			cell_may_too(c, 0);
	}
}

void
many_remove(struct many_client *c, int b)
{
	bool could_be, could_not, mixed, empty = true;
	uint64_t since;
	int r, k;

	many_begin(c);
	could_be = cell_may_be(&many_buckets[b], 1);
	could_not = cell_may_be(&many_buckets[b], 0);
	since = ++many_events;
	for (k = 0; k < KEYS; k++)
		empty &= many_keys[b][k].nr == 1 && many_keys[b][k].may[0] == 0 &&
			 cell_rests(&many_keys[b][k]) && !many_keys[b][k].is_open;
	bucket_begin(b, 0);
	bucket_removals[b]++;
	say("client %d removes bucket %d", c->nr, b);
	r = many_wait(c,
		      store_bucket_delete(many_port(c), bucket_name(b), strlen(bucket_name(b)), &c->u.del));
	say("removing bucket %d: %d", b, r);
	bucket_removals[b]--;
	bucket_cut[b] |= r == -ECANCELED;
	mixed = bucket_end(b, since);
	if (mixed || r == 0 || r == -ECANCELED)
		bucket_gone[b] = ++many_events;
	if (r != 0 && r != -ENXIO && r != -ENOTEMPTY)
		many_check_bucket_error(r, true, "removing a bucket");
	if (!mixed && ((r == -ENXIO && !could_not) || ((r == 0 || r == -ENOTEMPTY) && !could_be)))
		sim_fail("removing bucket %d is answered %d", b, r);
	k = there_since(b, since);
	if (r == 0 && k >= 0)
		sim_fail("bucket %d is removed, and key %d was acknowledged", b, k);
	for (int i = 0; r == -ENOTEMPTY && empty && i < KEYS; i++) {
		empty &= many_keys[b][i].since < since;
		if (i == KEYS - 1 && empty)
			sim_fail("bucket %d is said to have objects, and was empty", b);
	}
	if (mixed || r == 0 || r == -ECANCELED)
		uploads_end_with(b, r == 0 && !mixed, r == -ECANCELED);
	if (r == 0 && !mixed) {
		bucket_is_gone(b);
		for (int i = 0; i < OF_BUCKET; i++)
			cell_set(of_bucket(b, i), 0);
	} else if (mixed || r == -ECANCELED) {
		for (int i = 0; i < KEYS; i++) {
			if (cell_may_be(&many_keys[b][i], 0) || mixed)
				cell_may_too(&many_keys[b][i], 0);
		}
		of_bucket_may_go(b, r == -ECANCELED);
	}
	if (mixed) {
		if (!bucket_ops[b])
			many_buckets[b].pending = UNKNOWN_ID;
		cell_may_too(&many_buckets[b], 0);
		cell_may_too(&many_buckets[b], 1);
		many_buckets[b].is_open |= r == -ECANCELED;
		of_bucket_may_go(b, many_buckets[b].is_open);
	} else if (r == -ENOTEMPTY) {
		many_buckets[b].pending = UNKNOWN_ID;
	} else {
		cell_over(&many_buckets[b], r == -ENXIO ? 0 : r, 0);
	}
}

/* In the middle of everything: who is asked may have failed. */
static void
do_look(struct many_client *c, int b)
{
	uint64_t since;
	int r;

	many_begin(c);
	since = ++many_events;
	r = many_wait(c, store_bucket_head(many_port(c), bucket_name(b), strlen(bucket_name(b)), &c->u.stat));
	if (r < 0 && r != -ENXIO)
		sim_fail("a look at bucket %d: %d", b, r);
	say("client %d looks at bucket %d: %d", c->nr, b, r);
	if (many_bucket_changed(b, since))
		return;
	cell_seen(&many_buckets[b], r == 0, "the bucket", b, -1);
	see_battr(c, b);
	quotas_see(b);
}

/* ---- listing ---- */

static bool there[BUCKETS];
static uint8_t copies_there[BUCKETS];
static uint32_t listings[CLIENTS][KEYS];

static bool
on_bucket(struct store_list *ls, const struct store_entry *e)
{
	for (int b = 0; b < BUCKETS; b++) {
		if (e->name_len == strlen(bucket_name(b)) && !memcmp(e->name, bucket_name(b), e->name_len)) {
			there[b] = true;
			copies_there[b] = e->copies;
		}
	}
	return true;
}

static bool
on_key(struct store_list *ls, const struct store_entry *e)
{
	uint32_t *listed = listings[container_of(ls, struct many_client, u.ls)->nr];

	for (int k = 0; k < KEYS; k++) {
		if (e->name_len == strlen(key_name(k)) && !memcmp(e->name, key_name(k), e->name_len))
			listed[k] = (uint32_t)many_etag_nr(&e->etag);
	}
	return true;
}

static void
see_buckets(struct many_client *c)
{
	many_begin(c);
	memset(there, 0, sizeof there);
	c->u.ls.max = 100;
	c->u.ls.entry = on_bucket;
	if (many_wait(c, store_list(many_port(c), &c->u.ls)) < 0)
		sim_fail("listing buckets: %d", c->u.op.result);
	for (int b = 0; b < BUCKETS; b++) {
		say("bucket %d: %d", b, there[b]);
		cell_seen(&many_buckets[b], there[b], "the bucket", b, -1);
		if (there[b])
			pairs_see_bucket(b, copies_there[b]);
		/* What nobody answered may have removed it; if it is there its uploads are. */
		if (!there[b])
			uploads_end_with(b, true, false);
	}
}

void
many_see_list(struct many_client *c, int b)
{
	bool misses = many_has_two(b) ? pairs_miss_some() : away != 0;
	uint32_t *listed = listings[c->nr];
	uint64_t since;
	int r;

	many_begin(c);
	since = ++many_events;
	memset(listed, 0, sizeof listings[0]);
	c->u.ls.max = 100;
	c->u.ls.entry = on_key;
	c->u.ls.bucket = bucket_name(b);
	c->u.ls.bucket_len = (uint16_t)strlen(bucket_name(b));
	r = many_wait(c, store_list(many_port(c), &c->u.ls));
	/* The first bucket with two copies gives slots of it to others. */
	if (misses && r != -ENODEV && (!many_has_two(b) || pairs_miss_some()))
		sim_fail("a list is answered %d, and a disk is away", r);
	if (r < 0 && r != -ENXIO)
		many_check_error(r, misses || many_may_lack(b, since) ? away : 0, "a list");
	for (int k = 0; k < KEYS && r >= 0; k++) {
		uint32_t id;

		if (of_content(&many_keys[b][k], listed[k], &id))
			cell_looked_at(&many_keys[b][k], id, since, "the entry", b, k);
	}
}

/* Reads all there is, when nothing else runs. */
void
many_verify_main(int nr)
{
	struct many_client *c = &many_clients[0];

	uploads_look();
	see_buckets(c);
	for (int b = 0; b < BUCKETS; b++) {
		see_battr(c, b);
		quotas_see(b);
		for (int k = 0; k < KEYS; k++)
			many_get(c, b, k);
		many_see_list(c, b);
		uploads_see_list(c, b, away);
	}
	uploads_see(c);
}

/* What engines have, side by side. */
static bool same_there[BUCKETS];
static uint64_t same_time[BUCKETS];

static bool
on_same(struct store_list *ls, const struct store_entry *e)
{
	for (int b = 0; b < BUCKETS; b++) {
		if (e->name_len == strlen(bucket_name(b)) && !memcmp(e->name, bucket_name(b), e->name_len)) {
			same_there[b] = true;
			same_time[b] = e->mtime_ns;
		}
	}
	return true;
}

/* Nothing has run since the start: the buckets of all disks are alike; without M32 not their times, and what comes of
 * that is to be found. */
static void
engines_agree(void)
{
	const struct set_port *sp = set_port(ports[0].p);
	bool first[BUCKETS];
	uint64_t time[BUCKETS];
	uint32_t attrs[BUCKETS];

	for (int i = 0; i < sp->nr; i++) {
		struct store_list ls = { .max = 100, .entry = on_same };

		memset(same_there, 0, sizeof same_there);
		if (store_list(port_engine(sp, i), &ls) != 1)
			sim_fail("an engine cannot list its buckets");
		for (int b = 0; b < BUCKETS; b++) {
			struct store_stat st;
			char mem[64];
			uint32_t id = 0;

			if (same_there[b] &&
			    store_bucket_get_attrs(port_engine(sp, i), bucket_name(b), strlen(bucket_name(b)),
						   mem, sizeof mem, &st) == 1)
				id = attrs_id(mem, st.attrs_len);
			if (i &&
			    (same_there[b] != first[b] ||
			     (first[b] && ((same_time[b] != time[b] && sim_rule_on[SIM_OLDER_THAN_BUCKET]) ||
					   id != attrs[b]))))
				sim_fail("bucket %d is not the same on all disks", b);
			first[b] = same_there[b];
			time[b] = same_time[b];
			attrs[b] = id;
		}
	}
}

/* One that stops is said to have failed, as a time-out does; then it may go on: what it was given is late. */
static void
look_at_hung(void)
{
	struct set *set = set_of(sim_store);

	for (int i = 0; i < set_engines(set); i++) {
		if (simdisk_hung == 1u << moves_disk(set, i) && one_in(8))
			disk_fail(&extent_store(set_engine(set, i))->vol->disk, "it takes too long");
	}
	if ((simdisk_hung & failed()) && one_in(16))
		simdisk_hung = 0;
}

static void
one_op(struct many_client *c)
{
	int b = one_in(2), k = c->nr + CLIENTS * (int)below(KEYS / CLIENTS);
	uint32_t w = below(prof.w_put + prof.w_del + prof.w_get + prof.w_bucket + prof.w_attrs +
			   prof.w_upload + prof.w_quota);

	if (w >= prof.w_put + prof.w_del + prof.w_get + prof.w_bucket + prof.w_attrs + prof.w_upload) {
		if (c->nr < BUCKETS && !many_bounds[c->nr].is_open)
			do_quota(c, c->nr); /* of each bucket it is one client's */
		return;
	}
	if (w >= prof.w_put + prof.w_del + prof.w_get + prof.w_bucket + prof.w_attrs) {
		upload_any(c, b, k);
		return;
	}
	if (w < prof.w_put + prof.w_del && !many_keys[b][k].is_open) {
		if (many_has_two(b) && one_in(4))
			do_twins(c, b, k);
		else if (one_in(6))
			do_attrs(c, b, k);
		else if (w < prof.w_put)
			many_put(c, b, k);
		else
			many_delete(c, b, k);
		return;
	}
	w -= w < prof.w_put ? 0 : prof.w_put;
	if (w < prof.w_del + prof.w_get ||
	    (w < prof.w_del + prof.w_get + prof.w_attrs && (c->nr >= BUCKETS || battr[c->nr].is_open))) {
		if (one_in(4))
			do_look(c, b);
		else if (prof.two && one_in(4))
			many_see_list(c, b);
		else
			many_get(c, b, prof.two ? (int)below(KEYS) : k);
	} else if (w < prof.w_del + prof.w_get + prof.w_attrs)
		do_battr(c, c->nr); /* of each bucket they are one client's */
	else if (!cell_may_be(&many_buckets[0], 1))
		many_make(c, 0);
	else if (one_in(2))
		many_make(c, 1);
	else
		many_remove(c, 1);
}

static void
client_main(int nr)
{
	struct many_client *c = &many_clients[nr];

	while (ops_left-- > 0) {
		if (simdisk_hung)
			look_at_hung();
		if (simdisk_short && one_in(24))
			simdisk_short = 0;
		one_op(c);
	}
}

#define ROOM_TRIES 200

/* As soon as there is room again, a disk that had none takes PUTs, without a restart. */
static void
finds_room_main(int nr)
{
	struct many_client *c = &many_clients[0];
	struct alloc_stats as;

	for (int i = 0; i < BUCKETS * KEYS; i++) {
		int b = i % BUCKETS, k = i / BUCKETS, r = -ENOSPC;
		const struct set *s = set_of(sim_store);
		int engine = set_primary_at(s, many_place(b, k));

		if (engine == SET_NOWHERE || !(tight >> moves_disk(s, engine) & 1) ||
		    cell_may_be(&many_buckets[b], 0) || many_keys[b][k].is_open)
			continue;
		for (int tries = 0; r == -ENOSPC || r == -EAGAIN; tries++) {
			r = many_put(c, b, k);
			alloc_stats(extent_store(set_engine(s, engine))->vol->disk.alloc, &as);
			if (r == -ENOSPC && as.free + as.leased <= as.held_back + 32)
				return;
			if (tries == ROOM_TRIES && r == -ENOSPC)
				sim_fail("there is room again, and a PUT is answered %d", r);
			if (tries == ROOM_TRIES)
				return;
			for (int n = 0; n < 20; n++)
				co_yield ();
			sim_now_ns += 10 * NS_PER_MS;
		}
		counts.found_room += r >= 0;
		return;
	}
}

/* ---- lives ---- */

/* Of keys, and below 0 of the bucket. */
static struct cell *
cell_of(int b, int k)
{
	return k == -3 ? &many_buckets[b] : k < 0 ? of_bucket(b, k + 2) : &many_keys[b][k];
}

void
many_dies(bool cut)
{
	unsigned before = last_in, heads;

	say("%s", cut ? "cut" : "kill");
	counts.cuts += cut;
	counts.kills += !cut;
	if (sim_store) {
		last_in = many_disks_of(set_of(sim_store), set_in(set_of(sim_store)));
		deciding = last_in & many_disks_of(set_of(sim_store), set_of(sim_store)->map.begun);
	}
	if (sim_store && prof.two)
		pairs_die(many_hurt() != away);
	/* The first of those in service, and whoever was it in this life. */
	heads = before & (2 * (last_in & -last_in) - 1);
	if (sim_store && prof.moves) {
		heads = many_disks_of(set_of(sim_store), ((uint64_t)2 << set_head(set_of(sim_store))) - 1);
		moves_die();
	}
	if (cut) {
		simdisk_cut();
		sim_boot++;
	} else {
		simdisk_kill();
	}
	simdisk_hung = simdisk_short = simdisk_tight = 0;
	simdisk_faulty = ~0u;
	sched_drop();
	rings_drop();
	sim_store = NULL;
	/* No process begins at the very time at which another one ended. */
	sim_now_ns += NS_PER_MS;
	env_drop_memory();
	/* It may have been removed and made anew, and nobody was told of either. */
	for (int b = 0; b < BUCKETS; b++) {
		if (bucket_removals[b] && bucket_ops[b] > bucket_removals[b])
			uploads_end_with(b, false, false);
	}
	uploads_die(heads);
	/* What was begun happens now, or never. */
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = -3; k < KEYS; k++) {
			struct cell *c = cell_of(b, k);

			if (c->news)
				c->nr = 0;
			c->news = 0;
			if (c->pending != UNKNOWN_ID) {
				cell_may_too(c, c->pending);
				if (c == &many_buckets[b])
					of_bucket_may_go(b, false);
			}
			if (c->other != UNKNOWN_ID)
				cell_may_too(c, c->other);
			c->pending = c->other = UNKNOWN_ID;
			c->is_open = false;
		}
	}
	memset(bucket_ops, 0, sizeof bucket_ops);
	memset(bucket_removals, 0, sizeof bucket_removals);
	memset(bucket_cut, 0, sizeof bucket_cut);
}

static struct store_disk_conf paths[DISKS_MAX + 1];
static uint8_t missing[DISKS_MAX][UUID_BYTES], given_up[1][UUID_BYTES];

static bool accepts_all; /* whoever is missing may be */
static bool waits;       /* what was being moved is left as it is */

struct store_conf
many_conf(void)
{
	static const char *const names[DISKS_MAX] = { "sim", "sim1", "sim2", "sim3", "sim4" };
	struct store_conf conf = { .ops = &store_set_ops,
				   .disks.disk = paths,
				   .disks.engine = &extent_ops,
				   .disks.engines_max = STORE_SET_MAX,
				   .disks.index_bytes = (prof.disks > 4 ? 5 : 4) * prof.index_bytes,
				   .disks.accept_missing = (const uint8_t(*)[UUID_BYTES])missing,
				   .disks.lock_wait_ns = 3600 * NS_PER_S,
				   .disks.move_rate = prof.moves && one_in(4) ? 1u << (18 + below(6)) : 0,
				   .disks.moves_wait = waits,
				   .disks.heal_after_ns = prof.two ? below(3) * 40 * NS_PER_MS : 0,
				   /* The mover's, and one that a start uses for a while. */
				   .ports_max = PORTS_MAX + (prof.moves || prof.two ? 2 : 0) };
	int from = (int)below((uint32_t)prof.disks);

	/* In any order. */
	for (int i = 0; i < prof.disks; i++) {
		int d = (from + i) % prof.disks;

		if (!((members | strangers) >> d & 1))
			continue;
		if ((members >> d & 1) && (away >> d & 1 || accepts_all))
			memcpy(missing[conf.disks.accept_missing_nr++], many_uuid[d], UUID_BYTES);
		if ((away >> d & 1) && one_in(prof.unlisted))
			continue;
		paths[conf.disks.nr++].path = names[d];
	}
	return conf;
}

static int twice; /* a path is there twice */

static void
start_main(int nr)
{
	struct store_conf conf = many_conf();
	struct store *st;

	if (twice) {
		paths[conf.disks.nr] = paths[below((uint32_t)conf.disks.nr)];
		conf.disks.nr++;
	}
	start_result = store_start(&conf, &st, start_error, sizeof start_error);
	if (start_result < 0)
		return;
	for (int i = 0; i < prof.ports; i++) {
		struct sim_port *sp = &ports[i];

		check(ring_new(&(struct ring_params){ .entries = 128 }, &sp->ring) == 0);
		check(mailbox_init(&sp->mb) == 0);
		sp->timers = (struct timers){ 0 };
		sp->there = true;
		check(store_attach(st, sp->ring, &sp->mb, &sp->timers, &sp->p) == 0);
	}
	sim_store = st;
	engines_agree();
}

static void
forget_main(int nr)
{
	struct store_conf conf = many_conf();

	conf.disks.accept_missing_nr = 0;
	conf.disks.forget = (const uint8_t(*)[UUID_BYTES])given_up;
	conf.disks.forget_nr = 1;
	start_result = store_task(&conf, TASK_FORGET, start_error, sizeof start_error);
}

static bool
start_over(void)
{
	return !co_runs(CO_START, 0);
}

bool
many_over(void)
{
	for (int i = 0; i <= OPERATOR; i++) {
		if (co_runs(CO_CLIENT, i))
			return false;
	}
	return true;
}

/* It serves with these; members are those of its table.  Returns those of them that are configured and there. */
static unsigned
check_members(unsigned serving)
{
	unsigned present = (members & ~away) | strangers;

	if (serving & ~present)
		sim_fail("started with disks %x, which are not configured", serving & ~present);
	if (serving & moves_gone())
		sim_fail("started with disks %x, which were drained or given up", serving & moves_gone());
	counts.put_back += (strangers & moves_gone()) != 0;
	members = moves_members(&set_of(sim_store)->map.table);
	away = members & ~serving;
	strangers &= ~members;
	return present & members;
}

/* By the newest table of those that were there: one is a stranger, or is missing and may not be, or present are too few. */
static bool
is_refused_rightly(unsigned accepted)
{
	static struct disk_table t;
	unsigned present = (members & ~away) | strangers, in;

	if (!moves_newest(present, &t))
		return true;
	accepted &= accepts_all ? ~0u : away;
	in = moves_members(&t);
	counts.put_back += (strangers & moves_gone()) != 0;
	/* The paths of more disks than are missing: one of them is something else. */
	return (present & ~in) || (in & ~present & ~accepted) || 2 * count(present & in) <= count(in) ||
	       count(members & away) > count(in & ~present);
}

/* True: it serves. */
bool
many_start(uint64_t life)
{
	unsigned present = members & ~away, had = members, serving = 0, behind = moves_behind(present);

	say("start: members %x, away %x, strangers %x", members, away, strangers);
	sim_absent = away | ~(members | strangers);
	start_result = 0;
	start_error[0] = 0;
	counts.starts++;
	for (int i = 0; i < CLIENTS; i++) {
		many_clients[i] = (struct many_client){ .nr = i };
		many_clients[i].buf = (struct buf){ .mem = memory[i], .cap_bytes = STORE_PIECE };
	}
	/* One that may fail may do so on the way. */
	uploads_start(present & ~faulty & ~behind & deciding, behind != 0, false);
	pairs_before_start(present | strangers);
	co_start(CO_START, 0, start_main);
	if (!sim_go(start_over, life)) {
		pairs_not_started();
		many_dies(true);
		return false;
	}
	say("start: %d %s", start_result, start_error);
	trace(40, (uint64_t)(int64_t)start_result, present);
	if (start_result == 0) {
		/* One that failed on the way is away. */
		serving = many_disks_of(set_of(sim_store), set_all(set_of(sim_store)));
		if (prof.moves)
			present = check_members(serving);
		if ((present & ~serving & ~faulty) || (serving & ~present))
			sim_fail("started with disks %x of %x", serving, present);
		away |= present & ~serving;
		present = serving;
		if (2 * count(present) < count(members))
			sim_fail("started with %d of %d disks", count(present), count(members));
		if (twice)
			sim_fail("started with a disk that is there twice");
		last_in = present;
		uploads_start(present & ~behind & deciding, behind != 0, true);
		pairs_started(present);
		return true;
	}
	pairs_not_started();
	if (start_result == -EAGAIN) {
		/* Buckets are made alike without a snapshot in between: the next start makes one first. */
		counts.not_now++;
		many_dies(false);
		return false;
	}
	if (prof.moves && is_refused_rightly(had)) {
		many_dies(false);
		return false;
	}
	/* The data of a record at the end of the log, which no later block confirms, cannot be read: the engine cannot tell whether
	 * the record was acknowledged. The remedy of the message is a copy. */
	if (pairs_rotten() && start_result == -EINVAL &&
	    strstr(start_error, ", which may have been acknowledged")) {
		simdisk_readable(__builtin_ctz(pairs_rotten()));
		many_dies(false);
		return false;
	}
	if (!faulty && !twice && 2 * count(present) > count(members))
		sim_fail("with %d of %d disks the start fails: %d %s", count(present), count(members),
			 start_result, start_error);
	if (start_result != -EINVAL && !faulty)
		sim_fail("the start is refused with %d: %s", start_result, start_error);
	many_dies(false);
	return false;
}

unsigned
many_serving(void)
{
	return many_disks_of(set_of(sim_store), set_in(set_of(sim_store)));
}

int
many_try_start(const char **ret_error)
{
	int r;

	start_result = 0;
	start_error[0] = 0;
	counts.starts++;
	co_start(CO_START, 0, start_main);
	sim_go(start_over, 0);
	say("start: %d %s", start_result, start_error);
	r = start_result;
	*ret_error = start_error;
	many_dies(false);
	return r;
}

/* True: it was not cut. */
static bool
give_up(uint64_t life)
{
	bool is_over = true;

	for (int tries = 0; tries < 20 && is_over; tries++) {
		sim_absent = away | ~members;
		start_result = 0;
		co_start(CO_START, 0, forget_main);
		is_over = sim_go(start_over, life);
		many_dies(true);
		if (start_result != -EAGAIN)
			break;
	}
	say("given up: %d %s", start_result, start_error);
	return is_over;
}

/* Where slots are, of which a cut may have left it open.  False: that cannot be known, or they are not those members. */
static bool
find_homes(int disk, struct disk_table *t)
{
	if (simdisk_late() || strangers || !moves_newest(members & ~(1u << disk), t) ||
	    moves_members(t) != members)
		return false;
	for (int i = 0; i < STORE_SLOT_NR; i++)
		home[i] = (uint8_t)moves_home(t, i);
	return true;
}

/* The cut took a table that a dead process had written, and not flushed: the one before has other members, the disk among them. */
static bool
fell_back(int disk)
{
	static struct disk_table t;
	unsigned now = moves_newest(members & ~(1u << disk), &t) ? moves_members(&t) : members;

	return (now >> disk & 1) && now != members;
}

/* A disk that is away is given up. */
static void
forget(void)
{
	static struct disk_table t;
	int d = away ? __builtin_ctz(away) : 0;
	unsigned had = members;
	uint64_t life = one_in(2) ? 1 + below(200) : 0;
	bool is_over = false;

	/* Of buckets the others know nothing that counts. */
	if (count(away & members) != 1 || !(last_in & ~away) || !pairs_are_sure())
		return;
	if ((prof.moves || prof.two) && !find_homes(d, &t))
		return;
	memcpy(given_up[0], many_uuid[d], UUID_BYTES);
	say("disk %d is given up", d);
	is_over = give_up(life);
	if (is_over && start_result < 0)
		sim_fail("a disk that is away cannot be given up: %d %s", start_result, start_error);
	if (!is_over && prof.moves && fell_back(d))
		return;
	/* Behind a cut it is done, or not. */
	if (!is_over && give_up(0) && start_result < 0 &&
	    !strstr(start_error, "does not belong to this store"))
		sim_fail("a disk cannot be given up behind a cut: %d %s", start_result, start_error);
	members = had & ~(1u << d);
	away &= members;
	/* Begun and not finished, it is finished by a start. */
	if (!is_over && many_start(0))
		many_dies(true);
	counts.given_up++;
	moves_leave(d);
	uploads_given_up(d, &t);
	pairs_not_started();
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < KEYS; k++) {
			if (many_has_two(b) ? pairs_are_lost_with(&t, d, b, k) : many_home(b, k) == d)
				cell_set(&many_keys[b][k], 0);
		}
	}
}

/* Of slots only those of a disk that was given up have another home, and such as may have moved. */
void
many_look_at_homes(void)
{
	const struct set *s = set_of(sim_store);
	const struct disk_table *t = &s->map.table;

	say("the table: version %llx, in %llx, draining %llx, filling %llx", (unsigned long long)t->version,
	    (unsigned long long)t->in, (unsigned long long)t->draining, (unsigned long long)t->filling);
	if (moves_members(t) != members)
		sim_fail("the table has members %llx", (unsigned long long)t->members);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int is = moves_home(t, i);

		if ((members >> home[i] & 1 ? is != home[i] : !(members >> is & 1)) && !moves_may())
			sim_fail("slot %d was at home on disk %d, is on %d", i, home[i], is);
		if ((set_primary_at(s, (unsigned)i) == SET_NOWHERE) != (away >> is & 1) ||
		    (set_primary_at(s, (unsigned)i) != SET_NOWHERE &&
		     moves_disk(s, set_primary_at(s, (unsigned)i)) != is))
			sim_fail("slot %d is not where the table has it", i);
		home[i] = (uint8_t)is;
	}
	moves_looked(t);
}

/* Some disks, often one. */
static void
may_fail(void)
{
	simdisk_faulty = 1u << below((uint32_t)prof.disks);
	if (one_in(2))
		simdisk_faulty |= below(1u << prof.disks);
	faulty |= simdisk_faulty;
	sim_disk_may_fail = true;
	say("disks %x may fail", simdisk_faulty);
}

/* All moves that were under way come to their end, then one more. */
static void
rest(void)
{
	for (int i = 0; i < 2; i++) {
		if (prof.rot) {
			co_start(CO_CLIENT, 0, pairs_mend_main);
			sim_go(many_over, 0);
		}
		sim_go(moves_over, 0);
		moves_check();
		if (prof.two) {
			co_start(CO_CLIENT, 0, pairs_check_main);
			sim_go(many_over, 0);
		}
		if (i || !prof.moves)
			break;
		co_start(CO_CLIENT, OPERATOR, moves_calm_main);
		sim_go(many_over, 0);
	}
}

static void
live(bool calm)
{
	uint64_t life = calm                     ? 0
			: prof.life              ? prof.life
			: prof.moves || prof.two ? 1 + below(one_in(3)   ? 300
							     : one_in(3) ? 2000
									 : 20000)
						 : 1 + below(one_in(2) ? 300 : 2000);

	many_look_at_homes();
	ops_left = calm ? 0 : prof.ops;
	co_start(CO_CLIENT, 0, many_verify_main);
	if (!sim_go(many_over, life)) {
		many_dies(one_in(2));
		return;
	}
	/* A start counts what was counted before. */
	if (!prof.moves && many_hurt() == 0)
		quotas_compare();
	if (prof.two) {
		co_start(CO_CLIENT, 0, pairs_same_main);
		if (!sim_go(many_over, 0)) {
			many_dies(true);
			return;
		}
	}
	if (!calm && prof.two && !prof.rot && !prof.older && one_in(2)) {
		co_start(CO_CLIENT, 0, pairs_copies_main);
		if (!sim_go(many_over, life) || !pairs_are_sure()) {
			many_dies(one_in(2));
			return;
		}
	}
	if (!calm && one_in(prof.rot))
		pairs_rot();
	if (!calm && prof.slow && one_in(4)) {
		simdisk_hung = 1u << below((uint32_t)prof.disks);
		faulty |= simdisk_hung;
		say("disk %d stops", __builtin_ctz(simdisk_hung));
	}
	if (!calm && prof.eio_write && one_in(2))
		may_fail();
	/* While bytes of one disk are rotten no other disk misses a change: the data of a part, of which the upload is then completed on
	 * the first disk alone, would have the rotten copy only. */
	if (!calm && !pairs_rotten() && one_in(prof.lacks)) {
		lacking = 1u << below((uint32_t)prof.disks);
		simdisk_short = lacking;
	}
	if (lacking)
		say("there is no memory for disk %d", __builtin_ctz(lacking));
	if (!calm && prof.no_room && one_in(2)) {
		tight = simdisk_tight = 1u << below((uint32_t)prof.disks);
		say("there may be no room for disk %d", __builtin_ctz(tight));
	}
	for (int i = 0; i < CLIENTS && !calm; i++)
		co_start(CO_CLIENT, i, client_main);
	if (prof.moves && !calm)
		co_start(CO_CLIENT, OPERATOR, moves_main);
	if (sim_go(many_over, life) && prof.two && many_hurt() == away) {
		co_start(CO_CLIENT, 0, pairs_settled_main);
		sim_go(many_over, 0);
	}
	if (tight && many_over() && many_hurt() == away && one_in(2)) {
		simdisk_tight = 0;
		co_start(CO_CLIENT, 0, finds_room_main);
		sim_go(many_over, 0);
	}
	if (calm && (prof.moves || prof.two))
		rest();
	if (calm) {
		co_start(CO_CLIENT, 0, many_verify_main);
		sim_go(many_over, 0);
		if (many_hurt() == 0)
			quotas_compare();
	}
	if (failed() & ~faulty)
		sim_fail("disks %x have failed of what they have not said", failed() & ~faulty);
	faulty = 0;
	sim_disk_may_fail = false;
	many_dies(one_in(2));
	lacking = tight = 0;
}

/* Those of the newest table, as far as it can be known: what a dead process wrote may still come. */
static void
choose_members(void)
{
	static struct disk_table t;

	if (!prof.moves)
		return;
	check(moves_newest(~0u, &t));
	members = moves_members(&t);
	away &= members;
	/* One that was drained is put back. */
	strangers = one_in(4) ? (unsigned)below(1u << prof.disks) & moves_made() & ~members : 0;
}

static void
choose_away(void)
{
	/* While bytes rot all are there, so that there is a copy that is whole. */
	if (prof.rot) {
		away = 0;
		return;
	}
	/* One that was away stays so, often. */
	if (away && one_in(2))
		return;
	away = one_in(3) ? 0 : (unsigned)below(1u << prof.disks) & members;
	if (away == members)
		away = 0;
	if (count(away) > 1 && one_in(2))
		away &= -away;
}

static void
refused_stranger(void)
{
	unsigned had = members;

	/* One that was given up is configured again. */
	members = (1u << prof.disks) - 1;
	if (had == members)
		return;
	sim_absent = away = 0;
	co_start(CO_START, 0, start_main);
	sim_go(start_over, 0);
	if (start_result != -EINVAL)
		sim_fail("started with a disk that was given up: %d", start_result);
	many_dies(false);
	members = had;
}

static void
format(void)
{
	static struct super sb;
	uint64_t size[DISKS_MAX];

	sb = sim_super();
	for (int d = 0; d < prof.disks; d++) {
		memset(many_uuid[d], d + 1, UUID_BYTES);
		size[d] = sb.geo.size_bytes;
	}
	moves_begin(members);
	table_make(&sb.table, (const uint8_t(*)[UUID_BYTES])many_uuid, size, prof.disks - prof.spare, 1);
	memcpy(home, sb.table.home, sizeof home);
	for (int d = 0; d < prof.disks - prof.spare; d++) {
		memcpy(sb.disk_uuid, many_uuid[d], UUID_BYTES);
		sim_make_disk(d, &sb);
	}
}

void
many_choose(unsigned those)
{
	choose_members();
	strangers = 0;
	away = those & members;
}

void
many_start_all(void)
{
	many_choose(0);
	sim_absent = ~members;
	for (int tries = 0; !many_start(0); tries++) {
		if ((start_result != -EAGAIN && !prof.moves) || tries == 20)
			sim_fail("it does not start with all its disks");
		choose_members();
		away = 0;
	}
}

uint64_t
many_told(void)
{
	return many_events;
}

void
many_fail(int disk)
{
	const struct set *set = sim_store ? set_of(sim_store) : NULL;

	for (int i = 0; set && i < set_engines(set); i++) {
		if (moves_disk(set, i) != disk)
			continue;
		say("disk %d fails", disk);
		faulty |= 1u << disk;
		disk_fail(&extent_store(set_engine(set, i))->vol->disk, "it fails");
	}
}

void
many_none_fails(void)
{
	faulty = lacking = tight = 0;
	sim_disk_may_fail = false;
}

void
many_begin_history(void)
{
	memset(many_keys, 0, sizeof many_keys);
	memset(many_buckets, 0, sizeof many_buckets);
	memset(battr, 0, sizeof battr);
	memset(many_bounds, 0, sizeof many_bounds);
	quotas_begin();
	memset(content_of, 0, sizeof content_of);
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = -3; k < KEYS; k++) {
			struct cell *c = cell_of(b, k);

			c->pending = c->other = UNKNOWN_ID;
			c->nr = 1;
		}
	}
	many_events = 0;
	memset(bucket_mixed, 0, sizeof bucket_mixed);
	memset(bucket_gone, 0, sizeof bucket_gone);
	memset(bucket_ops, 0, sizeof bucket_ops);
	memset(bucket_removals, 0, sizeof bucket_removals);
	memset(bucket_cut, 0, sizeof bucket_cut);
	memset(bucket_over, 0, sizeof bucket_over);
	uploads_begin();
	pairs_begin();
	lost_begin();
	away = 0;
	faulty = 0;
	sim_disk_may_fail = false;
	twice = 0;
	many_ids = 0;
	members = last_in = deciding = (1u << (prof.disks - prof.spare)) - 1;
	strangers = 0;
	waits = false;
	format();
}

void
many_run(void)
{
	many_begin_history();
	for (int i = 0; i < prof.lives; i++) {
		choose_members();
		choose_away();
		waits = (prof.moves || prof.two) && one_in(16);
		if (prof.older)
			pairs_older();
		if (!pairs_can_start(members & ~away))
			away = 0;
		if (prof.eio_write && one_in(4)) {
			may_fail();
			accepts_all = one_in(2);
		}
		if (one_in(prof.lost)) {
			lost_files();
			choose_members();
			choose_away();
		}
		twice = !away && one_in(16);
		if (many_start(one_in(prof.cut_in_recovery) ? 1 + below(150u * (uint32_t)prof.disks) : 0))
			live(false);
		twice = 0;
		faulty = 0;
		accepts_all = sim_disk_may_fail = false;
		if (prof.abort && (away & members) && count(members) > 1 && one_in(prof.abort))
			forget();
		if (one_in(8) && !prof.moves)
			refused_stranger();
	}
	waits = false;
	for (int i = 0; i < 2; i++) {
		many_start_all();
		live(true);
	}
	sim_absent = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop of the store on RADOS, with a new store and ports; and the table of its functions. */
#include "rados/rados.h"

#include "base/advice.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/refuse.h"
#include "rados/io/format.h"
#include "rados/io/helpers.h"
#include "rados/io/rstore.h"
#include "rados/io/table.h"
#include "rados/io/usage.h"
#include "rados/module_int.h"
#include "rados/use/fsck.h"
#include "rados/use/use_int.h"
#include "store/damage.h"
#include "store/meter.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define CORES_PER_CLIENT 4

/* ---- format ---- */

/* Returns 1 if the pool, or its namespace, has an object; 0; or -errno. */
static int
holds_anything(rados_ioctx_t io)
{
	rados_list_ctx_t list;
	const char *name;
	int e = rados_nobjects_list_open(io, &list);

	if (e < 0)
		return e;
	e = rados_nobjects_list_next(list, &name, NULL, NULL);
	rados_nobjects_list_close(list);
	return e == -ENOENT ? 0 : e < 0 ? e : 1;
}

static bool
is_store(rados_ioctx_t io)
{
	char bytes[STORE_FORMAT_BYTES];

	return rados_getxattr(io, OBJECT_STORE, XATTR_FORMAT, bytes, sizeof bytes) > 0;
}

/* Makes the objects of a new store. The data pool gets the store's description as well, so that no other
 * store uses it. */
static int
write_store(const rados_ioctx_t io[POOL_NR], const struct store_format_row *row)
{
	uint8_t bytes[STORE_FORMAT_BYTES];
	uint64_t one = 1;
	rados_write_op_t op;
	int e = write_now(io[POOL_META], OBJECT_BUCKETS, op_new_object(XATTR_GENERATION, &one, sizeof one));

	format_encode(bytes, row);
	if (e == 0)
		e = write_now(io[POOL_DATA], OBJECT_STORE, op_new_object(XATTR_FORMAT, bytes, sizeof bytes));
	if (e < 0)
		return e;
	/* The description in the meta pool is written last, and completes the store. */
	op = op_new_object(XATTR_FORMAT, bytes, sizeof bytes);
	op_set(op, "E", &one, sizeof one);
	op_set(op, "N", &one, sizeof one);
	return write_now(io[POOL_META], OBJECT_STORE, op);
}

static int
rstore_format(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	const struct store_rados_conf *rc = &conf->rados;
	struct store_format_row row = { .version = STORE_FORMAT_VERSION, .object_bytes = rc->object_bytes };
	const char *pool[POOL_NR] = { rc->meta_pool, rc->data_pool };
	struct client c = { 0 };
	int e;

	if (force) {
		refuse(err, err_len, -EINVAL, "a store on RADOS is not made over another one");
		advice_add(err, err_len, ADVICE_POOLS_USED, NULL);
		return -EINVAL;
	}
	if (getrandom(row.uuid, sizeof row.uuid, 0) != sizeof row.uuid)
		return refuse(err, err_len, -EIO, "no random bytes");
	e = connect_to(&c, rc, err, err_len);
	for (int i = 0; e == 0 && i < POOL_NR; i++) {
		e = holds_anything(c.io[i]);
		if (e < 0)
			refuse(err, err_len, e, "pool %s: %s", pool[i], strerror(-e));
		else if (e == 1)
			e = refuse(err, err_len, is_store(c.io[POOL_META]) ? -EALREADY : -EEXIST,
				   "pool %s: not empty%s%s: a store wants pools, or a namespace, of its own",
				   pool[i], rc->ns && *rc->ns ? " in namespace " : "", rc->ns ? rc->ns : "");
	}
	if (e == 0) {
		e = write_store(c.io, &row);
		if (e < 0)
			refuse(err, err_len, e, "pools %s and %s: the store cannot be made: %s",
			       rc->meta_pool, rc->data_pool, strerror(-e));
	}
	disconnect(&c);
	return e;
}

/* ---- start, stop ---- */

/* Checks the alignment of an erasure-coded pool without overwrites: appended pieces must be aligned. */
static int
check_alignment(struct rstore *st, char *err, size_t err_len)
{
	uint64_t align = 0;
	int needs = 0;

	if (rados_ioctx_pool_requires_alignment2(st->client[0].io[POOL_DATA], &needs) == 0 && needs &&
	    rados_ioctx_pool_required_alignment2(st->client[0].io[POOL_DATA], &align) == 0 && align &&
	    STORE_GRANULE % align)
		return refuse(err, err_len, -EINVAL,
			      "pool %s: its stripe of %llu bytes does not divide %u: choose a power of two "
			      "as k, or allow overwrites",
			      st->data_pool, (unsigned long long)align, STORE_GRANULE);
	return 0;
}

static void
rstore_free(struct rstore *st)
{
	if (st->book)
		rbuckets_fini(st);
	quota_book_free(st->book);
	recall_fini(&st->recall);
	shard_fini(&st->buckets);
	for (int i = 0; i < st->client_nr; i++)
		disconnect(&st->client[i]);
	pthread_mutex_destroy(&st->cache_lock);
	pthread_mutex_destroy(&st->ports_lock);
	for (int i = 0; i < POOL_NR; i++)
		pthread_mutex_destroy(&st->stats[i].lock);
	free(st);
}

static int
start_helpers(struct rstore *st)
{
	int e = usage_start(st);

	atomic_store(&st->gw.sweep_all, true);
	if (e == 0)
		e = periodic_start(&st->gw.cleaner, "store-cleaner", HELPERS_NS, clean_up, st);
	if (e == 0)
		e = periodic_start(&st->gw.watcher, "store-watcher", HELPERS_NS, ask_cluster, st);
	if (e < 0)
		gateway_stop(st);
	return e;
}

static int
rstore_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len)
{
	const struct store_rados_conf *rc = &conf->rados;
	struct rstore *st = calloc(1, sizeof *st);
	int e = 0,
	    nr = rc->clients ? rc->clients : (conf->ports_max + CORES_PER_CLIENT - 1) / CORES_PER_CLIENT;

	if (!st)
		return refuse(err, err_len, -ENOMEM, "no memory");
	/* librados reads options for Ceph's own commands from this variable when it connects. */
	if (getenv("CEPH_ARGS"))
		log_warn("CEPH_ARGS of the environment is ignored");
	unsetenv("CEPH_ARGS");
	st->base.ops = &rados_store_ops;
	st->base.unit_nr = POOL_NR;
	st->ports_max = conf->ports_max;
	st->index_shards = rc->index_shards;
	st->dead_after_ns = rc->dead_after_ns;
	st->unwritten_max_bytes = rc->unwritten_max_bytes ? rc->unwritten_max_bytes : UINT64_MAX;
	st->limits = (struct store_limits){ STORE_PIECE, STORE_READ, STORE_GRANULE, STORE_INLINE_MAX,
					    .lets_go = true };
	snprintf(st->meta_pool, sizeof st->meta_pool, "%s", rc->meta_pool);
	snprintf(st->data_pool, sizeof st->data_pool, "%s", rc->data_pool);
	snprintf(st->ns, sizeof st->ns, "%s", rc->ns ? rc->ns : "");
	pthread_mutex_init(&st->cache_lock, NULL);
	pthread_mutex_init(&st->ports_lock, NULL);
	list_init(&st->ports);
	for (int i = 0; i < POOL_NR; i++)
		pthread_mutex_init(&st->stats[i].lock, NULL);
	atomic_store(&st->monitor_ns, clock_ns());
	shard_init(&st->buckets, OBJECT_BUCKETS, NULL);
	recall_init(&st->recall);
	if (quota_book_new(1, &st->book) < 0)
		e = refuse(err, err_len, -ENOMEM, "no memory");
	st->base.quotas = st->book;
	for (int i = 0; e == 0 && i < nr && i < CLIENTS_MAX; i++) {
		st->client_nr = i + 1;
		e = connect_to(&st->client[i], rc, err, err_len);
	}
	if (e == 0)
		e = format_read(st, err, err_len);
	if (e == 0)
		e = check_alignment(st, err, err_len);
	if (e == 0)
		e = gateway_start(st, err, err_len);
	if (e == 0)
		e = start_helpers(st);
	if (e < 0) {
		rstore_free(st);
		return e;
	}
	st->base.has_no_expiry =
		atomic_load(&st->gw.format_version) < record_version(&(struct record){ .expires_ns = 1 });
	*ret_store = &st->base;
	return 0;
}

static void
rstore_stop(struct store *base)
{
	struct rstore *st = rstore(base);

	gateway_stop(st);
	rstore_free(st);
}

/* ---- commands without a started store ---- */

/* Connects to the pools for a command, without a row among the gateways. Returns 0 or -errno; *ret_st is for
 * close_pools() in both cases. */
static int
open_pools(const struct store_conf *conf, struct rstore **ret_st, char *err, size_t err_len)
{
	struct rstore *st = calloc(1, sizeof *st);
	int e = st ? connect_to(&st->client[0], &conf->rados, err, err_len)
		   : refuse(err, err_len, -ENOMEM, "no memory");

	*ret_st = st;
	if (e < 0)
		return e;
	snprintf(st->meta_pool, sizeof st->meta_pool, "%s", conf->rados.meta_pool);
	snprintf(st->data_pool, sizeof st->data_pool, "%s", conf->rados.data_pool);
	return format_read(st, err, err_len);
}

static void
close_pools(struct rstore *st)
{
	if (st)
		disconnect(&st->client[0]);
	free(st);
}

static int
rstore_task(const struct store_conf *conf, enum store_task task, char *said, size_t said_len)
{
	struct rstore *st;
	int e;

	if (task != TASK_UPGRADE)
		return -ENOSYS;
	e = open_pools(conf, &st, said, said_len);
	if (e == 0)
		e = format_raise(st, said, said_len);
	close_pools(st);
	return e;
}

static int
rstore_fsck(const struct store_conf *conf, enum fsck_mode mode, void (*say)(void *cookie, const char *line),
	    void *cookie)
{
	struct meter_disk *meter = meter_of(conf->disks.meter, conf->rados.meta_pool);
	struct store_damage *damage = conf->rados.damage;
	struct rstore *st;
	char err[256];
	int e;

	/* The step is set before the connection, so that the progress also shows a cluster that does not
	 * answer. */
	meter_step(meter, METER_INDEX_ALL, 0);
	e = open_pools(conf, &st, err, sizeof err);
	if (e < 0)
		say(cookie, err);
	else
		e = fsck_store(st, mode, damage ? &damage->sums : NULL, meter, say, cookie);
	meter_step(meter, METER_WAITS, 0);
	if (damage && e != 0)
		damage_report(damage, false, say, cookie);
	close_pools(st);
	return e;
}

/* ---- ports ---- */

static int
rstore_attach(struct store *base, struct ring *ring, struct mailbox *mb, struct timers *timers,
	      struct store_port **ret_port)
{
	struct rstore *st = rstore(base);
	struct rport *p = calloc(1, sizeof *p);

	if (!p)
		return -ENOMEM;
	if (atomic_fetch_add(&st->port_nr, 1) >= st->ports_max) {
		atomic_fetch_sub(&st->port_nr, 1);
		free(p);
		return -EUSERS;
	}
	p->base.ops = &rados_store_ops;
	p->base.limits = &st->limits;
	p->st = st;
	p->mb = mb;
	p->client = &st->client[atomic_fetch_add(&st->port_made, 1) % st->client_nr];
	pthread_mutex_init(&p->calls_lock, NULL);
	list_init(&p->calls);
	atomic_store(&p->answered_ns, clock_ns());
	pthread_mutex_lock(&st->ports_lock);
	list_push_tail(&st->ports, &p->link);
	pthread_mutex_unlock(&st->ports_lock);
	*ret_port = &p->base;
	return 0;
}

static bool
rstore_detach(struct store_port *sp)
{
	struct rport *p = rport(sp);

	if (p->inflight)
		return false;
	pthread_mutex_lock(&p->st->ports_lock);
	list_del(&p->link);
	pthread_mutex_unlock(&p->st->ports_lock);
	atomic_fetch_sub(&p->st->port_nr, 1);
	pthread_mutex_destroy(&p->calls_lock);
	ahead_end(p);
	free(p);
	return true;
}

static bool
rstore_share(struct store_port *sp, uint32_t shard)
{
	struct gateway *gw = &rport(sp)->st->gw;
	uint64_t nr = atomic_load(&gw->gateways);

	return nr < 2 || shard % nr == atomic_load(&gw->rank);
}

/* ---- the table of functions ---- */

static int
rstore_apply(struct store_port *p, const struct store_change *c, struct store_op *op)
{
	static int (*const apply[])(struct store_port *, const struct store_change *, struct store_op *) = {
		[ACT_DELETE] = rstore_change_object,        [ACT_SET_ATTRS] = rstore_change_object,
		[ACT_CREATE_UPLOAD] = rstore_upload_create, [ACT_ABORT_UPLOAD] = rstore_upload_close,
		[ACT_COMPLETE] = rstore_upload_close,       [ACT_CREATE_BUCKET] = rstore_bucket_create,
		[ACT_DELETE_BUCKET] = rstore_bucket_delete, [ACT_SET_BUCKET_ATTRS] = rstore_bucket_set,
		[ACT_SET_QUOTA] = rstore_bucket_set,
	};

	return c->act < sizeof apply / sizeof apply[0] ? apply[c->act](p, c, op) : -EOPNOTSUPP;
}

static int
rstore_look(struct store_port *p, const struct store_look *l, struct store_op *op)
{
	static int (*const look[LOOK_NR])(struct store_port *, const struct store_look *,
					  struct store_op *) = {
		[LOOK_OBJECT] = rstore_open_object,       [LOOK_UPLOAD] = rstore_upload_stat,
		[LOOK_PARTS] = rstore_list_parts,         [LOOK_BUCKET] = rstore_bucket_look,
		[LOOK_BUCKET_ATTRS] = rstore_bucket_look,
	};

	if (l->is_second)
		return -ENODATA;
	return look[l->kind] ? look[l->kind](p, l, op) : -EOPNOTSUPP;
}

const struct store_ops rados_store_ops = {
	.name = "rados",
	.format = rstore_format,
	.start = rstore_start,
	.task = rstore_task,
	.fsck = rstore_fsck,
	.stop = rstore_stop,
	.attach = rstore_attach,
	.detach = rstore_detach,
	.share = rstore_share,
	.look = rstore_look,
	.close = rstore_close_object,
	.read_plan = rstore_read_plan,
	.read = rstore_read_object,
	.read_cancel = rstore_read_cancel,
	.give_up = calls_give_up,
	.put_init = rstore_put_init,
	.put_write = rstore_put_write,
	.write_cancel = rstore_write_cancel,
	.put_commit = rstore_put_commit,
	.put_abort = rstore_put_abort,
	.apply = rstore_apply,
	.obj_part = rstore_obj_part,
	.bucket_was_there = rstore_bucket_was_there,
	.list = rstore_list,
	.answers = rstore_answers,
	.unit_info = rstore_unit_info,
	.background = rstore_background,
};

extern const struct store_module gantry_store_module;
const struct store_module gantry_store_module = { GANTRY_VERSION, &rados_store_ops };

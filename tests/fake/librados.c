/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster in memory: connections, completions, and the functions of librados. See librados.h. */
#include "tests/fake/librados_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest page that a cluster gives (osd_max_omap_entries_per_request). */
#define PAGE_MAX 1024

struct connection {
	struct connection *next;
	unsigned owner, number;
	bool is_cut;
	char keyring[4096]; /* the option of this name, the only one that is kept; "": it was not set */
};

struct ioctx {
	struct connection *connection;
	struct fake_pool *pool;
	char ns[64];
	unsigned waiting;
};

struct completion {
	rados_callback_t back;
	void *cookie;
	int result;
	bool is_over, is_released;
};

/* An operation with a callback. */
struct waiting {
	struct waiting *next;
	struct ioctx *io;
	char name[64];
	struct operation op;
	struct completion *comp;
	bool is_done; /* carried out, but not yet answered */
	int result;
};

static struct fake_rados_tuning tuning = { .seed = 1 };
static uint64_t random_state = 1, faults;
static struct connection *connections;
static struct waiting *queue;
static unsigned queue_nr, owner_now, number_last, completions;

static uint64_t
rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1du >> 16;
}

static bool
one_in(uint32_t n)
{
	bool yes = n && rnd() % n == 0;

	faults += yes;
	return yes;
}

/* ---- functions for tests ---- */

void
fake_rados_tune(const struct fake_rados_tuning *t)
{
	uint64_t seed = t->seed ? t->seed : tuning.seed;

	if (t->seed)
		random_state = t->seed * 0x9e3779b97f4a7c15u | 1;
	tuning = *t;
	tuning.seed = seed;
}

void
fake_rados_reset(const struct fake_rados_tuning *t)
{
	check(!connections && !queue);
	check(completions == 0);
	fake_helpers_check();
	fake_objects_drop();
	faults = 0;
	owner_now = number_last = 0;
	fake_rados_tune(t ? t : &(struct fake_rados_tuning){ .seed = 1 });
}

uint64_t
fake_rados_faults(void)
{
	return faults;
}

unsigned
fake_rados_objects(void)
{
	unsigned nr = 0;

	for (int i = 0; i < FAKE_POOLS; i++) {
		for (size_t h = 0; h < sizeof fake_pools[i].hash / sizeof *fake_pools[i].hash; h++) {
			for (const struct object *o = fake_pools[i].hash[h]; o; o = o->next)
				nr++;
		}
	}
	return nr;
}

void
fake_rados_raise(void)
{
	struct fake_pool *pool = &fake_pools[0];

	for (size_t h = 0; h < sizeof pool->hash / sizeof *pool->hash; h++) {
		for (const struct object *o = pool->hash[h]; o; o = o->next) {
			if (strncmp(o->name, "idx.", 4) == 0)
				fake_raise(pool, o->ns, o->name);
		}
	}
}

void
fake_rados_owner(unsigned owner)
{
	owner_now = owner;
}

unsigned
fake_rados_waiting(void)
{
	return queue_nr;
}

/* Tells whether an earlier operation of the connection on the object waits. */
static bool
has_earlier(const struct waiting *w)
{
	for (const struct waiting *e = queue; e != w; e = e->next) {
		if (e->io->connection == w->io->connection && e->io->pool == w->io->pool &&
		    strcmp(e->name, w->name) == 0 && strcmp(e->io->ns, w->io->ns) == 0)
			return true;
	}
	return false;
}

static int
carry_out(struct ioctx *io, const char *name, struct operation *op, uint64_t page_max)
{
	return io->connection->is_cut ? -ESHUTDOWN : fake_operate(io->pool, io->ns, name, op, page_max);
}

static void
carry_out_waiting(struct waiting *w)
{
	bool is_change = fake_is_write(&w->op) && fake_compares_omap(&w->op) && !w->io->connection->is_cut;
	uint64_t page_max = tuning.page_max ? 1 + rnd() % tuning.page_max : PAGE_MAX;

	check(!w->is_done);
	w->is_done = true;
	if (is_change && one_in(tuning.conflict)) {
		w->result = -ECANCELED;
		return;
	}
	if (is_change && one_in(tuning.raise))
		fake_raise(w->io->pool, w->io->ns, w->name);
	w->result = carry_out(w->io, w->name, &w->op, page_max);
	if (is_change && one_in(tuning.twice))
		w->result = carry_out(w->io, w->name, &w->op, page_max);
}

static void
completion_free(struct completion *c)
{
	check(completions > 0);
	completions--;
	free(c);
}

static void
answer(struct waiting *w)
{
	struct completion *c = w->comp;
	struct waiting **link = &queue;

	while (*link != w)
		link = &(*link)->next;
	*link = w->next;
	queue_nr--;
	w->io->waiting--;
	c->result = w->result;
	fake_operation_free(&w->op);
	free(w);
	c->is_over = true;
	c->back(c, c->cookie);
	if (c->is_released)
		completion_free(c);
}

bool
fake_rados_step(void)
{
	struct waiting *w = queue;

	if (!w)
		return false;
	for (unsigned n = (unsigned)(rnd() % queue_nr); n; n--)
		w = w->next;
	/* The first operation of each object has no earlier one. */
	while (has_earlier(w))
		w = queue;
	if (!w->is_done) {
		carry_out_waiting(w);
		if (rnd() % 4 == 0)
			return true;
	}
	answer(w);
	return true;
}

void
fake_rados_kill(unsigned owner)
{
	for (struct waiting *w = queue; w; w = w->next) {
		bool is_lost = false;

		if (w->io->connection->owner != owner)
			continue;
		/* Operations on one object keep their order, so those after a lost one are lost too. */
		for (struct waiting *e = queue; e != w && !is_lost; e = e->next)
			is_lost = e->result == -ESHUTDOWN && e->io->pool == w->io->pool &&
				  strcmp(e->name, w->name) == 0;
		if (!w->is_done && !is_lost && rnd() % 2 == 0)
			carry_out_waiting(w);
		else if (!w->is_done)
			w->result = -ESHUTDOWN;
		w->is_done = true;
	}
	for (struct connection *c = connections; c; c = c->next)
		c->is_cut |= c->owner == owner;
	for (struct waiting *w = queue; w; w = w->next) {
		if (w->io->connection->is_cut)
			w->result = -ESHUTDOWN;
	}
}

/* ---- connections ---- */

int
rados_create(rados_t *cluster, const char *const id)
{
	struct connection *c = calloc(1, sizeof *c);

	check(c);
	c->owner = owner_now;
	c->number = ++number_last;
	c->next = connections;
	connections = c;
	*cluster = c;
	return 0;
}

int
rados_conf_read_file(rados_t cluster, const char *path)
{
	return 0;
}

int
rados_conf_set(rados_t cluster, const char *option, const char *value)
{
	struct connection *c = cluster;

	if (strcmp(option, "keyring") == 0)
		snprintf(c->keyring, sizeof c->keyring, "%s", value);
	return 0;
}

int
rados_conf_get(rados_t cluster, const char *option, char *buf, size_t len)
{
	const struct connection *c = cluster;

	if (strcmp(option, "keyring") != 0 || !c->keyring[0])
		return -ENOENT;
	return (size_t)snprintf(buf, len, "%s", c->keyring) < len ? 0 : -ENAMETOOLONG;
}

int
rados_connect(rados_t cluster)
{
	return 0;
}

void
rados_shutdown(rados_t cluster)
{
	struct connection **link = &connections;

	for (const struct waiting *w = queue; w; w = w->next)
		check(w->io->connection != cluster);
	while (*link != cluster)
		link = &(*link)->next;
	*link = (*link)->next;
	free(cluster);
}

int
rados_getaddrs(rados_t cluster, char **addrs)
{
	const struct connection *c = cluster;

	*addrs = malloc(32);
	check(*addrs);
	snprintf(*addrs, 32, "127.0.0.1:0/%u", c->number);
	return 0;
}

int
rados_blocklist_add(rados_t cluster, char *client_address, uint32_t expire_seconds)
{
	const char *slash = strrchr(client_address, '/');

	check(slash);
	for (struct connection *c = connections; c; c = c->next)
		c->is_cut |= c->number == strtoul(slash + 1, NULL, 10);
	return 0;
}

void
rados_buffer_free(char *buf)
{
	free(buf);
}

int
rados_cluster_stat(rados_t cluster, struct rados_cluster_stat_t *result)
{
	*result = (struct rados_cluster_stat_t){ .kb = 1 << 30, .kb_avail = 1 << 29 };
	return 0;
}

int
rados_mon_command(rados_t cluster, const char **cmd, size_t cmdlen, const char *inbuf, size_t inbuflen,
		  char **outbuf, size_t *outbuflen, char **outs, size_t *outslen)
{
	*outbuf = *outs = NULL;
	*outbuflen = *outslen = 0;
	return -EINVAL;
}

int64_t
rados_pool_lookup(rados_t cluster, const char *pool_name)
{
	for (int i = 0; i < FAKE_POOLS; i++) {
		if (strcmp(fake_pools[i].name, pool_name) == 0)
			return i + 1;
	}
	return -ENOENT;
}

int
rados_ioctx_create(rados_t cluster, const char *pool_name, rados_ioctx_t *ioctx)
{
	int64_t id = rados_pool_lookup(cluster, pool_name);
	struct ioctx *io = id < 0 ? NULL : calloc(1, sizeof *io);

	if (id < 0)
		return (int)id;
	check(io);
	io->connection = cluster;
	io->pool = &fake_pools[id - 1];
	*ioctx = io;
	return 0;
}

void
rados_ioctx_destroy(rados_ioctx_t io)
{
	check(((struct ioctx *)io)->waiting == 0);
	free(io);
}

int64_t
rados_ioctx_get_id(rados_ioctx_t io)
{
	return ((struct ioctx *)io)->pool - fake_pools + 1;
}

void
rados_ioctx_set_namespace(rados_ioctx_t io, const char *nspace)
{
	snprintf(((struct ioctx *)io)->ns, sizeof((struct ioctx *)io)->ns, "%s", nspace);
}

int
rados_ioctx_pool_requires_alignment2(rados_ioctx_t io, int *req)
{
	*req = 0;
	return 0;
}

int
rados_ioctx_pool_required_alignment2(rados_ioctx_t io, uint64_t *alignment)
{
	*alignment = 0;
	return 0;
}

void
rados_set_pool_full_try(rados_ioctx_t io)
{
}

/* ---- names of objects ---- */

struct names {
	const struct ioctx *io;
	const struct object *at;
	size_t h;
};

int
rados_nobjects_list_open(rados_ioctx_t io, rados_list_ctx_t *ctx)
{
	struct names *n = calloc(1, sizeof *n);

	check(n);
	n->io = io;
	n->at = n->io->pool->hash[0];
	*ctx = n;
	return 0;
}

int
rados_nobjects_list_next(rados_list_ctx_t ctx, const char **entry, const char **key, const char **nspace)
{
	struct names *n = ctx;

	for (;;) {
		const struct object *o = n->at;

		if (!o && ++n->h == sizeof n->io->pool->hash / sizeof *n->io->pool->hash)
			return -ENOENT;
		n->at = o ? o->next : n->io->pool->hash[n->h];
		if (!o || strcmp(o->ns, n->io->ns) != 0)
			continue;
		*entry = o->name;
		if (key)
			*key = NULL;
		if (nspace)
			*nspace = o->ns;
		return 0;
	}
}

void
rados_nobjects_list_close(rados_list_ctx_t ctx)
{
	free(ctx);
}

/* ---- write operations ---- */

rados_write_op_t
rados_create_write_op(void)
{
	struct operation *op = calloc(1, sizeof *op);

	check(op);
	return op;
}

void
rados_release_write_op(rados_write_op_t write_op)
{
	fake_operation_free(write_op);
	free(write_op);
}

void
rados_write_op_assert_exists(rados_write_op_t write_op)
{
	fake_step(write_op, STEP_ASSERT_EXISTS);
}

void
rados_write_op_create(rados_write_op_t write_op, int exclusive, const char *category)
{
	fake_step(write_op, STEP_CREATE)->exclusive = exclusive == LIBRADOS_CREATE_EXCLUSIVE;
}

void
rados_write_op_cmpxattr(rados_write_op_t write_op, const char *name, uint8_t comparison_operator,
			const char *value, size_t value_len)
{
	check(comparison_operator == LIBRADOS_CMPXATTR_OP_EQ);
	fake_step_pair(fake_step(write_op, STEP_CMP_XATTR), name, strlen(name), value, value_len);
}

void
rados_write_op_omap_cmp2(rados_write_op_t write_op, const char *key, uint8_t comparison_operator,
			 const char *val, size_t key_len, size_t val_len, int *prval)
{
	check(comparison_operator == LIBRADOS_CMPXATTR_OP_EQ && !prval);
	fake_step_pair(fake_step(write_op, STEP_CMP_OMAP), key, key_len, val, val_len);
}

void
rados_write_op_omap_cmp(rados_write_op_t write_op, const char *key, uint8_t comparison_operator,
			const char *val, size_t val_len, int *prval)
{
	rados_write_op_omap_cmp2(write_op, key, comparison_operator, val, strlen(key), val_len, prval);
}

void
rados_write_op_setxattr(rados_write_op_t write_op, const char *name, const char *value, size_t value_len)
{
	fake_step_pair(fake_step(write_op, STEP_SET_XATTR), name, strlen(name), value, value_len);
}

void
rados_write_op_omap_set2(rados_write_op_t write_op, char const *const *keys, char const *const *vals,
			 const size_t *key_lens, const size_t *val_lens, size_t num)
{
	struct step *s = fake_step(write_op, STEP_SET_OMAP);

	for (size_t i = 0; i < num; i++)
		fake_step_pair(s, keys[i], key_lens[i], vals[i], val_lens[i]);
}

void
rados_write_op_omap_set(rados_write_op_t write_op, char const *const *keys, char const *const *vals,
			const size_t *lens, size_t num)
{
	struct step *s = fake_step(write_op, STEP_SET_OMAP);

	for (size_t i = 0; i < num; i++)
		fake_step_pair(s, keys[i], strlen(keys[i]), vals[i], lens[i]);
}

void
rados_write_op_omap_rm_keys2(rados_write_op_t write_op, char const *const *keys, const size_t *key_lens,
			     size_t keys_len)
{
	struct step *s = fake_step(write_op, STEP_RM_OMAP);

	for (size_t i = 0; i < keys_len; i++)
		fake_step_pair(s, keys[i], key_lens[i], "", 0);
}

void
rados_write_op_omap_rm_keys(rados_write_op_t write_op, char const *const *keys, size_t keys_len)
{
	struct step *s = fake_step(write_op, STEP_RM_OMAP);

	for (size_t i = 0; i < keys_len; i++)
		fake_step_pair(s, keys[i], strlen(keys[i]), "", 0);
}

void
rados_write_op_write(rados_write_op_t write_op, const char *buffer, size_t len, uint64_t offset)
{
	struct step *s = fake_step(write_op, STEP_WRITE);

	fake_step_pair(s, "", 0, buffer, len);
	s->off = offset;
}

void
rados_write_op_write_full(rados_write_op_t write_op, const char *buffer, size_t len)
{
	fake_step_pair(fake_step(write_op, STEP_WRITE_FULL), "", 0, buffer, len);
}

void
rados_write_op_remove(rados_write_op_t write_op)
{
	fake_step(write_op, STEP_REMOVE);
}

/* ---- read operations ---- */

rados_read_op_t
rados_create_read_op(void)
{
	return rados_create_write_op();
}

void
rados_release_read_op(rados_read_op_t read_op)
{
	rados_release_write_op(read_op);
}

static struct iter *
iter_new(void)
{
	struct iter *it = calloc(1, sizeof *it);

	check(it);
	return it;
}

void
rados_read_op_read(rados_read_op_t read_op, uint64_t offset, size_t len, char *buffer, size_t *bytes_read,
		   int *prval)
{
	struct step *s = fake_step(read_op, STEP_READ);

	s->off = offset;
	s->cap = len;
	s->buf = buffer;
	s->ret_len = bytes_read;
	s->ret_error = prval;
}

void
rados_read_op_getxattrs(rados_read_op_t read_op, rados_xattrs_iter_t *iter, int *prval)
{
	struct step *s = fake_step(read_op, STEP_GET_XATTRS);

	*iter = s->iter = iter_new();
	s->ret_error = prval;
}

void
rados_read_op_omap_get_vals2(rados_read_op_t read_op, const char *start_after, const char *filter_prefix,
			     uint64_t max_return, rados_omap_iter_t *iter, unsigned char *pmore, int *prval)
{
	struct step *s = fake_step(read_op, STEP_GET_OMAP);
	const char *prefix = filter_prefix ? filter_prefix : "";

	fake_step_pair(s, start_after, strlen(start_after), "", 0);
	fake_step_pair(s, prefix, strlen(prefix), "", 0);
	s->max = max_return < PAGE_MAX ? max_return : PAGE_MAX;
	*iter = s->iter = iter_new();
	s->ret_more = pmore;
	s->ret_error = prval;
}

void
rados_read_op_omap_get_vals_by_keys2(rados_read_op_t read_op, char const *const *keys, size_t num_keys,
				     const size_t *key_lens, rados_omap_iter_t *iter, int *prval)
{
	struct step *s = fake_step(read_op, STEP_GET_OMAP_KEYS);

	for (size_t i = 0; i < num_keys; i++)
		fake_step_pair(s, keys[i], key_lens ? key_lens[i] : strlen(keys[i]), "", 0);
	*iter = s->iter = iter_new();
	s->ret_error = prval;
}

void
rados_read_op_omap_get_vals_by_keys(rados_read_op_t read_op, char const *const *keys, size_t keys_len,
				    rados_omap_iter_t *iter, int *prval)
{
	rados_read_op_omap_get_vals_by_keys2(read_op, keys, keys_len, NULL, iter, prval);
}

static bool
iter_next(struct iter *it, char **ret_key, char **ret_val, size_t *ret_key_len, size_t *ret_val_len)
{
	const struct pair *p = it->at < it->pairs.nr ? &it->pairs.pair[it->at++] : NULL;

	*ret_key = p ? p->key : NULL;
	*ret_val = p ? p->val : NULL;
	*ret_val_len = p ? p->val_len : 0;
	if (ret_key_len)
		*ret_key_len = p ? p->key_len : 0;
	return p != NULL;
}

static void
iter_end(struct iter *it)
{
	fake_pairs_free(&it->pairs);
	free(it);
}

int
rados_omap_get_next2(rados_omap_iter_t iter, char **key, char **val, size_t *key_len, size_t *val_len)
{
	iter_next(iter, key, val, key_len, val_len);
	return 0;
}

unsigned int
rados_omap_iter_size(rados_omap_iter_t iter)
{
	return ((struct iter *)iter)->pairs.nr;
}

void
rados_omap_get_end(rados_omap_iter_t iter)
{
	iter_end(iter);
}

int
rados_getxattrs_next(rados_xattrs_iter_t iter, const char **name, const char **val, size_t *len)
{
	char *key, *value;

	iter_next(iter, &key, &value, NULL, len);
	*name = key;
	*val = value;
	return 0;
}

void
rados_getxattrs_end(rados_xattrs_iter_t iter)
{
	iter_end(iter);
}

/* ---- synchronous operations ---- */

int
rados_write_op_operate(rados_write_op_t write_op, rados_ioctx_t io, const char *oid, time_t *mtime, int flags)
{
	return carry_out(io, oid, write_op, 0);
}

int
rados_read_op_operate(rados_read_op_t read_op, rados_ioctx_t io, const char *oid, int flags)
{
	return carry_out(io, oid, read_op, 0);
}

static int
do_one(rados_ioctx_t io, const char *oid, struct operation *op)
{
	int r = carry_out(io, oid, op, 0);

	fake_operation_free(op);
	return r;
}

int
rados_remove(rados_ioctx_t io, const char *oid)
{
	struct operation op = { 0 };

	fake_step(&op, STEP_REMOVE);
	return do_one(io, oid, &op);
}

int
rados_getxattr(rados_ioctx_t io, const char *o, const char *name, char *buf, size_t len)
{
	struct operation op = { 0 };
	struct step *s = fake_step(&op, STEP_GET_XATTR);

	fake_step_pair(s, name, strlen(name), "", 0);
	s->buf = buf;
	s->cap = len;
	return do_one(io, o, &op);
}

int
rados_read(rados_ioctx_t io, const char *oid, char *buf, size_t len, uint64_t off)
{
	struct operation op = { 0 };

	rados_read_op_read(&op, off, len, buf, NULL, NULL);
	return do_one(io, oid, &op);
}

int
rados_stat(rados_ioctx_t io, const char *o, uint64_t *psize, time_t *pmtime)
{
	struct operation op = { 0 };
	size_t len = 0;
	int r;

	fake_step(&op, STEP_STAT)->ret_len = &len;
	r = do_one(io, o, &op);
	*psize = len;
	*pmtime = 0;
	return r;
}

/* ---- completions ---- */

int
rados_aio_create_completion2(void *cb_arg, rados_callback_t cb_complete, rados_completion_t *pc)
{
	struct completion *c = calloc(1, sizeof *c);

	check(c);
	c->back = cb_complete;
	c->cookie = cb_arg;
	completions++;
	*pc = c;
	return 0;
}

void
rados_aio_release(rados_completion_t comp)
{
	struct completion *c = comp;

	check(!c->is_released);
	c->is_released = true;
	for (const struct waiting *w = queue; w; w = w->next) {
		if (w->comp == c)
			return;
	}
	completion_free(c);
}

int
rados_aio_is_complete(rados_completion_t c)
{
	return ((struct completion *)c)->is_over;
}

int
rados_aio_wait_for_complete(rados_completion_t c)
{
	check(((struct completion *)c)->is_over);
	return 0;
}

int
rados_aio_get_return_value(rados_completion_t c)
{
	check(((struct completion *)c)->is_over);
	return ((struct completion *)c)->result;
}

/* Starts an asynchronous operation, or carries it out if it has no callback. Takes over the steps of op. */
static void
begin(struct ioctx *io, struct completion *c, const char *name, struct operation *op)
{
	struct waiting *w, **link = &queue;

	if (!c->back) {
		c->result = carry_out(io, name, op, 0);
		fake_operation_free(op);
		c->is_over = true;
		return;
	}
	w = calloc(1, sizeof *w);
	check(w && strlen(name) < sizeof w->name);
	*w = (struct waiting){ .io = io, .op = *op, .comp = c };
	*op = (struct operation){ 0 };
	memcpy(w->name, name, strlen(name));
	while (*link)
		link = &(*link)->next;
	*link = w;
	queue_nr++;
	io->waiting++;
}

int
rados_aio_read_op_operate(rados_read_op_t read_op, rados_ioctx_t io, rados_completion_t completion,
			  const char *oid, int flags)
{
	begin(io, completion, oid, read_op);
	return 0;
}

int
rados_aio_write_op_operate(rados_write_op_t write_op, rados_ioctx_t io, rados_completion_t completion,
			   const char *oid, time_t *mtime, int flags)
{
	begin(io, completion, oid, write_op);
	return 0;
}

int
rados_aio_remove(rados_ioctx_t io, const char *oid, rados_completion_t completion)
{
	struct operation op = { 0 };

	fake_step(&op, STEP_REMOVE);
	begin(io, completion, oid, &op);
	return 0;
}

int
rados_aio_getxattr(rados_ioctx_t io, const char *o, rados_completion_t completion, const char *name,
		   char *buf, size_t len)
{
	struct operation op = { 0 };
	struct step *s = fake_step(&op, STEP_GET_XATTR);

	fake_step_pair(s, name, strlen(name), "", 0);
	s->buf = buf;
	s->cap = len;
	begin(io, completion, o, &op);
	return 0;
}

int
rados_aio_cancel(rados_ioctx_t io, rados_completion_t completion)
{
	for (struct waiting *w = queue; w; w = w->next) {
		if (w->comp != completion)
			continue;
		if (w->is_done)
			return -ENOENT;
		w->is_done = true;
		w->result = -ECANCELED;
		return 0;
	}
	return -ENOENT;
}

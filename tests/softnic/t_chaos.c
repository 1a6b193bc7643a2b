/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at once in one process: three threads post batches of good and bad work on queue pairs of one
 * context, and poll them, break them (ERR), reset or destroy them at any moment; a fourth deregisters and
 * registers the target memory; a fifth breaks queue pairs from outside the thread that owns them.  Every
 * posted work request must give exactly one completion, in order, unless it was reset; nothing may land after
 * dereg_mr.  Meant for the sanitizers.
 *
 *     t_chaos SECONDS     SEED= replays
 */
#include "sn_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { LEN = 4 << 20, THREADS = 3, DEPTH = 16 };

static struct hw_port dev;
static struct hw_target target;
static pthread_rwlock_t token_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct hw_token token;
static _Atomic bool stop;
static _Atomic long posted, completed, dropped, bad, statuses[32];

/* The queue pair of each thread, for the one that breaks them. */
static struct {
	pthread_mutex_t lock;
	struct ibv_qp *qp;
} shared[THREADS];

static struct hw_token
get_token(void)
{
	struct hw_token t;

	pthread_rwlock_rdlock(&token_lock);
	t = token;
	pthread_rwlock_unlock(&token_lock);

	return t;
}

/* One batch; returns how many were taken. */
static unsigned
post_batch(struct hw_dci *i, struct ibv_mr *mr, uint8_t *buf, unsigned *seed, uint64_t first)
{
	static const uint32_t sizes[] = { 0, 64, 4096, 65536, 1 << 20, 3 << 20 };
	unsigned n = 1 + rand_r(seed) % DEPTH;

	for (unsigned k = 0; k < n; k++) {
		struct hw_token t = get_token();

		if (rand_r(seed) % 16 == 0)
			t.dctn ^= 1;
		if (rand_r(seed) % 16 == 0)
			t.rkey ^= 0x100;
		if (sn_post(i, rand_r(seed) % 4 == 0, &t, t.addr, mr, buf, sizes[rand_r(seed) % 6],
			    first + k))
			return k;
	}

	return n;
}

static void
collect(struct hw_dci *i, uint64_t first, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		uint64_t id = 0;
		int st = sn_wait(i, &id);

		if (st < 0 || id != first + k)
			atomic_fetch_add(&bad, 1);
		if (st < 0)
			return;
		atomic_fetch_add(&completed, 1);
		atomic_fetch_add(&statuses[st & 31], 1);
	}
}

static void
recover(struct hw_dci *i, bool must_be_empty)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;

	/* The breaker may be at it between our RESET and RTS; then again. */
	do {
		a.qp_state = IBV_QPS_RESET;
		must(ibv_modify_qp(i->qp, &a, IBV_QP_STATE) == 0);
		if (must_be_empty && ibv_poll_cq(ibv_cq_ex_to_cq(i->cq), 1, &wc) != 0)
			atomic_fetch_add(&bad, 1);
	} while (sn_dci_rts(i, 1 + (unsigned)sn_now_ms() % 8, 2) != 0);
}

static void
open_dci(struct hw_dci *i, int self)
{
	const struct hw_dci_opt opt = {
		.depth = DEPTH, .sge = 1, .cqe = 2 * DEPTH, .timeout = 8, .retry = 2, .send_ops = 0x15
	};
	struct hw_token t = get_token();

	sn_dci_init(i, &dev, &opt);
	sn_dci_to(i, &t);
	pthread_mutex_lock(&shared[self].lock);
	shared[self].qp = i->qp;
	pthread_mutex_unlock(&shared[self].lock);
}

static void
close_dci(struct hw_dci *i, int self)
{
	pthread_mutex_lock(&shared[self].lock);
	shared[self].qp = NULL;
	pthread_mutex_unlock(&shared[self].lock);
	sn_dci_fini(i);
}

struct job {
	int self;
	unsigned seed;
};

static void *
initiator(void *arg)
{
	struct job *job = arg;
	struct ibv_mr *mr = sn_mem_new(&dev, LEN);
	uint8_t *buf = mr->addr;
	struct hw_dci i;
	uint64_t id = 0;

	memset(buf, 0xff, LEN);
	open_dci(&i, job->self);
	while (!atomic_load(&stop)) {
		unsigned n = post_batch(&i, mr, buf, &job->seed, id), what = rand_r(&job->seed) % 8;

		atomic_fetch_add(&posted, n);
		if (what >= 6)
			usleep(rand_r(&job->seed) % 1000);
		if (what == 7) {
			atomic_fetch_add(&dropped, n);
			close_dci(&i, job->self);
			open_dci(&i, job->self);
		} else if (what == 6) {
			atomic_fetch_add(&dropped, n);
			recover(&i, true);
		} else {
			if (what == 5) {
				struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

				ibv_modify_qp(i.qp, &a, IBV_QP_STATE);
			}
			collect(&i, id, n);
			memset(buf, 0xff, LEN); /* ours again */
			recover(&i, true);
		}
		id += n;
	}
	close_dci(&i, job->self);
	sn_mem_free(mr);

	return NULL;
}

static void *
breaker(void *arg)
{
	struct job *job = arg;

	while (!atomic_load(&stop)) {
		int k = (int)(rand_r(&job->seed) % THREADS);
		struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

		pthread_mutex_lock(&shared[k].lock);
		if (shared[k].qp)
			ibv_modify_qp(shared[k].qp, &a, IBV_QP_STATE); /* may be refused: RESET */
		pthread_mutex_unlock(&shared[k].lock);
		usleep(2000 + rand_r(&job->seed) % 5000);
	}

	return NULL;
}

/* The target's side, in the main thread. */
static unsigned
reregister(unsigned *seed, uint64_t end)
{
	const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	unsigned late = 0;

	while (sn_now_ms() < end) {
		usleep(500 + rand_r(seed) % 3000);
		must(ibv_dereg_mr(target.mr) == 0);
		memset(target.buf, 0, LEN);
		usleep(rand_r(seed) % 300);
		late += target.buf[0] || memcmp(target.buf, target.buf + 1, LEN - 1);
		target.mr = ibv_reg_mr(dev.pd, target.buf, LEN, all);
		must(target.mr);
		pthread_rwlock_wrlock(&token_lock);
		sn_target_token(&target, &token);
		pthread_rwlock_unlock(&token_lock);
	}

	return late;
}

static bool
all_kinds_seen(void)
{
	return statuses[0] && statuses[IBV_WC_WR_FLUSH_ERR] && statuses[IBV_WC_RETRY_EXC_ERR];
}

int
main(int argc, char **argv)
{
	const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	const char *env = getenv("SEED");
	unsigned seed = env ? (unsigned)atol(env) : (unsigned)sn_now_ms(), late;
	struct job jobs[THREADS + 1];
	pthread_t t[THREADS + 1];

	printf("SEED=%u\n", seed);
	sn_open(&dev, "mlx5_0");
	sn_target_init(&target, &dev, LEN, all, all);
	sn_target_token(&target, &token);
	for (int k = 0; k < THREADS; k++)
		pthread_mutex_init(&shared[k].lock, NULL);
	for (int k = 0; k <= THREADS; k++) {
		jobs[k] = (struct job){ k, seed + 1 + (unsigned)k };
		must(pthread_create(&t[k], NULL, k < THREADS ? initiator : breaker, &jobs[k]) == 0);
	}
	late = reregister(&seed, sn_now_ms() + (uint64_t)(argc > 1 ? atof(argv[1]) * 1000 : 2000));
	/* Longer where the machine has other work, until there was something of each to see. */
	for (uint64_t end = sn_now_ms() + SN_PATIENCE_MS; !all_kinds_seen() && sn_now_ms() < end;)
		late += reregister(&seed, sn_now_ms() + 100);
	atomic_store(&stop, true);
	for (int k = 0; k <= THREADS; k++)
		pthread_join(t[k], NULL);
	sn_target_fini(&target);
	sn_close(&dev);
	printf("%ld posted, %ld completed, %ld reset or destroyed; by status:", posted, completed, dropped);
	for (int s = 0; s < 32; s++) {
		if (statuses[s])
			printf(" %d:%ld", s, statuses[s]);
	}
	puts("");
	ok(late == 0, "%u late writes", late);
	ok(bad == 0, "%ld completions missing, out of order or too many", bad);
	ok(posted == completed + dropped, "each has its completion");
	ok(all_kinds_seen(), "all kinds were seen");

	return sn_summary("chaos");
}

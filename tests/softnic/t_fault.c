/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault rules of the software NIC: each action on a target of our own process, whose memory we can look at
 * while it happens, and the killing ones on processes made for it.  softnicctl sets the rules while the queue
 * pairs run.  Run in both modes.
 */
#include "pair.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 256 << 10 };

static struct sn_turns turns;

/* From empty to a bytes of v, then zeros. */
static bool
prefix(const uint8_t *p, size_t a, uint8_t v, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] != (i < a ? v : 0))
			return false;
	}

	return true;
}

static void
blank(uint8_t v)
{
	memset(target.buf, 0, LEN);
	memset(buf, v, LEN);
}

/* ---- which operations a rule hits ---- */

static void
test_match(void)
{
	static const char *const others[] = { "dev=mlx5_5", "op=read",     "qpn=1",
					      "dctn=1",     "minlen=4097", "pid=1",
					      "skip=1",     "every=2",     "op=reg_mr skip=9" };
	struct hw_dci i;
	char words[200];

	for (size_t n = 0; n < sizeof(others) / sizeof(others[0]); n++) {
		snprintf(words, sizeof(words), "%s%s", others[n],
			 strstr(others[n], "reg_mr") ? "" : " status=10");
		rule(words);
		ok(go(false, 4096) == IBV_WC_SUCCESS, "%s does not hit", others[n]);
		clear();
	}
	snprintf(words, sizeof(words),
		 "dev=0 op=write qpn=%#x dctn=%#x minlen=4096 pid=%d status=IBV_WC_REM_OP_ERR",
		 dci.qp->qp_num, tok.dctn, (int)getpid());
	rule(words);
	ok(go(false, 4095) == IBV_WC_SUCCESS, "too short");
	ok(go(true, 4096) == IBV_WC_SUCCESS, "a READ");
	ok(go(false, 4096) == IBV_WC_REM_OP_ERR, "everything fits");
	sn_dci_init(&i, &dev, NULL);
	sn_dci_to(&i, &tok);
	ok(sn_xfer(&i, false, &tok, mr, buf, 4096) == IBV_WC_SUCCESS, "another queue pair");
	sn_dci_fini(&i);
	clear();
	rule("op=any skip=2 every=3 limit=2 status=FATAL_ERR");
	for (int n = 1; n <= 14; n++)
		ok(go(n % 2, 64) == (n == 5 || n == 8 ? IBV_WC_FATAL_ERR : IBV_WC_SUCCESS), "operation %d",
		   n);
	char line[512];

	ok(ctl(line, "rule list") == 0 && strstr(line, "seen=14 hits=2"), "counts: %s", line);
	clear();
	/* The first in the table decides; sixteen fit. */
	rule("status=RETRY_EXC");
	for (int n = 1; n < 16; n++)
		rule("status=GENERAL_ERR");
	ok(ctl(line, "rule add drop") < 0, "no seventeenth");
	ok(go(false, 8) == IBV_WC_RETRY_EXC_ERR, "the first");
	clear();
	ok(ctl(line, "rule list") == 0 && line[0] == 0, "cleared");
	static const char *const wrong[] = {
		"op=write",       "status=0",       "status=NONE",         "drop dup",
		"torn=101",       "delay=5",        "prob=2 drop",         "error=ENOMEM",
		"pause=1ms drop", "op=reg_mr drop", "status=10 corrupt=1", "what=1"
	};

	for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++)
		ok(ctl(line, "rule add %s", wrong[n]) < 0, "refused: %s", wrong[n]);
	ok(ctl(line, "rule del 12345") < 0, "no such rule");
}

/* 64 operations of a fresh queue pair: which were hit? */
static uint64_t
sample(const char *words)
{
	uint64_t bits = 0;
	struct hw_dci i;

	rule(words);
	sn_dci_init(&i, &dev, NULL);
	sn_dci_to(&i, &tok);
	for (int n = 0; n < 64; n++) {
		buf[0] = (uint8_t)n;
		must(sn_xfer(&i, false, &tok, mr, buf, 1) == IBV_WC_SUCCESS);
		bits |= (uint64_t)(target.buf[0] != (uint8_t)n) << n;
	}
	sn_dci_fini(&i);
	clear();

	return bits;
}

static void
test_seed(void)
{
	uint64_t a = sample("corrupt=0 prob=0.3 seed=7"), b = sample("corrupt=0 prob=30% seed=7");
	uint64_t c = sample("corrupt=0 prob=0.3 seed=8");
	int n = __builtin_popcountll(a);
	char line[512], words[64];
	char *seed;

	ok(a == b, "the same seed hits the same operations: %#llx %#llx", (unsigned long long)a,
	   (unsigned long long)b);
	ok(a != c, "another seed others");
	ok(n > 6 && n < 36, "about a third of 64: %d", n);
	must(ctl(line, "rule add corrupt=0 prob=0.5") == 0);
	seed = strstr(line, "seed=");
	ok(seed != NULL, "a seed is made up and printed: %s", line);
	clear();
	if (seed) {
		snprintf(words, sizeof(words), "corrupt=0 prob=0.5 %.*s", (int)strcspn(seed, " "), seed);
		ok(sample(words) == sample(words), "and replays");
	}
}

/* ---- what it does to them ---- */

static void
test_status(void)
{
	blank(0x11);
	rule("status=REM_ACCESS_ERR vendor=0x77 limit=1");
	post(false, LEN, 1);
	post(false, LEN, 2);
	struct ibv_wc wc = { 0 };
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;

	while (ibv_poll_cq(ibv_cq_ex_to_cq(dci.cq), 1, &wc) == 0 && sn_now_ms() < end)
		;
	ok(wc.status == IBV_WC_REM_ACCESS_ERR && wc.vendor_err == 0x77 && wc.wr_id == 1,
	   "status and vendor_err");
	ok(sn_wait(&dci, NULL) == IBV_WC_WR_FLUSH_ERR, "what is behind it is flushed");
	ok(prefix(target.buf, 0, 0, LEN), "no byte landed");
	ok(sn_state(dci.qp) == IBV_QPS_ERR, "in ERR");
	ready();
	ok(go(false, LEN) == IBV_WC_SUCCESS && prefix(target.buf, LEN, 0x11, LEN), "the limit is used up");
	clear();
}

static void
test_torn(void)
{
	blank(0x22);
	int id = rule("torn=25");

	ok(go(false, LEN) == IBV_WC_SUCCESS, "torn, and success");
	ok(prefix(target.buf, LEN / 4, 0x22, LEN), "a quarter landed");
	memset(target.buf, 0x23, LEN);
	memset(buf, 0, LEN);
	ok(go(true, LEN) == IBV_WC_SUCCESS && prefix(buf, LEN / 4, 0x23, LEN), "a torn READ");
	char line[512];

	ok(ctl(line, "rule del %d", id) == 0, "del");
	blank(0x24);
	rule("torn=50 status=RETRY_EXC_ERR");
	ok(go(false, LEN) == IBV_WC_RETRY_EXC_ERR && prefix(target.buf, LEN / 2, 0x24, LEN),
	   "torn with an error");
	clear();
	blank(0x25);
	rule("torn=100 status=REM_OP_ERR");
	ok(go(false, LEN) == IBV_WC_REM_OP_ERR && prefix(target.buf, LEN, 0x25, LEN),
	   "all of it, and an error");
	clear();
	blank(0x26);
	rule("torn=0");
	ok(go(false, LEN) == IBV_WC_SUCCESS && prefix(target.buf, 0, 0, LEN), "nothing of it, and success");
	clear();
}

static void
test_corrupt(void)
{
	for (int read = 0; read < 2; read++) {
		uint8_t *to = read ? buf : target.buf, *from = read ? target.buf : buf;

		memset(to, 0, LEN);
		memset(from, 0x5a, LEN);
		rule("corrupt=100000");
		ok(go(read, LEN) == IBV_WC_SUCCESS, "corrupt");
		ok(to[100000] == 0xa5, "the byte is inverted");
		to[100000] = 0x5a;
		ok(prefix(to, LEN, 0x5a, LEN), "and no other");
		ok(prefix(from, LEN, 0x5a, LEN), "the source is as it was");
		ok(go(read, 10) == IBV_WC_SUCCESS && to[9] == 0xa5 && to[8] == 0x5a,
		   "a short one: its last byte");
		clear();
	}
}

static void
test_delay(void)
{
	struct hw_dci i;
	uint64_t start, id = 0;

	sn_dci_init(&i, &dev, NULL);
	sn_dci_to(&i, &tok);
	/* A delay that ends when we say so; an hour is not waited for by anybody. */
	blank(0x31);
	rule("minlen=1000 delay=3600s limit=1");
	post(false, LEN, 1);
	post(false, 8, 2);
	ok(sn_xfer(&i, false, &tok, mr, buf, 16) == IBV_WC_SUCCESS, "another queue pair goes on");
	ok(prefix(target.buf, 16, 0x31, LEN), "no byte of the delayed one");
	ok(polled() == 0, "nor its completion");
	clear();
	ok(sn_wait(&dci, &id) == IBV_WC_SUCCESS && id == 1, "it comes");
	ok(sn_wait(&dci, &id) == IBV_WC_SUCCESS && id == 2, "and the next behind it");
	ok(prefix(target.buf, LEN, 0x31, LEN), "with every byte");
	rule("delay=150ms limit=1");
	start = sn_now_ms();
	ok(go(false, LEN) == IBV_WC_SUCCESS && sn_now_ms() - start >= 150, "by itself when the time is over");
	clear();

	blank(0x32);
	rule("hold=3600s limit=1");
	start = sn_now_ms();
	post(false, LEN, 3);
	while (!prefix(target.buf, LEN, 0x32, LEN) && sn_now_ms() - start < SN_PATIENCE_MS)
		ok(polled() == 0, "no completion yet");
	ok(prefix(target.buf, LEN, 0x32, LEN), "the bytes are there before");
	sn_turns(&turns, 8);
	ok(polled() == 0, "the completion is not");
	clear();
	ok(sn_wait(&dci, NULL) == IBV_WC_SUCCESS, "it comes when the rule goes");
	rule("hold=100ms");
	start = sn_now_ms();
	ok(go(false, LEN) == IBV_WC_SUCCESS && sn_now_ms() - start >= 100, "or late");
	clear();
	sn_dci_fini(&i);
}

/* Work that waits for hours: released when its rule goes, flushed by ERR, forgotten by RESET and destroy. */
static void
test_gate(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct hw_dci i;
	char line[512];

	blank(0x41);
	int id = rule("delay=3600s limit=1");

	post(false, LEN, 1);
	under_way(1);
	sn_turns(&turns, 8);
	ok(polled() == 0 && prefix(target.buf, 0, 0, LEN), "it waits");
	ok(ctl(line, "rule del %d", id) == 0, "the rule goes");
	ok(sn_wait(&dci, NULL) == IBV_WC_SUCCESS && prefix(target.buf, LEN, 0x41, LEN), "and it goes on");

	blank(0x42);
	rule("delay=3600s");
	post(false, LEN, 2);
	under_way(1);
	must(ibv_modify_qp(dci.qp, &a, IBV_QP_STATE) == 0);
	ok(sn_wait(&dci, NULL) == IBV_WC_WR_FLUSH_ERR, "ERR flushes it");
	ready();
	post(false, LEN, 3);
	under_way(2);
	ready();
	ok(polled() == 0, "RESET drops it");
	sn_dci_init(&i, &dev, NULL);
	sn_dci_to(&i, &tok);
	must(sn_post(&i, false, &tok, tok.addr, mr, buf, LEN, 1) == 0);
	under_way(3);
	sn_dci_fini(&i);
	clear();
	/* After a look of the watcher the engine would have what the rule has released. */
	ok(sn_quiet(dev.ctx), "no event");
	sn_turns(&turns, 8);
	ok(polled() == 0 && prefix(target.buf, 0, 0, LEN), "no byte of the three landed");
	ok(go(false, 8) == IBV_WC_SUCCESS, "usable");
}

static void
test_completions(void)
{
	uint64_t id = 0;

	blank(0x51);
	rule("drop limit=1");
	post(false, LEN, 1);
	post(false, 8, 2);
	ok(sn_wait(&dci, &id) == IBV_WC_SUCCESS && id == 2, "drop: only the next completes");
	ok(prefix(target.buf, LEN, 0x51, LEN), "but the bytes landed");
	for (uint64_t n = 0; n < 4; n++) {
		post(false, 8, 10 + n);
		ok(sn_wait(&dci, &id) == IBV_WC_SUCCESS && id == 10 + n && polled() == 0, "nor later");
	}
	clear();
	rule("dup limit=1");
	post(false, 8, 3);
	post(false, 8, 4);
	ok(sn_wait(&dci, &id) == 0 && id == 3 && sn_wait(&dci, &id) == 0 && id == 3, "dup: twice");
	ok(sn_wait(&dci, &id) == 0 && id == 4 && polled() == 0, "the next once");
	clear();
	for (int n = 0; n < 40; n++)
		ok(go(false, 8) == IBV_WC_SUCCESS, "the slots came back");
}

/* A WRITE in chunks, while we look at the target: was a chunk there before one that lies in front of it? */
static bool
seen_out_of_order(void)
{
	enum { CHUNKS = LEN / 4096 };
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;
	struct ibv_wc wc = { 0 };
	bool seen = false;

	blank(0x61);
	for (size_t i = 0; i < LEN; i++)
		buf[i] = (uint8_t)(i / 4096 + 1);
	post(false, LEN, 1);
	while (ibv_poll_cq(ibv_cq_ex_to_cq(dci.cq), 1, &wc) == 0 && sn_now_ms() < end) {
		bool gap = false;

		for (size_t i = 0; i < CHUNKS; i++) {
			bool there = *(volatile uint8_t *)&target.buf[i * 4096 + 4095] != 0;

			seen |= there && gap;
			gap |= !there;
		}
	}
	ok(wc.status == IBV_WC_SUCCESS && memcmp(buf, target.buf, LEN) == 0, "all chunks arrive");

	return seen;
}

static void
test_scramble(void)
{
	bool seen = false;

	rule("scramble=4096 pause=200us seed=3");
	/* It takes 13 ms, in which we do not get to look if the machine has other work; then again. */
	for (int n = 0; n < 200 && !seen; n++)
		seen = seen_out_of_order();
	ok(seen, "in another order");
	clear();
	for (uint32_t len = 4090; len < 4102; len++) { /* odd ends, short ones, a byte inverted, torn */
		blank(0x62);
		rule("scramble=512 corrupt=4000 torn=100");
		ok(go(false, len) == IBV_WC_SUCCESS, "%u bytes", len);
		ok(target.buf[4000] == (uint8_t)~0x62, "with a wrong one");
		target.buf[4000] = 0x62;
		ok(prefix(target.buf, len, 0x62, LEN), "%u bytes are there", len);
		clear();
	}
	rule("scramble=16");
	ok(go(true, 5) == IBV_WC_SUCCESS && go(false, 0) == IBV_WC_SUCCESS, "short and empty");
	clear();
}

/* ---- killing ---- */

static void
test_kill_target(void)
{
	struct sn_remote r;
	int status = 0;
	char words[100];
	/* The target's bytes are its own; a page shared with us would need another kind of target.  What
	 * landed is proven by the trace (trace.sh); here that it died, and that nobody else did. */
	sn_remote_start(&r, LEN);
	snprintf(words, sizeof(words), "kill=target at=70000 dctn=%#x", r.tok.dctn);
	rule(words);
	ok(go(false, LEN) == IBV_WC_SUCCESS, "another target is none of its business");
	sn_dci_to(&dci, &r.tok);
	ok(sn_xfer(&dci, false, &r.tok, mr, buf, LEN) == IBV_WC_RETRY_EXC_ERR, "killed in the middle");
	must(waitpid(r.pid, &status, 0) == r.pid);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "SIGKILL: %#x", (unsigned)status);
	close(r.fd);
	clear();
	sn_remote_start(&r, LEN);
	rule("kill=target at=999999999");
	sn_dci_to(&dci, &r.tok);
	ok(sn_xfer(&dci, false, &r.tok, mr, buf, LEN) == IBV_WC_SUCCESS, "killed after the last byte");
	must(waitpid(r.pid, &status, 0) == r.pid);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "SIGKILL: %#x", (unsigned)status);
	close(r.fd);
	clear();
	sn_dci_to(&dci, &tok);
}

/* Another user's process is not killed, even by root, which may write to it. */
static void
test_kill_stranger(void)
{
	const char *dir = getenv("SOFTNIC_DIR");
	struct sn_remote r;
	char path[300];

	if (geteuid() != 0) {
		puts("not root: no process of another user to try");
		return;
	}
	must(dir);
	snprintf(path, sizeof(path), "%s/fabric", dir);
	must(chmod(dir, 0777) == 0 && chmod(path, 0666) == 0);
	setenv("SN_TARGET_UID", "65534", 1);
	sn_remote_start(&r, LEN);
	unsetenv("SN_TARGET_UID");
	rule("kill=target at=100");
	sn_dci_to(&dci, &r.tok);
	memset(buf, 0x77, LEN);
	ok(sn_xfer(&dci, false, &r.tok, mr, buf, LEN) == IBV_WC_SUCCESS, "the transfer goes on");
	ok(sn_remote_ask(&r, SN_SAME, 0x77) == 1, "the stranger lives");
	sn_remote_stop(&r);
	clear();
	sn_dci_to(&dci, &tok);
	must(chmod(dir, 0700) == 0 && chmod(path, 0600) == 0);
}

static void
test_kill_initiator(void)
{
	char hex[2 * sizeof(tok) + 1];
	int status = 0;

	blank(0);
	rule("kill=initiator at=65536 op=write");
	for (size_t i = 0; i < sizeof(tok); i++)
		sprintf(hex + 2 * i, "%02x", ((uint8_t *)&tok)[i]);
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", "writer", "--writer", hex, (char *)NULL);
		_exit(127);
	}
	must(waitpid(pid, &status, 0) == pid);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "SIGKILL: %#x", (unsigned)status);
	ok(prefix(target.buf, 65536, 0x71, LEN), "65536 bytes landed, and no more");
	clear();
}

int
main(int argc, char **argv)
{
	pair_open(argc, argv, LEN);
	sn_turns_init(&turns, &dev);
	test_match();
	test_seed();
	test_status();
	test_torn();
	test_corrupt();
	test_delay();
	test_gate();
	test_completions();
	test_scramble();
	test_kill_target();
	test_kill_stranger();
	test_kill_initiator();
	sn_turns_fini(&turns);
	pair_close();

	return sn_summary("faults");
}

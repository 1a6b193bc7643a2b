/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace of the software NIC: every work request is in it once, with its times around the copy and the
 * bytes that landed, also when it fails, is flushed or reset, or when either side is killed in the middle;
 * and what does not fit or cannot be written is counted.  Run in both modes; SOFTNIC_DIR gets the files.
 */
#include "pair.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LEN = 4 << 20, RECS = 4096 };

/* One line of `softnicctl trace show`. */
struct rec {
	unsigned long long start, end, done, raddr, len, landed, wr_id;
	unsigned pid, qpn, dctn, rkey, vendor, rule;
	char op[8], status[32];
	unsigned class, level, flow, far_class, far_level;
	char sgid[64], far_sgid[64];
};
static struct rec recs[RECS];
static int recs_nr;

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Runs softnicctl on the file NAME of SOFTNIC_DIR; reads records from its output.  Its exit status is 0? */
static bool
trace(const char *cmd, const char *name, const char *more)
{
	const char *build = getenv("BUILD"), *dir = getenv("SOFTNIC_DIR");
	char line[512];
	FILE *p;

	must(dir);
	snprintf(line, sizeof(line), "%s/softnicctl trace %s %s%s%s %s 2>/dev/null",
		 build ? build : "build/release", cmd, name ? dir : "", name ? "/" : "", name ? name : "",
		 more);
	p = popen(line, "r");
	must(p);
	recs_nr = 0;
	while (fgets(line, sizeof(line), p)) {
		struct rec *r = &recs[recs_nr];

		if (line[0] == '#')
			continue;
		must(recs_nr < RECS - 1);
		must(sscanf(line,
			    "%llu %llu %llu %u %x %7s %x %llx %x %llu %llu %31s %x %u %llu %u %u %u %63s %u "
			    "%u %63s",
			    &r->start, &r->end, &r->done, &r->pid, &r->qpn, r->op, &r->dctn, &r->raddr,
			    &r->rkey, &r->len, &r->landed, r->status, &r->vendor, &r->rule, &r->wr_id,
			    &r->class, &r->level, &r->flow, r->sgid, &r->far_class, &r->far_level,
			    r->far_sgid) == 22);
		recs_nr++;
	}

	return pclose(p) == 0;
}

static bool
is(const struct rec *r, const char *op, const char *status, uint64_t len, uint64_t landed)
{
	bool good = strcmp(r->op, op) == 0 && strcmp(r->status, status) == 0 && r->len == len &&
		    r->landed == landed && r->start > 0 && r->start <= r->end;

	if (!good)
		fprintf(stderr, "record: %s %s length %llu landed %llu start %llu end %llu\n", r->op,
			r->status, r->len, r->landed, r->start, r->end);

	return good;
}

static void
test_good_ones(void)
{
	static const uint32_t sizes[] = { 8, 4096, 65536, LEN, 0, 1 };
	uint64_t before[6], after[6];

	ok(trace("on", "one", ""), "on");
	for (int n = 0; n < 6; n++) {
		before[n] = now_ns();
		must(sn_post(&dci, n == 2, &tok, tok.addr, mr, buf, sizes[n], 100 + (uint64_t)n) == 0);
		ok(sn_wait(&dci, NULL) == IBV_WC_SUCCESS, "transfer %d", n);
		after[n] = now_ns();
	}
	ok(trace("off", NULL, ""), "off");
	ok(sn_xfer(&dci, false, &tok, mr, buf, 8) == IBV_WC_SUCCESS, "this one is not in it");
	ok(trace("show", "one", "") && recs_nr == 6, "six records: %d", recs_nr);
	for (int n = 0; n < recs_nr && n < 6; n++) {
		const struct rec *r = &recs[n];

		ok(is(r, n == 2 ? "read" : "write", "SUCCESS", sizes[n], sizes[n]), "record %d", n);
		ok(r->pid == (unsigned)getpid() && r->qpn == dci.qp->qp_num && r->dctn == tok.dctn &&
			   r->raddr == tok.addr && r->rkey == tok.rkey && r->wr_id == 100 + (unsigned)n &&
			   r->rule == 0,
		   "its names");
		ok(before[n] <= r->start && r->end <= r->done && r->done <= after[n], "its times");
	}
}

/* How packets of both directions are marked. */
static void
test_marks(void)
{
	struct ibv_ah_attr av = { .is_global = 1, .port_num = 1, .sl = 3 };
	struct ibv_ah *usual = dci.ah;
	struct hw_target marked;
	struct hw_token t;

	dev.traffic_class = 104;
	sn_target_init(&marked, &dev, 64, all, all);
	dev.traffic_class = 0;
	sn_target_token(&marked, &t);
	av.grh.sgid_index = SN_GID_ROW;
	av.grh.traffic_class = 96;
	av.grh.flow_label = 0x12345;
	av.grh.dgid = t.gid;
	dci.ah = ibv_create_ah(dev.pd, &av);
	must(dci.ah);
	ok(trace("on", "marks", "64"), "on");
	ok(sn_xfer(&dci, false, &t, mr, buf, 64) == 0 && sn_xfer(&dci, true, &t, mr, buf, 64) == 0,
	   "both ways");
	t.dctn ^= 1;
	sn_xfer(&dci, false, &t, mr, buf, 64);
	ok(trace("off", NULL, "") && trace("show", "marks", "") && recs_nr == 3, "three records: %d",
	   recs_nr);
	for (int n = 0; n < 3 && n < recs_nr; n++) {
		ok(recs[n].class == 96 && recs[n].level == 3 && recs[n].flow == 0x12345 &&
			   strcmp(recs[n].sgid, "127.0.0.1") == 0,
		   "the initiator's: %u %u %#x %s", recs[n].class, recs[n].level, recs[n].flow, recs[n].sgid);
		ok(recs[n].far_class == (n == 2 ? 0 : 104) && recs[n].far_level == 0 &&
			   strcmp(recs[n].far_sgid, n == 2 ? "::" : "127.0.0.1") == 0,
		   "the target's: %u %u %s", recs[n].far_class, recs[n].far_level, recs[n].far_sgid);
	}
	ibv_destroy_ah(dci.ah);
	dci.ah = usual;
	sn_target_fini(&marked);
}

static void
test_bad_ones(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	struct hw_token bad = tok;

	bad.rkey ^= 0x100;
	ok(trace("on", "two", "64"), "on");
	must(sn_post(&dci, false, &bad, tok.addr, mr, buf, 64, 1) == 0);
	must(sn_post(&dci, false, &tok, tok.addr, mr, buf, 64, 2) == 0);
	ok(sn_wait(&dci, NULL) == IBV_WC_REM_ACCESS_ERR && sn_wait(&dci, NULL) == IBV_WC_WR_FLUSH_ERR,
	   "fail");
	must(ibv_modify_qp(dci.qp, &a, IBV_QP_STATE) == 0 && sn_dci_rts(&dci, 8, 3) == 0);
	sn_ctl("rule add delay=3600s limit=1 >/dev/null");
	must(sn_post(&dci, false, &tok, tok.addr, mr, buf, 64, 3) == 0);
	under_way(1);
	must(ibv_modify_qp(dci.qp, &a, IBV_QP_STATE) == 0 && sn_dci_rts(&dci, 8, 3) == 0);
	sn_ctl("rule clear");
	sn_ctl("rule add torn=50 status=REM_OP_ERR >/dev/null");
	ok(sn_xfer(&dci, false, &tok, mr, buf, LEN) == IBV_WC_REM_OP_ERR, "torn");
	sn_ctl("rule clear");
	sn_ctl("rule add hold=30ms >/dev/null");
	ok(sn_xfer(&dci, true, &tok, mr, buf, 64) == IBV_WC_SUCCESS, "held");
	sn_ctl("rule clear");
	ok(trace("off", NULL, ""), "off");
	ok(trace("show", "two", "") && recs_nr == 5, "five records: %d", recs_nr);
	ok(is(&recs[0], "write", "REM_ACCESS_ERR", 64, 0) && recs[0].vendor == 0x88, "the wrong key");
	ok(is(&recs[1], "write", "WR_FLUSH_ERR", 64, 0), "the flushed one");
	ok(is(&recs[2], "write", "RESET", 64, 0) && recs[2].rule > 0, "the reset one");
	ok(is(&recs[3], "write", "REM_OP_ERR", LEN, LEN / 2) && recs[3].rule > 0, "the torn one");
	ok(is(&recs[4], "read", "SUCCESS", 64, 64) && recs[4].done - recs[4].end >= 30000000, "the held one");
}

static void
test_kills(void)
{
	char hex[2 * sizeof(tok) + 1];
	struct sn_remote r;

	ok(trace("on", "three", ""), "on");
	sn_remote_start(&r, LEN);
	sn_ctl("rule add kill=target at=1500000 >/dev/null");
	sn_dci_to(&dci, &r.tok);
	ok(sn_xfer(&dci, false, &r.tok, mr, buf, LEN) == IBV_WC_RETRY_EXC_ERR, "its target is killed");
	must(waitpid(r.pid, NULL, 0) == r.pid);
	close(r.fd);
	sn_dci_to(&dci, &tok);
	sn_ctl("rule clear");
	sn_ctl("rule add kill=initiator at=2500000 >/dev/null");
	for (size_t i = 0; i < sizeof(tok); i++)
		sprintf(hex + 2 * i, "%02x", ((uint8_t *)&tok)[i]);
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", "writer", "--writer", hex, (char *)NULL);
		_exit(127);
	}
	must(waitpid(pid, NULL, 0) == pid);
	sn_ctl("rule clear");
	ok(trace("off", NULL, ""), "off");
	ok(trace("show", "three", "") && recs_nr == 2, "two records: %d", recs_nr);
	ok(is(&recs[0], "write", "RETRY_EXC_ERR", LEN, 1500000), "killed target");
	ok(is(&recs[1], "write", "UNFINISHED", LEN, 2500000) && recs[1].pid == (unsigned)pid,
	   "killed initiator");
}

/* Several threads: all of their work is in it. */
static void *
hammer(void *arg)
{
	struct hw_dci i;
	long bad = 0;

	sn_dci_init(&i, &dev, NULL);
	sn_dci_to(&i, &tok);
	for (int n = 0; n < 200; n++)
		bad += sn_xfer(&i, n % 2, &tok, mr, buf + 8192 * (uintptr_t)arg, 4096) != IBV_WC_SUCCESS;
	sn_dci_fini(&i);

	return (void *)bad;
}

static void
test_threads(void)
{
	pthread_t t[4];
	bool whole = true;

	ok(trace("on", "four", "800"), "on");
	for (uintptr_t n = 0; n < 4; n++)
		must(pthread_create(&t[n], NULL, hammer, (void *)n) == 0);
	for (int n = 0; n < 4; n++) {
		void *bad;

		pthread_join(t[n], &bad);
		ok(bad == NULL, "thread %d", n);
	}
	uint64_t end = now_ns();

	ok(trace("off", NULL, ""), "off");
	ok(trace("show", "four", "") && recs_nr == 800, "all of it: %d", recs_nr);
	for (int n = 0; n < recs_nr; n++)
		whole &= recs[n].landed == 4096 && recs[n].end && recs[n].end <= end;
	ok(whole, "every record is whole");
}

static void
test_incomplete(void)
{
	char path[300];

	ok(trace("on", "five", "3"), "on");
	for (int n = 0; n < 5; n++)
		ok(sn_xfer(&dci, false, &tok, mr, buf, 64) == IBV_WC_SUCCESS, "goes on when it is full");
	ok(!trace("show", "five", "") && recs_nr == 3, "three of five, and it says so: %d", recs_nr);
	/* A work request that began in one trace ends in it. */
	ok(trace("on", "six", ""), "on");
	sn_ctl("rule add hold=3600s limit=1 >/dev/null"); /* until the rule goes */
	must(sn_post(&dci, false, &tok, tok.addr, mr, buf, 64, 1) == 0);
	under_way(1);
	ok(trace("on", "seven", ""), "another");
	sn_ctl("rule clear");
	ok(sn_wait(&dci, NULL) == IBV_WC_SUCCESS, "held");
	ok(sn_xfer(&dci, false, &tok, mr, buf, 64) == IBV_WC_SUCCESS, "the next");
	ok(trace("show", "six", "") && recs_nr == 1 && is(&recs[0], "write", "SUCCESS", 64, 64), "the first");
	ok(trace("show", "seven", "") && recs_nr == 1, "the second");
	/* What cannot be written is told when it is switched off. */
	ok(trace("on", "eight", ""), "on");
	snprintf(path, sizeof(path), "%s/eight", getenv("SOFTNIC_DIR"));
	must(unlink(path) == 0);
	ok(sn_xfer(&dci, false, &tok, mr, buf, 64) == IBV_WC_SUCCESS, "goes on without");
	ok(!trace("off", NULL, ""), "off says that one is missing");
	ok(trace("off", NULL, ""), "once");
	ok(!trace("show", "fabric", "") && !trace("show", "eight", ""), "what is no trace is not shown");
	ok(!trace("on", "none/there", ""), "no such directory");
}

int
main(int argc, char **argv)
{
	pair_open(argc, argv, LEN);
	test_good_ones();
	test_marks();
	test_bad_ones();
	test_kills();
	test_threads();
	test_incomplete();
	pair_close();

	return sn_summary("trace");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DC initiator and a DC target in one process, with their memory, and what the tests of rules and traces do
 * with them.  `test --writer HEX` writes once to the target of another process, which may kill it meanwhile.
 * Included once per program.
 */
#ifndef SN_PAIR_H
#define SN_PAIR_H

#include "sn_test.h"

#include <stdarg.h>

static const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

static struct hw_port dev;
static struct hw_dci dci;
static struct hw_target target;
static struct hw_token tok;
static uint8_t *buf;
static struct ibv_mr *mr;

/* softnicctl with these words; its first line of output.  -1 when it failed. */
__attribute__((format(printf, 2, 3))) static inline int
ctl(char line[512], const char *fmt, ...)
{
	const char *build = getenv("BUILD");
	char args[400], cmd[512], more[512];
	va_list ap;
	FILE *p;

	va_start(ap, fmt);
	vsnprintf(args, sizeof(args), fmt, ap);
	va_end(ap);
	snprintf(cmd, sizeof(cmd), "%s/softnicctl %s 2>/dev/null", build ? build : "build/release", args);
	p = popen(cmd, "r");
	must(p);
	if (!fgets(line, 512, p))
		line[0] = 0;
	while (fgets(more, sizeof(more), p))
		;

	return pclose(p) == 0 ? 0 : -1;
}

/* Adds a rule; its number. */
static inline int
rule(const char *words)
{
	char line[512];

	must(ctl(line, "rule add %s", words) == 0 && atoi(line) > 0);
	return atoi(line);
}

static inline void
clear(void)
{
	sn_ctl("rule clear");
}

/* Waits until nr work requests met the only rule there is: from then on they are under way. */
static inline void
under_way(int nr)
{
	uint64_t end = sn_now_ms() + SN_PATIENCE_MS;
	const char *hits;
	char line[512];

	do {
		must(ctl(line, "rule list") == 0 && sn_now_ms() < end);
		hits = strstr(line, " hits=");
	} while (!hits || atoi(hits + 6) < nr);
}

static inline int
go(bool read, uint32_t len)
{
	return sn_xfer(&dci, read, &tok, mr, buf, len);
}

/* Posts and returns; the completion is the caller's. */
static inline void
post(bool read, uint32_t len, uint64_t id)
{
	must(sn_post(&dci, read, &tok, tok.addr, mr, buf, len, id) == 0);
}

static inline int
polled(void)
{
	struct ibv_wc wc;

	return ibv_poll_cq(ibv_cq_ex_to_cq(dci.cq), 1, &wc);
}

static inline void
ready(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	must(ibv_modify_qp(dci.qp, &a, IBV_QP_STATE) == 0);
	must(sn_dci_rts(&dci, 8, 3) == 0);
}

/* "--writer HEX": one WRITE to a token. */
static inline void
write_once(const char *hex)
{
	for (size_t i = 0; i < sizeof(tok); i++)
		must(sscanf(hex + 2 * i, "%2hhx", &((uint8_t *)&tok)[i]) == 1);
	memset(buf, 0x71, mr->length);
	sn_dci_init(&dci, &dev, NULL);
	sn_dci_to(&dci, &tok);
	post(false, (uint32_t)mr->length, 1);
	sn_wait(&dci, NULL);
	exit(3);
}

/* What main() begins with: both with len bytes. */
static inline void
pair_open(int argc, char **argv, size_t len)
{
	sn_maybe_target(argc, argv);
	sn_open(&dev, "mlx5_0");
	mr = sn_mem_new(&dev, len);
	buf = mr->addr;
	if (argc == 3 && strcmp(argv[1], "--writer") == 0)
		write_once(argv[2]);
	sn_target_init(&target, &dev, len, all, all);
	sn_target_token(&target, &tok);
	sn_dci_init(&dci, &dev, NULL);
	sn_dci_to(&dci, &tok);
}

static inline void
pair_close(void)
{
	sn_dci_fini(&dci);
	sn_target_fini(&target);
	sn_mem_free(mr);
	sn_close(&dev);
}

#endif

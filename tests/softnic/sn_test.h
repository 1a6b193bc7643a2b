/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the software NIC share: counting checks, the objects of a DC initiator and of a DC
 * target, and a target in another process that does what it is told over a socket.  Plain verbs and mlx5dv
 * only.
 */
#ifndef SN_TEST_H
#define SN_TEST_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <infiniband/verbs.h>
#include <infiniband/mlx5dv.h>

extern _Atomic int sn_checks, sn_failed;

/* One check: counts it, says what failed and goes on. */
#define ok(cond, ...) sn_ok((cond), __FILE__, __LINE__, __VA_ARGS__)
bool sn_ok(bool good, const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Something the test needs but does not test. */
#define must(cond) ((cond) ? (void)0 : sn_must_failed(#cond, __FILE__, __LINE__))
_Noreturn void sn_must_failed(const char *what, const char *file, int line);
int sn_summary(const char *name); /* exit status */
/* What comes at all has come after so long, however much other work the machine has. */
#define SN_PATIENCE_MS 60000
uint64_t sn_now_ms(void);
void sn_nap_ms(unsigned ms);
void sn_ctl(const char *args); /* runs softnicctl of $BUILD with these arguments */
bool sn_is_inline(void);

#define SN_DC_KEY 0x1122334455667788ull
#define SN_GID_ROW 3

struct sn_dev_ctx {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
};
void sn_open(struct sn_dev_ctx *d, const char *name);
void sn_close(struct sn_dev_ctx *d);

/* Memory of our own, registered for local writing: of len bytes, at mr->addr. */
struct ibv_mr *sn_mem_new(struct sn_dev_ctx *d, size_t len);
void sn_mem_free(struct ibv_mr *mr);

/* What a target tells an initiator. */
struct sn_token {
	uint32_t dctn, rkey;
	uint64_t dc_key, addr, len;
	union ibv_gid gid;
	uint16_t lid; /* 0: Ethernet */
};

struct sn_target {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *dct;
	struct ibv_mr *mr;
	struct sn_dev_ctx *dev;
	uint8_t *buf;
	size_t len;
};
void sn_target_init(struct sn_target *t, struct sn_dev_ctx *d, size_t len, unsigned dct_access,
		    unsigned mr_access);
void sn_target_token(const struct sn_target *t, struct sn_token *tok);
void sn_target_fini(struct sn_target *t);
struct ibv_qp *sn_dct_new(struct sn_dev_ctx *d, struct ibv_cq *cq, struct ibv_srq *srq);
int sn_dct_init(struct ibv_qp *dct, unsigned access);
int sn_dct_rtr(struct ibv_qp *dct);

struct sn_dci {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct mlx5dv_qp_ex *dv;
	struct ibv_ah *ah;
	struct sn_dev_ctx *dev;
};
struct sn_dci_opt {
	unsigned depth, sge, inl, cqe, timeout, retry;
	uint64_t send_ops;
	struct ibv_comp_channel *chan;
};
/* NULL opt: depth 16, 4 SGEs, 64 bytes inline, timeout 8 and 3 retries (about 3 ms), WRITE, READ and SEND. */
void sn_dci_init(struct sn_dci *i, struct sn_dev_ctx *d, const struct sn_dci_opt *opt);
int sn_dci_rts(struct sn_dci *i, unsigned timeout, unsigned retry); /* RESET -> RTS; 0 or errno */
void sn_dci_to(struct sn_dci *i, const struct sn_token *t);         /* makes the address handle */
void sn_dci_fini(struct sn_dci *i);

/* One work request, posted alone; 0 or errno of wr_complete. */
int sn_post(struct sn_dci *i, bool read, const struct sn_token *t, uint64_t raddr, struct ibv_mr *mr,
	    void *buf, uint32_t len, uint64_t wr_id);
/* Waits for one completion, 10 s; the status, or -1. */
int sn_wait(struct sn_dci *i, uint64_t *ret_wr_id);
/* Both; a failed QP is reset and made ready again. */
int sn_xfer(struct sn_dci *i, bool read, const struct sn_token *t, struct ibv_mr *mr, void *buf,
	    uint32_t len);
int sn_state(struct ibv_qp *qp);

/* A target in a process of its own, made by running ourselves with "--target FD". */
struct sn_remote {
	pid_t pid;
	int fd;
	struct sn_token tok;
};
enum sn_cmd {
	SN_FILL = 'f',    /* buffer := arg */
	SN_SAME = 's',    /* answers 1 when every byte is arg */
	SN_SUM = 'u',     /* answers a checksum of the buffer */
	SN_PATTERN = 'p', /* answers 1 when byte i is (uint8_t)(i * 7 + arg) */
	SN_DEREG = 'd',   /* answers 1 */
	SN_REG = 'r',     /* registers anew; a new token follows */
	SN_UNMAP = 'm',   /* unmaps the buffer, still registered */
	SN_EVENT = 'e',   /* answers the type of the next asynchronous event, or -1 after 5 s */
	SN_LEAVE = 'l',   /* the main thread ends, another goes on answering */
	SN_QUIT = 'q',
};
void sn_remote_start(struct sn_remote *r, size_t len);
long sn_remote_ask(struct sn_remote *r, enum sn_cmd cmd, long arg);
void sn_remote_stop(struct sn_remote *r);
void sn_remote_kill(struct sn_remote *r);
/* First thing in main(): becomes a target when asked to; of user SN_TARGET_UID if that is set. */
void sn_maybe_target(int argc, char **argv);
int sn_next_event(struct ibv_context *ctx, int wait_ms, struct ibv_async_event *ret_ev);

#endif

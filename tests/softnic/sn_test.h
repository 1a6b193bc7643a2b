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

#include "client/cmd/hwcheck/hw_verbs.h"

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
/* Time, in ns, after which the end of a wait beside idle processors has the mark of a lost wake-up (tests/fake/wait.h); a test that waits for
 * a longer timer sets it. */
extern uint64_t sn_usual_ns;
uint64_t sn_now_ms(void);
void sn_nap_ms(unsigned ms);
void sn_ctl(const char *args); /* runs softnicctl of $BUILD with these arguments */
bool sn_is_inline(void);

#define SN_DC_KEY 0x1122334455667788ull
#define SN_GID_ROW 3

/* Its port 1, row SN_GID_ROW of the GID table, paths of MTU 1024. */
void sn_open(struct hw_port *d, const char *name);
void sn_close(struct hw_port *d);

/* Memory of our own, registered for local writing: of len bytes, at mr->addr. */
struct ibv_mr *sn_mem_new(struct hw_port *d, size_t len);
void sn_mem_free(struct ibv_mr *mr);

void sn_target_init(struct hw_target *t, struct hw_port *d, size_t len, unsigned dct_access,
		    unsigned mr_access);
void sn_target_token(const struct hw_target *t, struct hw_token *tok);
void sn_target_fini(struct hw_target *t);
struct ibv_qp *sn_dct_new(struct hw_port *d, struct ibv_cq *cq, struct ibv_srq *srq);
int sn_dct_init(struct hw_port *d, struct ibv_qp *dct, unsigned access);
int sn_dct_rtr(struct hw_port *d, struct ibv_qp *dct);

/* NULL opt: depth 16, 4 SGEs, 64 bytes inline, timeout 8 and 3 retries (about 3 ms), WRITE, READ and SEND. */
void sn_dci_init(struct hw_dci *i, struct hw_port *d, const struct hw_dci_opt *opt);
int sn_dci_rts(struct hw_dci *i, unsigned timeout, unsigned retry); /* RESET -> RTS; 0 or errno */
void sn_dci_to(struct hw_dci *i, const struct hw_token *t);         /* makes the address handle */
void sn_dci_fini(struct hw_dci *i);

/* One work request, posted alone; 0 or errno of wr_complete. */
int sn_post(struct hw_dci *i, bool read, const struct hw_token *t, uint64_t raddr, struct ibv_mr *mr,
	    void *buf, uint32_t len, uint64_t wr_id);
/* Waits for one completion, SN_PATIENCE_MS; the status, or -1. As in sn_next_event(), a late end beside idle processors ends the test
 * (sn_usual_ns). */
int sn_wait(struct hw_dci *i, uint64_t *ret_wr_id);
/* Both; a failed QP is reset and made ready again. */
int sn_xfer(struct hw_dci *i, bool read, const struct hw_token *t, struct ibv_mr *mr, void *buf,
	    uint32_t len);
int sn_state(struct ibv_qp *qp);

/* A target in a process of its own, made by running ourselves with "--target FD". */
struct sn_remote {
	pid_t pid;
	int fd;
	struct hw_token tok;
};
enum sn_cmd {
	SN_FILL = 'f',    /* buffer := arg */
	SN_SAME = 's',    /* answers 1 when every byte is arg */
	SN_SUM = 'u',     /* answers a checksum of the buffer */
	SN_PATTERN = 'p', /* answers 1 when byte i is (uint8_t)(i * 7 + arg) */
	SN_DEREG = 'd',   /* answers 1 */
	SN_REG = 'r',     /* registers anew; a new token follows */
	SN_UNMAP = 'm',   /* unmaps the buffer, still registered */
	SN_REMAP = 'w',   /* the same with other memory in its place */
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

/* ---- proofs that something does not come: something else comes, which can only come after it ---- */

/* Causes an event of the port (of its P_Key, which stays), waits for it, and does so once more. Then each event that was caused before has
 * come, and the watcher of this process has looked at all contexts after the begin of the call. False: an event of another kind came. */
bool sn_quiet(struct ibv_context *ctx);

/* Waits until this process has nr threads with this name (`softnic-engine`), or nr of any name for NULL: what another one would do is done. */
void sn_threads_wait(const char *name, int nr);
int sn_threads(const char *name);
/* Waits until each engine of this process sleeps: it has no work, but such that waits for a moment or for a rule. */
void sn_engines_rest(void);

/* Turns of the engine of a context, which executes its queue pairs in turn, a step each: a queue pair that writes to itself. The
 * completion is not polled for, because a thread that polls executes work as well. */
struct sn_turns {
	struct hw_dci rc;
	struct ibv_comp_channel *chan;
	struct ibv_mr *mr;
};
#define SN_TURNS 512
void sn_turns_init(struct sn_turns *t, struct hw_port *d);
/* Waits for nr turns of the engine, at most SN_TURNS: work that was queued before has had so many as well. In both modes on the thread of
 * the engine. No fault rule may be for the turns. */
void sn_turns(struct sn_turns *t, unsigned nr);
void sn_turns_fini(struct sn_turns *t);

#endif

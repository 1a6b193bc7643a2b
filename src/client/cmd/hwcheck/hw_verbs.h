/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw_verbs - objects for tests of an adapter, made by verbs and mlx5dv: ports, initiators and targets of DC and RC,
 * registered memory. The tests of the software NIC use them, too. Functions that return int return 0 or
 * -errno. Any thread may call these functions; the caller owns the objects.
 */
#ifndef GANTRY_CLIENT_CMD_HW_VERBS_H
#define GANTRY_CLIENT_CMD_HW_VERBS_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The data about a target and its memory that an initiator needs. */
struct hw_token {
	uint32_t dctn, rkey; /* dctn: for RC: number of the queue pair */
	uint64_t dc_key, addr, len;
	union ibv_gid gid;
	uint16_t lid; /* LID of the port; 0: the port is Ethernet */
};

struct hw_port {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	uint8_t nr, gid_index;
	bool is_ib;
	enum ibv_mtu mtu; /* path MTU for initiators and targets of the port */
	uint8_t traffic_class;
};

/* Opens a device, and allocates a protection domain. Sets p->ctx and p->pd; hw_port_ask() sets the other
 * members. */
int hw_open(struct hw_port *p, struct ibv_device *dev);
/* Sets the link layer and the MTU of p to those of port nr of the device, and p->gid_index to the given entry
 * of the port's GID table. */
int hw_port_ask(struct hw_port *p, uint8_t nr, uint8_t gid_index);
int hw_close(struct hw_port *p);

/* Allocates memory and registers it. Returns its memory region mr, with the address in mr->addr; NULL, and
 * sets errno, on failure. */
struct ibv_mr *hw_mem_new(struct hw_port *p, size_t len, unsigned access);
int hw_mem_free(struct ibv_mr *mr);

/* Returns an address vector of the port without a destination. */
struct ibv_ah_attr hw_vector(const struct hw_port *p);

struct hw_dci {
	struct ibv_cq_ex *cq; /* completion queue of DC; NULL for RC */
	/* completion queue of RC, because some providers have no ibv_cq_ex; NULL for DC */
	struct ibv_cq *plain_cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex; /* ex, dv, ah: NULL for RC */
	struct mlx5dv_qp_ex *dv;
	struct ibv_ah *ah;
	struct hw_port *port;
};
struct hw_dci_opt {
	unsigned depth, sge, inl, cqe, timeout, retry;
	uint64_t send_ops;
	struct ibv_comp_channel *chan;
	unsigned reads;   /* largest number of RDMA reads in flight; 0: 16 */
	unsigned recv_wr; /* size of the receive queue, which an initiator cannot use */
};
/* Options that are sufficient for a few RDMA writes and reads. */
extern const struct hw_dci_opt hw_dci_plain;
/* Makes an initiator and brings it to the state RTS. */
int hw_dci_new(struct hw_dci *i, struct hw_port *p, const struct hw_dci_opt *opt);
/* Makes an initiator in the state RESET. */
int hw_dci_create(struct hw_dci *i, struct hw_port *p, const struct hw_dci_opt *opt);
/* Brings an initiator from the state RESET to RTS, by INIT and RTR. reads: largest number of RDMA reads in
 * flight; 0: 16. */
int hw_dci_rts(struct hw_dci *i, unsigned timeout, unsigned retry, unsigned reads);
/* Brings an initiator from the state RESET to RTR (hw_dci_rtr()), or from RTR to RTS
 * (hw_dci_rtr_to_rts()). */
int hw_dci_rtr(struct hw_dci *i);
int hw_dci_rtr_to_rts(struct hw_dci *i, unsigned timeout, unsigned retry, unsigned reads);
int hw_dci_move(struct hw_dci *i, enum ibv_qp_state to); /* Brings an initiator to the state ERR or RESET. */
/* Makes an address handle for the target t. The new handle replaces the previous address handle of the
 * initiator. */
int hw_dci_to(struct hw_dci *i, const struct hw_token *t);
int hw_dci_free(struct hw_dci *i);

/* Returns the completion queue of an initiator; NULL: it has none. */
static inline struct ibv_cq *
hw_dci_cq(const struct hw_dci *i)
{
	return i->cq ? ibv_cq_ex_to_cq(i->cq) : i->plain_cq;
}

/* Posts a signaled work request. read: true: an RDMA read; false: an RDMA write. Returns 0, or the errno
 * value of ibv_wr_complete(). */
int hw_post(struct hw_dci *i, bool read, const struct hw_token *t, uint64_t raddr, struct ibv_mr *mr,
	    const void *buf, uint32_t len, uint64_t wr_id);
/* Posts nr WRITEs of 64 bytes, of which only the last is signaled, with the numbers 0 to nr - 1. nr: at most
 * HW_CHAIN. Returns 0, or an errno value. */
#define HW_CHAIN 8
int hw_post_chain(struct hw_dci *i, const struct hw_token *t, struct ibv_mr *mr, int nr);
/* A completion of a work request. */
struct hw_done {
	uint64_t wr_id;
	int status;
	uint32_t vendor_err;
};
/* Polls until a completion arrives, at most ms milliseconds. Returns 0; -ETIMEDOUT: no completion has
 * arrived. */
int hw_wait(struct hw_dci *i, unsigned ms, struct hw_done *ret_done);

struct hw_target {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *dct;
	struct ibv_mr *mr;
	struct hw_port *port;
	uint8_t *buf;
	size_t len;
	uint64_t dc_key;
	bool is_rc;       /* true: dct is a queue pair of RC */
	unsigned access;  /* for RC: rights of the initiator */
	enum ibv_mtu mtu; /* for RC: path MTU; 0: that of the initiator */
};
/* Allocates and registers len bytes of memory, and makes a DC target for it. mtu 0: the MTU of the port. */
int hw_target_new(struct hw_target *t, struct hw_port *p, size_t len, unsigned dct_access, unsigned mr_access,
		  uint64_t dc_key, enum ibv_mtu mtu);
int hw_target_token(const struct hw_target *t, struct hw_token *ret_tok);
int hw_target_free(struct hw_target *t);
/* Makes a DC target in the state RESET, and registers no memory for it. Returns NULL and sets errno on
 * failure. */
struct ibv_qp *hw_dct_new(struct hw_port *p, struct ibv_cq *cq, struct ibv_srq *srq, uint64_t dc_key);
/* Brings a DC target from the state RESET to INIT (hw_dct_init()), or from INIT to RTR (hw_dct_rtr()). */
int hw_dct_init(struct hw_port *p, struct ibv_qp *dct, unsigned access);
int hw_dct_rtr(struct hw_port *p, struct ibv_qp *dct, enum ibv_mtu mtu);

/* ---- RC: hw_rc.c ---- */

#define HW_REMOTE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* One end of a connection. Both ends use the same PSN and the same MTU. */
struct hw_end {
	uint32_t qpn, psn;
	union ibv_gid gid;
	uint16_t lid;
	enum ibv_mtu mtu;
};

/* Makes an initiator of RC in the state RESET. */
int hw_rc_new(struct hw_dci *i, struct hw_port *p, const struct hw_dci_opt *opt);
/* Describes a queue pair of the port, with PSN 0 and the MTU of the port. */
int hw_rc_end(struct hw_port *p, struct ibv_qp *qp, struct hw_end *ret);
/* Connects a queue pair in the state RESET, and brings it to RTS. access: rights of the peer. opt: timeout, retry and
 * reads. */
int hw_rc_connect(struct hw_port *p, struct ibv_qp *qp, const struct hw_end *peer, unsigned access,
		  const struct hw_dci_opt *opt);
/* Allocates and registers len bytes of memory, and makes a target of RC for it, in the state RESET. access: rights of
 * the initiator that is connected to the target. */
int hw_rc_target_new(struct hw_target *t, struct hw_port *p, size_t len, unsigned access, unsigned mr_access);
/* Connects a target of RC, in any state, to an initiator. */
int hw_rc_target_connect(struct hw_target *t, const struct hw_end *peer);
/* Connects two queue pairs of the port to each other, sends a WRITE, and destroys both. Returns 0; or -errno with
 * the step that failed in *ret_step. */
int hw_rc_try(struct hw_port *p, const char **ret_step);

#endif

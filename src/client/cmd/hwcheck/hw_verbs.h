/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw_verbs - objects for testing an adapter, through verbs and mlx5dv: a port, DC initiators, DC targets,
 * registered memory. The tests of the software NIC use them, too. Functions of type int return 0 or -errno.
 * Any thread; the caller owns the objects.
 */
#ifndef GANTRY_CLIENT_CMD_HW_VERBS_H
#define GANTRY_CLIENT_CMD_HW_VERBS_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The data that an initiator needs about a target. */
struct hw_token {
	uint32_t dctn, rkey;
	uint64_t dc_key, addr, len;
	union ibv_gid gid;
	uint16_t lid; /* LID of the port; 0: Ethernet */
};

struct hw_port {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	uint8_t nr, gid_index;
	bool is_ib;
	enum ibv_mtu mtu; /* MTU of paths from and to the port */
	uint8_t traffic_class;
};

/* Opens a device and a protection domain. hw_port_ask() fills in the other members of p. */
int hw_open(struct hw_port *p, struct ibv_device *dev);
/* Fills in link layer and MTU of port nr, and a row of its GID table. */
int hw_port_ask(struct hw_port *p, uint8_t nr, uint8_t gid_index);
int hw_close(struct hw_port *p);

/* Maps memory, whose address is mr->addr, and registers it. Returns NULL and sets errno on failure. */
struct ibv_mr *hw_mem_new(struct hw_port *p, size_t len, unsigned access);
int hw_mem_free(struct ibv_mr *mr);

struct hw_dci {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct mlx5dv_qp_ex *dv;
	struct ibv_ah *ah;
	struct hw_port *port;
};
struct hw_dci_opt {
	unsigned depth, sge, inl, cqe, timeout, retry;
	uint64_t send_ops;
	struct ibv_comp_channel *chan;
	unsigned reads;   /* limit of READs in flight; 0: 16 */
	unsigned recv_wr; /* number of receive work requests, which an initiator cannot use */
};
/* Options that are sufficient for a few WRITEs and READs. */
extern const struct hw_dci_opt hw_dci_plain;
/* Makes an initiator and brings it to the state RTS. */
int hw_dci_new(struct hw_dci *i, struct hw_port *p, const struct hw_dci_opt *opt);
/* Makes an initiator in the state RESET. */
int hw_dci_create(struct hw_dci *i, struct hw_port *p, const struct hw_dci_opt *opt);
/* Brings an initiator from RESET to RTS, through INIT and RTR. reads: limit of READs in flight; 0: 16. */
int hw_dci_rts(struct hw_dci *i, unsigned timeout, unsigned retry, unsigned reads);
/* Brings an initiator to the state RTR; hw_dci_rtr_to_rts() brings it from there to RTS. */
int hw_dci_rtr(struct hw_dci *i);
int hw_dci_rtr_to_rts(struct hw_dci *i, unsigned timeout, unsigned retry, unsigned reads);
int hw_dci_move(struct hw_dci *i, enum ibv_qp_state to); /* Brings an initiator to the state ERR or RESET. */
/* Makes an address handle for a target, which replaces the initiator's previous address handle. */
int hw_dci_to(struct hw_dci *i, const struct hw_token *t);
int hw_dci_free(struct hw_dci *i);

/* Posts a signaled work request. Returns 0, or the error number of ibv_wr_complete(). */
int hw_post(struct hw_dci *i, bool read, const struct hw_token *t, uint64_t raddr, struct ibv_mr *mr,
	    const void *buf, uint32_t len, uint64_t wr_id);
/* A completion of a work request. */
struct hw_done {
	uint64_t wr_id;
	int status;
	uint32_t vendor_err;
};
/* Polls for a completion. Returns -ETIMEDOUT if none has arrived after ms milliseconds. */
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
};
/* Registers memory and makes a DC target for it. mtu 0: the MTU of the port. */
int hw_target_new(struct hw_target *t, struct hw_port *p, size_t len, unsigned dct_access, unsigned mr_access,
		  uint64_t dc_key, enum ibv_mtu mtu);
int hw_target_token(const struct hw_target *t, struct hw_token *ret_tok);
int hw_target_free(struct hw_target *t);
/* Makes a DC target without memory, in the state RESET. Returns NULL and sets errno on failure. */
struct ibv_qp *hw_dct_new(struct hw_port *p, struct ibv_cq *cq, struct ibv_srq *srq, uint64_t dc_key);
/* Brings a DC target to the state INIT; hw_dct_rtr() brings it from there to RTR. */
int hw_dct_init(struct hw_port *p, struct ibv_qp *dct, unsigned access);
int hw_dct_rtr(struct hw_port *p, struct ibv_qp *dct, enum ibv_mtu mtu);

#endif

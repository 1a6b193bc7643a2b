/* SPDX-License-Identifier: Apache-2.0 */
/* See peer.h.  No fake: it speaks verbs to whatever device there is. */
#include "peer.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARG "--peer"
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

struct peer_info {
	struct token tok;
	struct peer_qp qp[PEER_QPS];
};

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *dct, *qp[PEER_QPS]; /* dct: NULL for RC, qp: for RC */
	struct ibv_mr *mr;
	struct peer_info info;
	int gid_index;
	unsigned char *mem;
	size_t len;
};

static struct ibv_qp_attr to_init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS };

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "peer: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static void
open_device(struct end *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_gid_entry gid[64];
	ssize_t n;

	if (!list || !list[0])
		die("no device");
	e->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!e->ctx)
		die("ibv_open_device");
	e->gid_index = -1;
	n = ibv_query_gid_table(e->ctx, gid, 64, 0);
	for (ssize_t i = 0; i < n && e->gid_index < 0; i++) {
		if (gid[i].port_num == 1 && gid[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    gid[i].gid.raw[10] == 0xff && gid[i].gid.raw[0] == 0) {
			e->gid_index = (int)gid[i].gid_index;
			memcpy(e->info.tok.gid, gid[i].gid.raw, 16);
		}
	}
	if (e->gid_index < 0)
		die("no RoCEv2 GID with an IPv4 address");
	e->info.tok.have_gid = true;
	e->pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 16, NULL, NULL, 0);
	if (!e->pd || !e->cq)
		die("ibv_alloc_pd, ibv_create_cq");
}

static void
make_dct(struct end *e, uint64_t dc_key)
{
	struct ibv_qp_init_attr_ex attr = { .send_cq = e->cq,
					    .recv_cq = e->cq,
					    .qp_type = IBV_QPT_DRIVER,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = e->pd };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT,
							    .dct_access_key = dc_key } };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_4096,
				   .min_rnr_timer = 12,
				   .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } } };

	rtr.ah_attr.grh.sgid_index = (uint8_t)e->gid_index;
	e->srq = ibv_create_srq(e->pd, &(struct ibv_srq_init_attr){ .attr = { .max_wr = 1, .max_sge = 1 } });
	if (!e->srq)
		die("ibv_create_srq");
	attr.srq = e->srq;
	e->dct = mlx5dv_create_qp(e->ctx, &attr, &dv);
	if (!e->dct)
		die("mlx5dv_create_qp (DCT)");
	errno = ibv_modify_qp(e->dct, &to_init, TO_INIT);
	if (errno)
		die("DCT to INIT");
	errno = ibv_modify_qp(e->dct, &rtr,
			      IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER);
	if (errno)
		die("DCT to RTR");
	e->info.tok.dctn = e->dct->qp_num;
}

static void
make_qp(struct end *e, int nr)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};

	e->qp[nr] = ibv_create_qp(e->pd, &attr);
	if (!e->qp[nr])
		die("ibv_create_qp");
	errno = ibv_modify_qp(e->qp[nr], &to_init, TO_INIT);
	if (errno)
		die("to INIT");
	e->info.qp[nr].qpn = e->qp[nr]->qp_num;
	e->info.qp[nr].psn = 0x1000u + (uint32_t)nr;
}

static enum ibv_mtu
mtu_of(int bytes)
{
	return bytes >= 4096   ? IBV_MTU_4096
	       : bytes >= 2048 ? IBV_MTU_2048
	       : bytes >= 1024 ? IBV_MTU_1024
	       : bytes >= 512  ? IBV_MTU_512
			       : IBV_MTU_256;
}

static void
join(struct end *e, int nr)
{
	const struct peer_qp *q = &e->info.qp[nr];
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = mtu_of(q->mtu),
				   .dest_qp_num = q->their_qpn,
				   .rq_psn = q->their_psn,
				   .max_dest_rd_atomic = (uint8_t)q->reads,
				   .min_rnr_timer = 12,
				   .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } } };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = q->psn
	};

	memcpy(rtr.ah_attr.grh.dgid.raw, q->their_gid, 16);
	rtr.ah_attr.grh.sgid_index = (uint8_t)e->gid_index;
	errno = ibv_modify_qp(e->qp[nr], &rtr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (errno)
		die("to RTR");
	errno = ibv_modify_qp(e->qp[nr], &rts,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (errno)
		die("to RTS");
}

static void
mint(struct end *e)
{
	struct token *tok = &e->info.tok;

	e->mr = ibv_reg_mr(e->pd, e->mem, e->len, ACCESS);
	if (!e->mr)
		die("ibv_reg_mr");
	tok->kind = TOKEN_DC;
	tok->addr = (uint64_t)(uintptr_t)e->mem;
	tok->size = e->len;
	tok->rkey = e->mr->rkey;
}

struct question {
	char what;
	int nr;
	struct peer_qp qp;
};

static void
serve(struct end *e, int fd)
{
	struct question q;

	while (read(fd, &q, sizeof q) == (ssize_t)sizeof q) {
		if (q.what == 'c') {
			e->info.qp[q.nr] = q.qp;
			join(e, q.nr);
		} else if (q.what == 'x') {
			if (ibv_destroy_qp(e->qp[q.nr]))
				die("ibv_destroy_qp");
			e->qp[q.nr] = NULL;
		} else if (q.what == 'n') {
			if (e->qp[q.nr])
				ibv_destroy_qp(e->qp[q.nr]);
			make_qp(e, q.nr);
		} else if (q.what == 'd') {
			if (ibv_dereg_mr(e->mr))
				die("ibv_dereg_mr");
			e->mr = NULL;
		} else if (q.what == 'm') {
			mint(e);
		}
		if (write(fd, &e->info, sizeof e->info) != (ssize_t)sizeof e->info)
			break;
	}
}

void
peer_main(int argc, char **argv)
{
	struct end e = { 0 };
	uint64_t dc_key;
	int fd, mem_fd;

	if (argc != 6 || strcmp(argv[1], ARG) != 0)
		return;
	fd = atoi(argv[2]);
	mem_fd = atoi(argv[3]);
	e.len = strtoull(argv[4], NULL, 10);
	dc_key = strtoull(argv[5], NULL, 0);
	e.mem = mmap(NULL, e.len, PROT_READ | PROT_WRITE, MAP_SHARED, mem_fd, 0);
	if (e.mem == MAP_FAILED)
		die("mmap");
	open_device(&e);
	if (dc_key)
		make_dct(&e, dc_key);
	for (int i = 0; i < PEER_QPS && !dc_key; i++)
		make_qp(&e, i);
	mint(&e);
	if (write(fd, &e.info, sizeof e.info) != (ssize_t)sizeof e.info)
		die("write");
	serve(&e, fd);
	/* A peer of RC goes like one that was killed. */
	if (!e.dct)
		_exit(0);
	if (e.mr)
		ibv_dereg_mr(e.mr);
	ibv_destroy_qp(e.dct);
	ibv_destroy_srq(e.srq);
	ibv_destroy_cq(e.cq);
	ibv_dealloc_pd(e.pd);
	ibv_close_device(e.ctx);
	exit(0);
}

/* Reads what the peer says of itself. */
static int
hear(struct peer *p)
{
	struct peer_info info;

	if (read(p->fd, &info, sizeof info) != (ssize_t)sizeof info)
		return -1;
	p->tok = info.tok;
	memcpy(p->qp, info.qp, sizeof p->qp);
	return 0;
}

int
peer_start(struct peer *p, size_t len, uint64_t dc_key)
{
	int pair[2], mem_fd = memfd_create("window", MFD_CLOEXEC);
	char arg[4][32];

	memset(p, 0, sizeof *p);
	p->len = len;
	if (mem_fd < 0 || ftruncate(mem_fd, (off_t)len) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		goto fail;
	p->mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, mem_fd, 0);
	if (p->mem == MAP_FAILED)
		goto fail;
	snprintf(arg[2], sizeof arg[2], "%zu", len);
	snprintf(arg[3], sizeof arg[3], "0x%llx", (unsigned long long)dc_key);
	p->pid = fork();
	if (p->pid == 0) {
		/* dup() clears close-on-exec. */
		snprintf(arg[0], sizeof arg[0], "%d", dup(pair[1]));
		snprintf(arg[1], sizeof arg[1], "%d", dup(mem_fd));
		execl("/proc/self/exe", "peer", ARG, arg[0], arg[1], arg[2], arg[3], (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	close(mem_fd);
	p->fd = pair[0];
	if (p->pid > 0 && hear(p) == 0)
		return 0;
	peer_stop(p);
	return -1;
fail:
	perror("peer_start");
	return -1;
}

int
peer_ask(struct peer *p, char what, int nr)
{
	struct question q;

	memset(&q, 0, sizeof q);
	q.what = what;
	q.nr = nr;
	q.qp = p->qp[nr];
	return write(p->fd, &q, sizeof q) == (ssize_t)sizeof q ? hear(p) : -1;
}

void
peer_stop(struct peer *p)
{
	if (p->pid > 0) {
		close(p->fd); /* it reads the end and goes */
		for (int i = 0; i < 200; i++) {
			if (waitpid(p->pid, NULL, WNOHANG) == p->pid) {
				p->pid = 0;
				break;
			}
			usleep(10000);
		}
		if (p->pid > 0) {
			kill(p->pid, SIGKILL);
			waitpid(p->pid, NULL, 0);
		}
		p->pid = 0;
	}
	if (p->mem && p->mem != MAP_FAILED)
		munmap(p->mem, p->len);
	p->mem = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See dc_peer.h.  No fake: it speaks verbs to whatever device there is. */
#include "dc_peer.h"

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

#define ARG "--dc-peer"

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *dct;
	struct ibv_mr *mr;
	struct token tok;
	unsigned char *mem;
	size_t len;
};

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
	int index = -1;

	if (!list || !list[0])
		die("no device");
	e->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!e->ctx)
		die("ibv_open_device");
	n = ibv_query_gid_table(e->ctx, gid, 64, 0);
	for (ssize_t i = 0; i < n && index < 0; i++) {
		if (gid[i].port_num == 1 && gid[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    gid[i].gid.raw[10] == 0xff && gid[i].gid.raw[0] == 0) {
			index = (int)gid[i].gid_index;
			memcpy(e->tok.gid, gid[i].gid.raw, 16);
		}
	}
	if (index < 0)
		die("no RoCEv2 GID with an IPv4 address");
	e->tok.have_gid = true;
	e->tok.lid = 0;
	e->pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 16, NULL, NULL, 0);
	if (!e->pd || !e->cq)
		die("ibv_alloc_pd, ibv_create_cq");
	e->srq = ibv_create_srq(e->pd, &(struct ibv_srq_init_attr){ .attr = { .max_wr = 1, .max_sge = 1 } });
	if (!e->srq)
		die("ibv_create_srq");
	e->tok.port = (uint8_t)index; /* until the DCT is made */
}

static void
make_dct(struct end *e, uint64_t dc_key)
{
	struct ibv_qp_init_attr_ex attr = { .send_cq = e->cq,
					    .recv_cq = e->cq,
					    .srq = e->srq,
					    .qp_type = IBV_QPT_DRIVER,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = e->pd };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT,
							    .dct_access_key = dc_key } };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_4096,
				   .min_rnr_timer = 12,
				   .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } } };

	rtr.ah_attr.grh.sgid_index = e->tok.port;
	e->tok.port = 0;
	e->dct = mlx5dv_create_qp(e->ctx, &attr, &dv);
	if (!e->dct)
		die("mlx5dv_create_qp (DCT)");
	errno = ibv_modify_qp(e->dct, &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (errno)
		die("DCT to INIT");
	errno = ibv_modify_qp(e->dct, &rtr,
			      IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER);
	if (errno)
		die("DCT to RTR");
	e->tok.dctn = e->dct->qp_num;
}

static void
mint(struct end *e)
{
	e->mr = ibv_reg_mr(e->pd, e->mem, e->len,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!e->mr)
		die("ibv_reg_mr");
	e->tok.kind = TOKEN_DC;
	e->tok.addr = (uint64_t)(uintptr_t)e->mem;
	e->tok.size = e->len;
	e->tok.rkey = e->mr->rkey;
}

static void
serve(struct end *e, int fd)
{
	char what;

	while (read(fd, &what, 1) == 1) {
		if (what == 'd') {
			if (ibv_dereg_mr(e->mr))
				die("ibv_dereg_mr");
			e->mr = NULL;
		} else if (what == 'm') {
			mint(e);
		} else {
			break;
		}
		if (write(fd, &e->tok, sizeof e->tok) != (ssize_t)sizeof e->tok)
			break;
	}
	if (e->mr)
		ibv_dereg_mr(e->mr);
	ibv_destroy_qp(e->dct);
	ibv_destroy_srq(e->srq);
	ibv_destroy_cq(e->cq);
	ibv_dealloc_pd(e->pd);
	ibv_close_device(e->ctx);
}

void
peer_main(int argc, char **argv)
{
	struct end e = { 0 };
	int fd, mem_fd;

	if (argc != 6 || strcmp(argv[1], ARG) != 0)
		return;
	fd = atoi(argv[2]);
	mem_fd = atoi(argv[3]);
	e.len = strtoull(argv[4], NULL, 10);
	e.mem = mmap(NULL, e.len, PROT_READ | PROT_WRITE, MAP_SHARED, mem_fd, 0);
	if (e.mem == MAP_FAILED)
		die("mmap");
	open_device(&e);
	make_dct(&e, strtoull(argv[5], NULL, 0));
	mint(&e);
	if (write(fd, &e.tok, sizeof e.tok) != (ssize_t)sizeof e.tok)
		die("write");
	serve(&e, fd);
	exit(0);
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
		execl("/proc/self/exe", "dc-peer", ARG, arg[0], arg[1], arg[2], arg[3], (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	close(mem_fd);
	p->fd = pair[0];
	if (p->pid > 0 && read(p->fd, &p->tok, sizeof p->tok) == (ssize_t)sizeof p->tok)
		return 0;
	peer_stop(p);
	return -1;
fail:
	perror("peer_start");
	return -1;
}

int
peer_ask(struct peer *p, char what)
{
	if (write(p->fd, &what, 1) != 1 || read(p->fd, &p->tok, sizeof p->tok) != (ssize_t)sizeof p->tok)
		return -1;
	return 0;
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

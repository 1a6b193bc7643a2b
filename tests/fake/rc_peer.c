/* SPDX-License-Identifier: Apache-2.0 */
/* See rc_peer.h.  No fake: it speaks verbs to whatever device there is. */
#include "rc_peer.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARG "--rc-peer"
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[RC_PEER_QPS];
	struct ibv_mr *mr;
	struct rc_peer_info info;
	int gid_index;
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
			memcpy(e->info.gid, gid[i].gid.raw, 16);
		}
	}
	if (e->gid_index < 0)
		die("no RoCEv2 GID with an IPv4 address");
	e->pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 16, NULL, NULL, 0);
	if (!e->pd || !e->cq)
		die("ibv_alloc_pd, ibv_create_cq");
}

static void
make(struct end *e, int nr)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS };

	e->qp[nr] = ibv_create_qp(e->pd, &attr);
	if (!e->qp[nr])
		die("ibv_create_qp");
	errno = ibv_modify_qp(e->qp[nr], &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
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
	const struct rc_peer_qp *q = &e->info.qp[nr];
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
	e->mr = ibv_reg_mr(e->pd, e->mem, e->len, ACCESS);
	if (!e->mr)
		die("ibv_reg_mr");
	e->info.addr = (uint64_t)(uintptr_t)e->mem;
	e->info.rkey = e->mr->rkey;
}

struct question {
	char what;
	int nr;
	struct rc_peer_qp qp;
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
			make(e, q.nr);
		} else if (q.what == 'd') {
			ibv_dereg_mr(e->mr);
		} else if (q.what == 'm') {
			mint(e);
		}
		if (write(fd, &e->info, sizeof e->info) != (ssize_t)sizeof e->info)
			break;
	}
	_exit(0);
}

void
rc_peer_main(int argc, char **argv)
{
	struct end e = { 0 };
	int fd, mem_fd;

	if (argc != 5 || strcmp(argv[1], ARG) != 0)
		return;
	fd = atoi(argv[2]);
	mem_fd = atoi(argv[3]);
	e.len = strtoull(argv[4], NULL, 10);
	e.mem = mmap(NULL, e.len, PROT_READ | PROT_WRITE, MAP_SHARED, mem_fd, 0);
	if (e.mem == MAP_FAILED)
		die("mmap");
	open_device(&e);
	for (int i = 0; i < RC_PEER_QPS; i++)
		make(&e, i);
	mint(&e);
	if (write(fd, &e.info, sizeof e.info) != (ssize_t)sizeof e.info)
		die("write");
	serve(&e, fd);
}

int
rc_peer_start(struct rc_client *p, size_t len)
{
	int pair[2], mem_fd = memfd_create("window", MFD_CLOEXEC);
	char arg[3][32];

	memset(p, 0, sizeof *p);
	p->len = len;
	if (mem_fd < 0 || ftruncate(mem_fd, (off_t)len) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		goto fail;
	p->mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, mem_fd, 0);
	if (p->mem == MAP_FAILED)
		goto fail;
	snprintf(arg[2], sizeof arg[2], "%zu", len);
	p->pid = fork();
	if (p->pid == 0) {
		/* dup() clears close-on-exec. */
		snprintf(arg[0], sizeof arg[0], "%d", dup(pair[1]));
		snprintf(arg[1], sizeof arg[1], "%d", dup(mem_fd));
		execl("/proc/self/exe", "rc-peer", ARG, arg[0], arg[1], arg[2], (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	close(mem_fd);
	p->fd = pair[0];
	if (p->pid > 0 && read(p->fd, &p->info, sizeof p->info) == (ssize_t)sizeof p->info)
		return 0;
	rc_peer_stop(p);
	return -1;
fail:
	perror("rc_peer_start");
	return -1;
}

int
rc_peer_ask(struct rc_client *p, char what, int nr)
{
	struct question q;

	memset(&q, 0, sizeof q);
	q.what = what;
	q.nr = nr;
	q.qp = p->info.qp[nr];
	if (write(p->fd, &q, sizeof q) != (ssize_t)sizeof q ||
	    read(p->fd, &p->info, sizeof p->info) != (ssize_t)sizeof p->info)
		return -1;
	return 0;
}

void
rc_peer_stop(struct rc_client *p)
{
	if (p->pid > 0) {
		close(p->fd);
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
	p->pid = 0;
	if (p->mem && p->mem != MAP_FAILED)
		munmap(p->mem, p->len);
	p->mem = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The server, the fixture and the software NIC of the tests of libgantry; see client_rig.h. */
#include "client_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the server ---- */

static int listener;
char url[64];
_Atomic(serve_fn *) serve;
static _Atomic int requests;
_Atomic bool hold;

bool
header_of(const struct request *rq, const char *name, char *out, size_t cap)
{
	const char *at = strcasestr(rq->head, name);

	if (!at || at == rq->head || at[-1] != '\n' || at[strlen(name)] != ':')
		return false;
	at += strlen(name) + 1;
	at += strspn(at, " ");
	snprintf(out, cap, "%.*s", (int)strcspn(at, "\r\n"), at);
	return true;
}

bool
token_of(const struct request *rq, struct token *t)
{
	char text[128];
	const char *why;

	return (header_of(rq, "x-amz-rdma-token", text, sizeof text) ||
		header_of(rq, "x-scal-rdma", text, sizeof text)) &&
	       token_parse(text, strlen(text), t, &why) == 0;
}

void
answer(int fd, const char *text)
{
	ssize_t n = send(fd, text, strlen(text), MSG_NOSIGNAL);

	(void)n;
}

static bool
read_request(int fd, struct request *rq)
{
	size_t len = 0;
	char *end = NULL, length[32] = "0";

	while (!end) {
		ssize_t n = recv(fd, rq->head + len, sizeof rq->head - 1 - len, 0);

		if (n <= 0)
			return false;
		len += (size_t)n;
		rq->head[len] = 0;
		end = strstr(rq->head, "\r\n\r\n");
	}
	size_t more = len - (size_t)(end + 4 - rq->head);

	sscanf(rq->head, "%15s %255s", rq->method, rq->target);
	header_of(rq, "content-length", length, sizeof length);
	rq->body_len = strtoul(length, NULL, 10);
	rq->body = malloc(rq->body_len + 1);
	memcpy(rq->body, end + 4, more);
	end[2] = 0;
	while (more < rq->body_len) {
		ssize_t n = recv(fd, rq->body + more, rq->body_len - more, 0);

		if (n <= 0)
			return false;
		more += (size_t)n;
	}
	rq->nr = requests++;
	return true;
}

static _Atomic int connections; /* number of threads of connection() */

static void *
connection(void *arg)
{
	int fd = (int)(intptr_t)arg;

	for (;;) {
		struct request rq = { .body = NULL };
		bool good = read_request(fd, &rq);

		while (good && hold)
			usleep(1000);
		if (good)
			serve(fd, &rq);
		free(rq.body);
		if (!good)
			break;
	}
	close(fd);
	connections--;
	return NULL;
}

static void *
accept_loop(void *arg)
{
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		pthread_t t;

		if (fd < 0)
			return NULL;
		connections++;
		if (pthread_create(&t, NULL, connection, (void *)(intptr_t)fd) == 0) {
			pthread_detach(t);
		} else {
			connections--;
			close(fd);
		}
	}
}

static pthread_t accept_thread;

int
rig_start(void **state)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof sa;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&sa, len) < 0 || listen(listener, 64) < 0 ||
	    getsockname(listener, (struct sockaddr *)&sa, &len) < 0)
		return -1;
	snprintf(url, sizeof url, "http://127.0.0.1:%d/bkt/key", ntohs(sa.sin_port));
	return pthread_create(&accept_thread, NULL, accept_loop, NULL) == 0 ? 0 : -1;
}

int
rig_stop(void **state)
{
	shutdown(listener, SHUT_RDWR);
	pthread_join(accept_thread, NULL);
	close(listener);
	/* Every client is closed, so each thread sees the end of its connection. */
	wait_until(!connections)
		usleep(1000);
	return 0;
}

/* ---- a context and a buffer per test ---- */

int
open_with(struct fix *f, unsigned flags, enum gantry_dialect d, unsigned timeout_ms)
{
	struct gantry_options o = {
		.size = sizeof o, .flags = flags, .dialect = d, .config_file = "", .timeout_ms = timeout_ms
	};

	return gantry_open(&o, &f->g);
}

int
setup(void **state)
{
	static struct fix f;

	f = (struct fix){ .res = { .size = sizeof f.res } };
	f.buf = malloc(BUF_LEN);
	for (int i = 0; i < BUF_LEN; i++)
		f.buf[i] = (unsigned char)(i * 7 + i / 256);
	requests = 0;
	hold = false;
	*state = &f;
	return open_with(&f, 0, GANTRY_S3, 60000);
}

int
teardown(void **state)
{
	struct fix *f = *state;

	gantry_close(f->g);
	free(f->buf);
	return 0;
}

/* ---- a server's NIC ---- */

enum ibv_wc_status
write_to(const struct port *p, const struct token *t)
{
	static char byte = 'x';
	struct ibv_cq *cq = ibv_create_cq(p->ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex qa = { .qp_type = IBV_QPT_DRIVER,
					  .send_cq = cq,
					  .recv_cq = cq,
					  .pd = p->pd,
					  .cap = { .max_send_wr = 4, .max_send_sge = 1 },
					  .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					  .send_ops_flags =
						  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI } };
	struct ibv_qp *qp = mlx5dv_create_qp(p->ctx, &qa, &dv);
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024 };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 1, .rnr_retry = 1, .max_rd_atomic = 1
	};
	struct ibv_ah_attr aa = { .is_global = 1,
				  .port_num = 1,
				  .grh = { .sgid_index = p->gid_index, .hop_limit = 4 } };
	struct ibv_mr *mr = ibv_reg_mr(p->pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;

	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), 0);
	assert_int_equal(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_PATH_MTU), 0);
	assert_int_equal(ibv_modify_qp(qp, &rts,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
	memcpy(aa.grh.dgid.raw, t->gid, 16);
	struct ibv_ah *ah = ibv_create_ah(p->pd, &aa);
	struct ibv_qp_ex *qx = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(qx);
	qx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qx, t->rkey, t->addr);
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qx), ah, t->dctn, DEFAULT_DC_KEY);
	ibv_wr_set_sge(qx, mr->lkey, (uintptr_t)&byte, 1);
	assert_int_equal(ibv_wr_complete(qx), 0);
	wait_until(ibv_poll_cq(cq, 1, &wc) != 0)
		usleep(100);
	ibv_destroy_qp(qp);
	ibv_destroy_ah(ah);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	return wc.status;
}

/* ---- the software NIC ---- */

void
start_on_the_nic(char **argv)
{
	char self[512], libs[600], dir[] = "/tmp/gantry-transfer.XXXXXX", *slash = self;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (getenv("GANTRY_TEST_NIC"))
		return;
	self[n < 0 ? 0 : n] = 0;
	/* build/<variant>/unit/client/test_transfer */
	for (int i = 0; i < 3; i++)
		if ((slash = strrchr(self, '/')))
			*slash = 0;
	snprintf(libs, sizeof libs, "%s/softnic", self);
	char probe[640];

	snprintf(probe, sizeof probe, "%s/libibverbs.so.1", libs);
	if (access(probe, F_OK) != 0 || !mkdtemp(dir)) {
		printf("%s is not built\n", probe);
		exit(77);
	}
	setenv("LD_LIBRARY_PATH", libs, 1);
	/* Children that were forked open contexts of their own. */
	if (!getenv("TSAN_OPTIONS"))
		setenv("TSAN_OPTIONS", "die_after_fork=0", 1);
	setenv("SOFTNIC_DIR", dir, 1);
	setenv("SOFTNIC_DEVICES", "2", 1);
	setenv("SOFTNIC_RETRY_US", "20000", 1);
	setenv("GANTRY_TEST_NIC", dir, 1);
	execv("/proc/self/exe", argv);
	exit(1);
}

int
end_on_the_nic(int failed)
{
	const char *dir = getenv("GANTRY_TEST_NIC");
	char path[256];

	snprintf(path, sizeof path, "%s/fabric", dir);
	unlink(path);
	rmdir(dir);
	return failed ? 1 : 0;
}

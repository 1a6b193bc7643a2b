/* SPDX-License-Identifier: Apache-2.0 */
/* See rig.h. */
#include "rig.h"

struct conf conf;
struct stats *stats;

void
make_conf(int cores, int listeners)
{
	memset(&conf, 0, sizeof conf);
	conf.core_nr = cores;
	for (int i = 0; i < cores; i++)
		conf.cores[i] = i;
	conf.memory.buffers_bytes = (uint64_t)cores << 22;
	conf.memory.http_buffers_bytes = (uint64_t)cores << 20;
	conf.limits.connections = 200;
	conf.limits.requests = 64;
	conf.limits.pieces_per_request = 8;
	conf.limits.queue = 64;
	conf.limits.idle_ns = 60 * NS_PER_S;
	conf.limits.head_ns = 2 * NS_PER_S; /* what came is looked at 200 ms later */
	conf.rdma.mode = RDMA_NONE;
	conf.listen_nr = listeners;
	for (int i = 0; i < listeners; i++) {
		struct sockaddr_in *sa = (struct sockaddr_in *)&conf.listen[i].sa;

		*sa = (struct sockaddr_in){ .sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		conf.listen[i].sa_len = sizeof *sa;
		conf.listen[i].address = "127.0.0.1:0";
		conf.listen[i].dialect = i % 2 ? DIALECT_SCALITY : DIALECT_S3;
	}
}

int
try_start(struct cores **ret_cores, const int *fds, char *err, size_t err_len)
{
	static const struct stats_names names;
	struct core_env env = { .conf = &conf, .listen_fds = fds };
	int rc;

	memset(&fake_req_counts, 0, sizeof fake_req_counts);
	assert_int_equal(stats_new(conf.core_nr, &names, &stats), 0);
	env.stats = stats;
	rc = cores_start(&env, ret_cores, err, err_len);
	if (rc < 0)
		stats_free(stats);
	return rc;
}

struct cores *
start(void)
{
	struct cores *cs;
	char err[256] = "";
	int rc = try_start(&cs, NULL, err, sizeof err);

	if (rc < 0)
		fail_msg("%d %s", rc, err);
	return cs;
}

void
finish(struct cores *cs, uint64_t drain_ns)
{
	cores_stop(cs, drain_ns);
	assert_int_equal(fake_req_counts.begun, fake_req_counts.ended);
	assert_int_equal(fake_req_counts.live, 0);
	cores_free(cs);
	stats_free(stats);
}

int
call(struct cores *cs, int listener)
{
	return client_of(cores_listen_port(cs, listener));
}

void
expect_ok(int fd)
{
	struct answer a;

	assert_true(get_answer(fd, &a, false, NULL));
	assert_int_equal(a.status, 200);
}

int
connections(struct cores *cs, int core)
{
	struct core_info info;

	cores_get_info(cs, core, &info);
	return info.connections;
}

int
all_connections(struct cores *cs)
{
	int n = 0;

	for (int i = 0; i < cores_nr(cs); i++)
		n += connections(cs, i);
	return n;
}

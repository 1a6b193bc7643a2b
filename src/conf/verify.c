/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no single key shows: cores and automatic sizes are resolved, then keys are checked against each other
 * and against this machine.  Called by conf_load() when every source was read.
 */
#include "conf/conf_int.h"

#include "base/advice.h"
#include "base/buf.h"
#include "base/path.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CPUS_MAX 4096
#define MIB ((uint64_t)1 << 20)
#define LARGE_PER_CORE 8
#define HTTP_PER_CORE 16

/* ---- cores ---- */

/* CPUs that this process may use, in order. */
static int
usable_cpus(int *cpus, int max)
{
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	size_t bytes = CPU_ALLOC_SIZE(CPUS_MAX);
	int nr = 0;

	if (!set)
		return 0;
	CPU_ZERO_S(bytes, set);
	if (sched_getaffinity(0, bytes, set) == 0) {
		int all = CPU_COUNT_S(bytes, set);

		for (int i = 0; i < CPUS_MAX && nr < max && nr < all; i++) {
			if (CPU_ISSET_S((size_t)i, bytes, set))
				cpus[nr++] = i;
		}
	}
	CPU_FREE(set);
	return nr;
}

static bool
is_in(const int *cpus, int nr, int cpu)
{
	for (int i = 0; i < nr; i++) {
		if (cpus[i] == cpu)
			return true;
	}
	return false;
}

static void
resolve_cores(struct loader *ld)
{
	struct conf *c = ld->conf;
	int cpus[CPUS_MAX];
	int nr = usable_cpus(cpus, CPUS_MAX);

	if (nr == 0) {
		load_fail_key(ld, "cores", "cannot find out which CPUs may be used");
		c->core_nr = 1;
		return;
	}
	c->pin = true;
	if (ld->cores_count == CORES_LIST) {
		for (int i = 0; i < c->core_nr; i++) {
			if (!is_in(cpus, nr, c->cores[i]))
				load_fail_key(ld, "cores",
					      "CPU %d does not exist, or may not be used by this process",
					      c->cores[i]);
		}
		return;
	}
	c->core_nr = ld->cores_count == CORES_AUTO ? nr : ld->cores_count;
	if (c->core_nr > CONF_CORES_MAX)
		c->core_nr = CONF_CORES_MAX;
	/* More threads than CPUs: for tests.  The scheduler places them better than we would. */
	c->pin = c->core_nr <= nr;
	for (int i = 0; i < c->core_nr; i++)
		c->cores[i] = cpus[i % nr];
}

/* ---- memory ---- */

static uint64_t
machine_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

/* Memory for the rest of the process where a control group bounds all of it: code, stacks, requests, what libraries keep. */
#define REST_BYTES (32 * MIB)
#define REST_PER_CORE (8 * MIB)

/* Returns the bytes that this process may use; *ret_group: those that its control group has, 0: that is no less than the machine. */
static uint64_t
usable_bytes(uint64_t cores, uint64_t *ret_group)
{
	uint64_t machine = machine_bytes(), group = cgroup_memory_bytes(""),
		 rest = REST_BYTES + REST_PER_CORE * cores;

	*ret_group = 0;
	if (group == UINT64_MAX || (machine && group >= machine))
		return machine;
	*ret_group = group ? group : 1;
	return group > rest ? group - rest : 1;
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* At least `min` buffers of that class from `share`, of which the pool gives `part` eighths to them, in at
 * most BUF_REGIONS_MAX regions of 1 GiB. */
static void
check_pool(struct loader *ld, const char *key, uint64_t share, uint64_t buf_bytes, uint64_t part,
	   uint64_t min)
{
	uint64_t cores = (uint64_t)ld->conf->core_nr, per_region = ((uint64_t)1 << 30) / buf_bytes;
	uint64_t nr = share * part / 8 / buf_bytes;
	char text[32];

	if (nr < min) {
		uint64_t want = (min * buf_bytes * 8 + part - 1) / part;

		size_format((want + MIB - 1) / MIB * MIB * cores, text, sizeof text);
		load_fail_key(ld, key, "too small for %d cores; at least %s", ld->conf->core_nr, text);
	} else if (nr > per_region * (BUF_REGIONS_MAX - 2)) {
		/* Two are left: one that is not full, and one of the other class. */
		size_format((uint64_t)(BUF_REGIONS_MAX - 2) * cores << 30, text, sizeof text);
		load_fail_key(ld, key, "too large for %d cores; at most %s", ld->conf->core_nr, text);
	}
}

static void
verify_memory(struct loader *ld)
{
	struct conf *c = ld->conf;
	uint64_t cores = (uint64_t)c->core_nr, group, have = usable_bytes(cores, &group), all;
	int before = ld->errors;
	char text[32], want[32], limit[32], remedy[128];

	/* A quarter, and a sixteenth, are less than that on small machines alone; the least is what the pools of the cores need. */
	if (!c->memory.buffers_bytes)
		c->memory.buffers_bytes = smaller(larger(512 * MIB, 16 * MIB * cores),
						  larger(have / 4 / MIB * MIB, 16 * MIB * cores));
	if (!c->memory.http_buffers_bytes)
		c->memory.http_buffers_bytes = smaller(larger(64 * MIB, 4 * MIB * cores),
						       larger(have / 16 / MIB * MIB, 4 * MIB * cores));
	if (!c->memory.index_bytes)
		c->memory.index_bytes = larger(64 * MIB, have / 8 / MIB * MIB);
	if (!c->memory.replay_bytes)
		c->memory.replay_bytes = smaller(larger(16 * MIB, have / 256 / MIB * MIB), 4096 * MIB);
	check_pool(ld, "memory.buffers", c->memory.buffers_bytes / cores, BUF_LARGE_BYTES + BUF_SLACK_BYTES,
		   7, LARGE_PER_CORE);
	check_pool(ld, "memory.http_buffers", c->memory.http_buffers_bytes / cores,
		   BUF_SMALL_BYTES + BUF_SLACK_BYTES, 8, HTTP_PER_CORE);
	all = c->memory.buffers_bytes + c->memory.http_buffers_bytes + c->memory.index_bytes;
	if (c->auth.replay != REPLAY_OFF)
		all += c->memory.replay_bytes;
	if (have && all > have && ld->errors == before) {
		const char *most =
			c->memory.index_bytes > c->memory.buffers_bytes ? "memory.index" : "memory.buffers";

		size_format((group ? group : have) / MIB * MIB, text, sizeof text);
		size_format((all + (group ? group - have : 0) + MIB - 1) / MIB * MIB, want, sizeof want);
		if (group) {
			uint64_t need = all + group - have;

			/* Automatic sizes take less than half of what the limit grows by. */
			size_format((need + (need - group) + MIB - 1) / MIB * MIB, limit, sizeof limit);
			advice_first(remedy, sizeof remedy, ADVICE_GROUP_SMALL,
				     &(struct advice_values){ .size = limit });
		}
		if (group)
			load_fail_key(ld, most,
				      "buffers, http_buffers, index, replay and the rest of the process need "
				      "%s, and the control "
				      "group (container, MemoryMax=) allows %s: %s",
				      want, text, remedy);
		else
			load_fail_key(ld, most,
				      "buffers, http_buffers, index and replay are %s, and do not fit into "
				      "this machine's %s",
				      want, text);
	}
}

/* May this process lock as much as it likes?  (CAP_IPC_LOCK, bit 14 of the effective set.) */
static bool
may_lock_all(void)
{
	unsigned long long caps = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	}
	if (f)
		fclose(f);
	return caps >> 14 & 1;
}

/* What RDMA devices reach has to be locked.  With `auto` there may be none, and where there is one starting
 * says the same. */
static void
verify_memlock(struct loader *ld)
{
	const struct conf *c = ld->conf;
	char have[32], want[32];
	struct rlimit l;

	if (!ld->starts || c->rdma.mode != RDMA_LIST || getrlimit(RLIMIT_MEMLOCK, &l) < 0 ||
	    l.rlim_max == RLIM_INFINITY || l.rlim_max >= c->memory.buffers_bytes || may_lock_all())
		return;
	size_format(l.rlim_max, have, sizeof have);
	size_format(c->memory.buffers_bytes, want, sizeof want);
	load_fail_key(ld, "memory.buffers",
		      "%s have to be locked for rdma.devices, and this process may lock %s (LimitMEMLOCK=, "
		      "ulimit -l)",
		      want, have);
}

/* ---- listeners ---- */

struct endpoint {
	struct in6_addr addr; /* IPv4 mapped */
	bool any, v4, v6;
	uint16_t port;
};

static struct endpoint
endpoint_of(const char *text, const struct sockaddr_storage *sa)
{
	struct endpoint e = { 0 };

	if (sa->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

		e.addr.s6_addr[10] = e.addr.s6_addr[11] = 0xff;
		memcpy(e.addr.s6_addr + 12, &in->sin_addr, 4);
		e.any = in->sin_addr.s_addr == 0;
		e.port = ntohs(in->sin_port);
		e.v4 = true;
	} else {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

		e.addr = in6->sin6_addr;
		e.any = IN6_IS_ADDR_UNSPECIFIED(&e.addr);
		e.port = ntohs(in6->sin6_port);
		e.v4 = IN6_IS_ADDR_V4MAPPED(&e.addr);
	}
	/* "*" takes both families through one socket, [::] takes IPv6 alone. */
	e.v6 = !e.v4;
	if (text[0] == '*')
		e.v4 = e.v6 = true;
	return e;
}

static bool
clash(const char *a_text, const struct sockaddr_storage *a, const char *b_text,
      const struct sockaddr_storage *b)
{
	struct endpoint x = endpoint_of(a_text, a), y = endpoint_of(b_text, b);

	if (x.port != y.port || x.port == 0)
		return false;
	if (x.any || y.any)
		return (x.v4 && y.v4) || (x.v6 && y.v6);
	return memcmp(&x.addr, &y.addr, sizeof x.addr) == 0;
}

static bool
is_bucket(const char *name)
{
	size_t len = strlen(name);

	return len >= 3 && len <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == len &&
	       strstr(name, "..") == NULL;
}

/* Checks that a listener has both a certificate and a key, or neither.  of: the beginning of the names of its keys. */
static void
verify_pair(struct loader *ld, const char *of, const char *certificate, const char *key)
{
	char path[96];

	if (!certificate == !key)
		return;
	snprintf(path, sizeof path, "%s.%s", of, key ? "tls_key" : "tls_certificate");
	load_fail_key(ld, path, "goes with %s, which is missing", key ? "tls_certificate" : "tls_key");
}

static void
verify_admin(struct loader *ld)
{
	struct conf *c = ld->conf;

	verify_pair(ld, "admin", c->admin.tls_certificate, c->admin.tls_key);
	if (c->admin.tls_certificate && !c->admin.address)
		load_fail_key(ld, "admin.tls_certificate",
			      "goes with admin.address, which is none: the socket has no TLS");
	if (c->admin.socket && strlen(c->admin.socket) >= sizeof((struct sockaddr_un *)0)->sun_path)
		load_fail_key(ld, "admin.socket", "too long for the path of a socket");
}

static void
verify_listeners(struct loader *ld)
{
	struct conf *c = ld->conf;
	char path[64];

	for (int i = 0; i < c->listen_nr; i++) {
		const struct conf_listen *l = &c->listen[i];

		for (int j = 0; j < i; j++) {
			snprintf(path, sizeof path, "listen[%d].address", i);
			if (clash(l->address, &l->sa, c->listen[j].address, &c->listen[j].sa))
				load_fail_key(ld, path, "%s clashes with listen[%d], %s", l->address, j,
					      c->listen[j].address);
		}
		if (c->admin.address && clash(l->address, &l->sa, c->admin.address, &c->admin.sa)) {
			snprintf(path, sizeof path, "listen[%d].address", i);
			load_fail_key(ld, path, "%s clashes with admin.address, %s", l->address,
				      c->admin.address);
		}
		snprintf(path, sizeof path, "listen[%d]", i);
		verify_pair(ld, path, l->tls_certificate, l->tls_key);
		snprintf(path, sizeof path, "listen[%d].%s", i,
			 l->dialect == DIALECT_S3 ? "anonymous" : "bucket");
		if (l->dialect == DIALECT_S3 && !l->anonymous && !c->auth.credentials_file)
			load_fail_key(
				ld, path,
				"nobody could use this listener: either there are access keys "
				"(auth.credentials_file), or `anonymous: true` serves unsigned requests "
				"(anybody who can reach %s may read and write)",
				l->address);
		if (l->dialect == DIALECT_SCALITY && !is_bucket(l->bucket))
			load_fail_key(ld, path,
				      "expected a bucket's name (3 to 63 of a-z 0-9 . - _, no two dots "
				      "together), not \"%.100s\"",
				      l->bucket);
	}
	verify_admin(ld);
}

/* ---- disks ---- */

/* Disks and a cluster exclude each other. */
static void
verify_backend(struct loader *ld)
{
	struct conf *c = ld->conf;

	if (c->store.backend == BACKEND_RADOS && c->store.disk_nr)
		load_fail_key(ld, "store.disks", "store.backend is rados, which has no disks");
	if (c->store.backend == BACKEND_RADOS && c->store.default_copies > 1)
		load_fail_key(ld, "store.default_copies",
			      "is %d, and store.backend is rados: its pools make the copies",
			      c->store.default_copies);
	if (c->rados.object_bytes % MIB)
		load_fail_key(ld, "rados.object_size", "must be a multiple of 1MiB");
}

static void
verify_disks(struct loader *ld)
{
	struct conf *c = ld->conf;
	char path[64];
	int nr;

	for (int i = 0; i < c->store.disk_nr; i++) {
		snprintf(path, sizeof path, "store.disks[%d].path", i);
		for (int j = 0; j < i; j++) {
			const char *one = c->store.disks[i].path, *other = c->store.disks[j].path;

			if (strcmp(one, other) == 0)
				load_fail_key(ld, path,
					      "%.200s is store.disks[%d] already: take one of the two off",
					      one, j);
			else if (path_leads_same(one, other))
				load_fail_key(ld, path,
					      "is the same disk as store.disks[%d] (%.200s is %.200s): take "
					      "one of the two off",
					      j, one, other);
		}
	}
	nr = c->store.disk_nr + c->store.accept_missing_nr;
	if (nr == 1 && c->store.default_copies > 1)
		load_fail_key(ld, "store.default_copies",
			      "is %d, and there is one disk: copies are on disks of their own",
			      c->store.default_copies);
	if (c->store.disk_nr && c->store.min_disks > nr)
		load_fail_key(ld, "store.min_disks", "is %d, and there are %d disks: it would never be ready",
			      c->store.min_disks, nr);
}

static bool
is_listener(const struct conf *c, const char *address)
{
	for (int i = 0; i < c->listen_nr; i++) {
		if (strcmp(c->listen[i].address, address) == 0)
			return c->listen[i].dialect == DIALECT_S3;
	}
	return false;
}

/* A client that takes any 2xx for success loses data by such a rule: none may hold for everybody. */
static void
verify_decline_rules(struct loader *ld)
{
	const struct conf *c = ld->conf;
	char path[64];

	for (int i = 0; i < c->rdma.decline_2xx_nr; i++) {
		const struct conf_decline_rule *r = &c->rdma.decline_2xx[i];

		snprintf(path, sizeof path, "rdma.decline_2xx[%d].header", i);
		if (!r->access_key && !r->listen && !r->user_agent)
			load_fail_key(
				ld, path,
				"a rule for everybody; it needs an access_key, a listen or a user_agent");
		snprintf(path, sizeof path, "rdma.decline_2xx[%d].listen", i);
		if (r->listen && c->listen_nr > 0 && !is_listener(c, r->listen))
			load_fail_key(ld, path, "there is no s3 listener with the address %.100s", r->listen);
	}
}

static void
verify_region(struct loader *ld)
{
	const char *region = ld->conf->auth.region;
	size_t len = region ? strlen(region) : 0;

	if (len < 1 || len > 63 ||
	    strspn(region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != len)
		load_fail_key(ld, "auth.region",
			      "expected 1 to 63 of letters, digits and - _ ., not \"%.100s\"",
			      region ? region : "");
}

/* The directory in which the daemon was started is not where an operator would look. */
static void
verify_audit(struct loader *ld)
{
	const struct conf *c = ld->conf;
	const char *file = c->audit.file;
	const char *const others[] = { c->auth.credentials_file, c->admin.token_file,
				       c->admin.tls_certificate, c->admin.tls_key };

	if (file && file[0] != '/' && strcmp(file, "auto") != 0)
		load_fail_key(ld, "audit.file", "expected a path from / on, auto, or none, not \"%.100s\"",
			      file);
	/* The stream appends to its file, and renames it. */
	for (size_t i = 0; file && i < sizeof others / sizeof *others; i++) {
		if (others[i] && strcmp(file, others[i]) == 0)
			load_fail_key(ld, "audit.file", "%.100s is the file of another key", file);
	}
}

void
verify(struct loader *ld, bool partial)
{
	struct conf *c = ld->conf;
	int before = ld->errors;
	bool no_disk;

	resolve_cores(ld);
	verify_memory(ld);
	verify_memlock(ld);
	verify_listeners(ld);
	verify_disks(ld);
	verify_backend(ld);
	verify_decline_rules(ld);
	verify_region(ld);
	verify_audit(ld);
	/* A list that was refused is not a list that is missing. */
	if (partial || before)
		return;
	no_disk = c->store.backend == BACKEND_DISKS && c->store.disk_nr == 0;
	if (ld->missing_file && (c->listen_nr == 0 || no_disk)) {
		ld->source = ld->missing_file;
		load_fail(
			ld, &(struct node){ 0 }, NULL,
			"it is not there, and what it must say is not said elsewhere; -c names another file");
		ld->source = NULL;
	}
	if (c->listen_nr == 0)
		load_fail_key(ld, "listen",
			      "missing; at least one listener ({ address: ..., dialect: ... })");
	if (no_disk)
		load_fail_key(ld, "store.disks", "missing; at least one disk ({ path: ... })");
}

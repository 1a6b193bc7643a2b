/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the admin thread asks about the rest of the daemon: reasons, metrics, JSON.  Everything here runs on
 * the admin thread, waits for no core (cores_dump() at most 100 ms) and may be called in every phase: what is
 * not there yet is left out.
 */
#include "main/pages.h"

#include "admin/admin.h"
#include "auth/auth.h"
#include "base/clock.h"
#include "rdma/rc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
count_cores(void *cookie)
{
	return core_nr(cookie);
}

static void
core(void *cookie, int i, struct admin_core *ret_core)
{
	struct core_info info;

	cores_get_info(atomic_load(&((struct daemon *)cookie)->cores), i, &info);
	ret_core->asleep = info.asleep;
	ret_core->turned_ago_ns = info.turned_ago_ns;
}

/* ---- auth.replay ---- */

static const char *const replay_text[] = {
	[REPLAY_OFF] = "off", [REPLAY_PEER] = "peer", [REPLAY_ONCE] = "once", [REPLAY_REJECT] = "reject"
};

static void
replay_state(struct daemon *d, FILE *out)
{
	const struct conf *c = daemon_conf(d);
	uint64_t window_s = c->auth.clock_skew_ns / NS_PER_S;
	struct auth_replay_info i;

	fprintf(out, "{\"mode\":\"%s\"", replay_text[c->auth.replay]);
	daemon_conf_put(c);
	if (d->replay) {
		auth_replay_get_info(d->replay, &i);
		fprintf(out,
			",\"signatures\":%llu,\"window_seconds\":%llu,\"requests_per_second\":%llu,"
			"\"forgotten\":%llu,\"refused\":%llu,\"refused_by_key\":{",
			(unsigned long long)i.entries, (unsigned long long)window_s,
			(unsigned long long)(AUTH_REPLAY_USABLE(i.entries) / window_s),
			(unsigned long long)i.forgotten, (unsigned long long)i.refused);
		for (int k = 0; k < i.key_nr; k++) {
			fputs(k ? "," : "", out);
			json_string(out, i.by_key[k].access_key);
			fprintf(out, ":%llu", (unsigned long long)i.by_key[k].refused);
		}
		putc('}', out);
	}
	putc('}', out);
}

/* ---- JSON ---- */

static const char *const rail_state_text[RAIL_STATE_NR] = { "up", "down", "lost" };

static void
rails(void *cookie, FILE *out)
{
	struct daemon *d = cookie;

	putc('[', out);
	for (int i = 0; i < rail_nr(d); i++) {
		struct rdma_rail *rail = rdma_rail(d->rdma, i);
		const struct rdma_rail_stats *st = rdma_rail_stats(rail);
		struct rdma_rail_info info;
		char gid[INET6_ADDRSTRLEN];

		rdma_rail_get_info(rail, &info);
		inet_ntop(AF_INET6, info.gid, gid, sizeof gid);
		fprintf(out, "%s{\"device\":", i ? ",\n" : "");
		json_string(out, info.device);
		fprintf(out, ",\"port\":%d,\"firmware\":", info.port);
		json_string(out, info.fw_ver);
		fprintf(out, ",\"transports\":");
		json_string(out, info.transports);
		fprintf(out,
			",\"state\":\"%s\",\"link\":\"%s\",\"gid\":\"%s\",\"lid\":%u,\"mtu\":%d,\"max_rd_"
			"atomic\":%d",
			rail_state_text[info.state], info.is_ethernet ? "ethernet" : "infiniband", gid,
			info.lid, info.active_mtu, info.max_rd_atomic);
		fprintf(out, ",\"traffic_class\":%d,\"relaxed_ordering\":%s,\"path_leases\":[",
			info.traffic_class, info.relaxed_ordering ? "true" : "false");
		for (int p = 0; p < info.paths; p++)
			fprintf(out, "%s%llu", p ? "," : "",
				(unsigned long long)atomic_load(&st->ah_hits[p]));
		putc(']', out);
		fprintf(out, ",\"dci\":{\"all\":%d,\"free\":%d,\"leased\":%d,\"recovering\":%d}",
			atomic_load(&st->eps.all), atomic_load(&st->eps.free), atomic_load(&st->eps.leased),
			atomic_load(&st->eps.recovering));
		fprintf(out, ",\"rc_connections\":%d", atomic_load(&st->rc_open));
		fprintf(out, ",\"rc\":{\"all\":%d,\"free\":%d,\"leased\":%d,\"recovering\":%d}",
			atomic_load(&st->conns.all), atomic_load(&st->conns.free),
			atomic_load(&st->conns.leased), atomic_load(&st->conns.recovering));
		fprintf(out, ",\"reopens\":%llu,\"read_bytes\":%llu,\"written_bytes\":%llu,\"completions\":{",
			(unsigned long long)atomic_load(&st->reopens),
			(unsigned long long)atomic_load(&st->read_bytes),
			(unsigned long long)atomic_load(&st->written_bytes));
		for (int s = 0; s < WCS_NR; s++) {
			fputs(s ? "," : "", out);
			json_string(out, rdma_status_name[s]);
			fprintf(out, ":%llu", (unsigned long long)atomic_load(&st->status[s]));
		}
		fputs("}}", out);
	}
	putc(']', out);
}

/* Writes the counters of RC connections; null: RC is switched off. */
static void
rc_state(struct daemon *d, FILE *out)
{
	struct rdma_rc_stats *st = rdma_rc_stats(d->rdma);

	if (!st) {
		fputs("null", out);
		return;
	}
	fprintf(out, "{\"waiting\":%d,\"open\":%d,\"leased\":%d", atomic_load(&st->waiting),
		atomic_load(&st->open), atomic_load(&st->leased));
	fprintf(out, ",\"made\":%llu,\"failed\":%llu,\"busy\":%llu,\"unknown\":%llu,\"refused\":{",
		(unsigned long long)atomic_load(&st->made), (unsigned long long)atomic_load(&st->failed),
		(unsigned long long)atomic_load(&st->busy), (unsigned long long)atomic_load(&st->unknown));
	for (int l = 0; l < RDMA_RC_LIMIT_NR; l++)
		fprintf(out, "%s\"%s\":%llu", l ? "," : "", rdma_rc_limit_name[l],
			(unsigned long long)atomic_load(&st->refused_by[l]));
	fputs("}}", out);
}

static int
reach(void *cookie, const char *address, FILE *out)
{
	struct daemon *d = cookie;
	const struct conf *c = daemon_conf(d);
	struct rdma_reach reach;
	int r = d->rdma ? rdma_reach(d->rdma, &c->rdma, address, &reach) : -EINVAL;

	daemon_conf_put(c);
	if (r < 0)
		return 404;
	fprintf(out, "{\"address\":");
	json_string(out, address);
	fprintf(out, ",\"allowed\":%s,\"rail\":", reach.allowed ? "true" : "false");
	if (reach.rail >= 0)
		fprintf(out, "%d", reach.rail);
	else
		fputs("null", out);
	fputs(",\"text\":", out);
	json_string(out, reach.text);
	putc('}', out);
	return 200;
}

static void
quotas(void *cookie, FILE *out)
{
	struct daemon *d = cookie;
	struct store *st = atomic_load(&d->store);
	struct store_quota_info *list = NULL;
	int nr = st ? store_list_quotas(st, &list) : 0;

	putc('[', out);
	for (int i = 0; i < nr; i++) {
		fputs(i ? ",\n" : "", out);
		control_quota(&list[i], NULL, out);
	}
	putc(']', out);
	free(list);
}

static void
disks(void *cookie, FILE *out)
{
	struct daemon *d = cookie;

	putc('[', out);
	for (int i = 0; i < unit_nr(d); i++) {
		struct store_unit_info info;
		char waits[80] = "";
		bool is_pool = strcmp(store_name(atomic_load(&d->store)), "rados") == 0;

		store_unit_info(atomic_load(&d->store), i, &info);
		if (!store_unit_serves(info.state) || !health_waits(&info, is_pool, waits, sizeof waits))
			waits[0] = 0;
		fputs(i ? ",\n{\"disk\":" : "{\"disk\":", out);
		json_string(out, info.label);
		fputs(",\"path\":", out);
		json_string(out, info.name[0] ? info.name : NULL);
		fputs(",\"uuid\":", out);
		json_string(out, info.uuid && info.uuid[0] ? info.uuid : NULL);
		fprintf(out, ",\"state\":\"%s\",\"reason\":", unit_state_text[info.state]);
		json_string(out, info.reason[0] ? info.reason : waits[0] ? waits : NULL);
		fputs(",\"move\":", out);
		json_string(out, info.move);
		fprintf(out,
			",\"size_bytes\":%llu,\"free_bytes\":%llu,\"reserved_bytes\":%llu,\"flushes\":%llu,"
			"\"errors\":%llu",
			(unsigned long long)info.size_bytes, (unsigned long long)info.free_bytes,
			(unsigned long long)info.own_bytes, (unsigned long long)info.flushes,
			(unsigned long long)info.errors);
		for (int n = 0; n < info.number_nr; n++) {
			if (!info.number[n].is_hidden)
				fprintf(out, ",\"%s\":%llu", info.number[n].name,
					(unsigned long long)info.number[n].value);
		}
		putc('}', out);
	}
	putc(']', out);
}

struct lines {
	FILE *out;
	int nr;
};

/* "id=... step=... age_ms=3 gone" as members: numbers as numbers (but the first, an id may look like one), a
 * word alone as true. */
static void
add_members(FILE *out, const char *text, bool is_id)
{
	const char *p = text;

	while (*p) {
		size_t len = strcspn(p, " "), name = strcspn(p, "= ");
		char value[256];

		snprintf(value, sizeof value, "%.*s", (int)name, p);
		fputs(p == text ? "" : ",", out);
		json_string(out, value);
		putc(':', out);
		if (name >= len) {
			fputs("true", out);
		} else {
			snprintf(value, sizeof value, "%.*s", (int)(len - name - 1), p + name + 1);
			if (!(is_id && p == text) && *value && strspn(value, "0123456789") == strlen(value))
				fputs(value, out);
			else
				json_string(out, value);
		}
		p += len;
		p += strspn(p, " ");
	}
}

/* What does not begin with an id is a remark about a core. */
static void
add_line(void *cookie, const char *text)
{
	struct lines *l = cookie;

	fputs(l->nr++ ? ",\n{" : "{", l->out);
	if (strncmp(text, "id=", 3) == 0) {
		add_members(l->out, text, true);
	} else {
		fputs("\"note\":", l->out);
		json_string(l->out, text);
	}
	putc('}', l->out);
}

/* The request's line, and its steps after it. */
static void
add_step(void *cookie, const char *text)
{
	struct lines *l = cookie;

	if (l->nr++ == 0) {
		add_members(l->out, text, true);
		fputs(",\"steps\":[", l->out);
		return;
	}
	fputs(l->nr > 2 ? ",\n{" : "\n{", l->out);
	add_members(l->out, text, false);
	putc('}', l->out);
}

static int
request(void *cookie, const char *id, FILE *out)
{
	struct cores *cores = atomic_load(&((struct daemon *)cookie)->cores);
	struct lines l = { .out = out };
	int r;

	putc('{', out);
	r = cores ? cores_show(cores, id, add_step, &l) : -ENOENT;
	fputs("]}", out);
	return r == 0 ? 200 : r == -ENOENT ? 404 : 503;
}

static void
requests(void *cookie, FILE *out)
{
	struct cores *cores = atomic_load(&((struct daemon *)cookie)->cores);
	struct lines l = { .out = out };

	putc('[', out);
	if (cores)
		cores_dump(cores, add_line, &l);
	putc(']', out);
}

static void
listeners(struct daemon *d, FILE *out)
{
	struct cores *cores = atomic_load(&d->cores);

	putc('[', out);
	for (int i = 0; cores && i < d->conf->listen_nr; i++) {
		const struct conf_listen *l = &d->conf->listen[i];
		char text[64];

		daemon_listen_text(l, cores_listen_port(cores, i), text, sizeof text);
		fprintf(out, "%s{\"address\":\"%s\",\"dialect\":\"%s\",\"anonymous\":%s", i ? "," : "", text,
			l->dialect == DIALECT_S3 ? "s3" : "scality",
			l->anonymous || l->dialect == DIALECT_SCALITY ? "true" : "false");
		certs_show(d, i, out);
		putc('}', out);
	}
	putc(']', out);
}

static void
admin_listener(struct daemon *d, FILE *out)
{
	struct conf_listen l = { .sa = d->conf->admin.sa };
	const struct conf *c = daemon_conf(d);
	char text[64];

	fputs(",\n\"admin\":{\"address\":", out);
	if (d->conf->admin.address && d->admin) {
		daemon_listen_text(&l, admin_port(d->admin), text, sizeof text);
		json_string(out, text);
	} else {
		fputs("null", out);
	}
	fputs(",\"socket\":", out);
	json_string(out, d->conf->admin.socket);
	fprintf(out, ",\"pages_need_token\":%s",
		c->admin.token_file && c->admin.address && !conf_is_loopback(&c->admin.sa) ? "true"
											   : "false");
	daemon_conf_put(c);
	certs_show(d, CERT_OF_ADMIN, out);
	putc('}', out);
}

static void
core_list(struct daemon *d, struct totals *t, FILE *out)
{
	putc('[', out);
	for (int i = 0; i < core_nr(d); i++) {
		struct core_info info;

		cores_get_info(atomic_load(&d->cores), i, &info);
		totals_add(t, &info);
		fprintf(out,
			"%s{\"core\":%d,\"cpu\":%d,\"io\":\"%s\",\"buffers_registered\":%s,"
			"\"asleep\":%s,\"turned_ago_seconds\":%.3f,\"requests\":%d,\"connections\":%d,"
			"\"buffers\":{\"small\":[%d,%d,%d],\"large\":[%d,%d,%d]}}",
			i ? ",\n" : "", i, info.cpu, info.on_threads ? "threads" : "io_uring",
			info.unregistered ? "false" : "true", info.asleep ? "true" : "false",
			(double)info.turned_ago_ns / 1e9, info.requests, info.connections, info.bufs_total[0],
			info.bufs_avail[0], info.bufs_low[0], info.bufs_total[1], info.bufs_avail[1],
			info.bufs_low[1]);
	}
	putc(']', out);
}

static void
status(void *cookie, FILE *out)
{
	static const char *const mode_text[] = {
		[RDMA_AUTO] = "auto", [RDMA_LIST] = "list", [RDMA_NONE] = "none"
	};
	struct daemon *d = cookie;
	const struct store *store = atomic_load(&d->store);
	unsigned long long objects = 0, size = 0, available = 0;
	struct totals t = { 0 };
	int up = 0, nr = 0, failed = 0, missing = 0;

	for (int i = 0; i < rail_nr(d); i++) {
		struct rdma_rail_info info;

		rdma_rail_get_info(rdma_rail(d->rdma, i), &info);
		up += info.state == RAIL_UP && info.serves;
	}
	for (int i = 0; i < unit_nr(d); i++) {
		struct store_unit_info info;

		store_unit_info(atomic_load(&d->store), i, &info);
		/* One that was drained has left the store: its room is nobody's. */
		if (info.state == UNIT_DRAINED)
			continue;
		nr++;
		objects += store_unit_number(&info, "objects");
		size += info.size_bytes;
		available += info.free_bytes;
		failed += info.state == UNIT_FAILED;
		missing += info.state == UNIT_MISSING;
	}
	fprintf(out,
		"{\"version\":\"%s\",\"phase\":\"%s\",\"pid\":%d,\"uptime_seconds\":%.3f,\n\"listeners\":",
		GANTRY_VERSION, phase_name[atomic_load(&d->phase)], (int)getpid(),
		(double)(clock_ns() - d->started_ns) / 1e9);
	listeners(d, out);
	seen_status(d, out);
	admin_listener(d, out);
	fprintf(out, ",\n\"rdma\":{\"devices\":\"%s\",\"rails\":%d,\"rails_up\":%d,\"rc\":",
		mode_text[d->conf->rdma.mode], rail_nr(d), up);
	rc_state(d, out);
	fputs("},\n", out);
	fprintf(out,
		"\"store\":{\"backend\":\"%s\",\"disks\":%d,\"disks_failed\":%d,\"disks_missing\":%d,"
		"\"objects\":%llu,\"size_"
		"bytes\":%llu,\"free_"
		"bytes\":%llu",
		store ? store_name(store) : "", nr, failed, missing, objects, size, available);
	fputs(",\"id\":", out);
	seen_store_id(d, out);
	if (store)
		copies_show(store, out);
	fputs(",\"record\":", out);
	remember_show(d->remember, d->conf, out);
	fputs("},\n", out);
	fputs("\"configuration\":", out);
	daemon_reload_show(d, out);
	fputs(",\n\"scrub\":", out);
	pages_walk(d, WALK_SCRUB, out);
	fprintf(out, ",\n\"access_keys\":%d,\"replay\":", atomic_load(&d->key_nr));
	replay_state(d, out);
	fputs(",\n\"cores\":", out);
	core_list(d, &t, out);
	fprintf(out, ",\n\"requests\":%d,\"connections\":%d,\n", t.requests, t.connections);
	fprintf(out,
		"\"buffers\":{\"small\":{\"all\":%d,\"free\":%d},\"large\":{\"all\":%d,\"free\":%d},\"http\":"
		"{\"all\":%d,\"free\":%d}}}",
		t.bufs_total[0], t.bufs_avail[0], t.bufs_total[1], t.bufs_avail[1], t.http_total,
		t.http_avail);
}

static void
config(void *cookie, FILE *out)
{
	const struct conf *c = daemon_conf(cookie);

	conf_print_json(c, out);
	daemon_conf_put(c);
}

void
pages_walk(struct daemon *d, enum walk_id id, FILE *out)
{
	struct cores *cores = atomic_load(&d->cores);

	walks_show(cores ? cores_walks(cores) : NULL, id, atomic_load(&d->store), out);
}

void
pages_env(struct daemon *d, struct admin_env *ret_env)
{
	*ret_env = (struct admin_env){ .cookie = d,
				       .config = config,
				       .stats = d->stats,
				       .core_nr = count_cores,
				       .core = core,
				       .ready = health_ready,
				       .health = health_reasons,
				       .metrics = pages_metrics,
				       .status = status,
				       .rails = rails,
				       .quotas = quotas,
				       .buckets = seen_buckets,
				       .reach = reach,
				       .disks = disks,
				       .requests = requests,
				       .request = request };
	control_env(ret_env);
}

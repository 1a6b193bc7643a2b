/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rawclient's side of the fabric: a DCT per NIC, windows with guards, tokens true and false
 * (protocol.md 2.1, 2.2).
 */
#include "raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD_SEED 0x6775617264u

static struct nic *nics;
static struct window *windows;
static struct token_text *tokens;

static struct ibv_context *
open_device(const char *want)
{
	int nr = 0;
	struct ibv_device **list = ibv_get_device_list(&nr);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && i < nr && !ctx; i++)
		if (!want || !strcmp(ibv_get_device_name(list[i]), want))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!ctx)
		raw_die(EXIT_NO_NIC, "no RDMA device%s%s: run me under scripts/with-softnic", want ? " " : "",
			want ? want : "");
	return ctx;
}

/* RoCE v2 with an IPv4-mapped address first, then any RoCE v2, then index 0. */
static int
choose_gid(struct ibv_context *ctx)
{
	struct ibv_gid_entry e[64];
	ssize_t nr = ibv_query_gid_table(ctx, e, 64, 0);
	int any = -1;

	for (ssize_t i = 0; i < nr; i++) {
		if (e[i].gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (!memcmp(e[i].gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12))
			return (int)e[i].gid_index;
		if (any < 0)
			any = (int)e[i].gid_index;
	}
	return any < 0 ? 0 : any;
}

static void
create_dct(struct nic *n, const struct ibv_port_attr *port, int gid_index)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 1, .max_sge = 1 } };

	n->cq = ibv_create_cq(n->ctx, 16, NULL, NULL, 0);
	n->srq = ibv_create_srq(n->pd, &sa);
	if (!n->cq || !n->srq)
		raw_die(EXIT_NO_NIC, "CQ or SRQ: %s", strerror(errno));
	n->gid_index = gid_index;
	if (!mlx5dv_is_supported(n->ctx->device))
		return; /* it has no DC: RC alone */
	struct ibv_qp_init_attr_ex qa = { .send_cq = n->cq,
					  .recv_cq = n->cq,
					  .srq = n->srq,
					  .pd = n->pd,
					  .qp_type = IBV_QPT_DRIVER,
					  .comp_mask = IBV_QP_INIT_ATTR_PD };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT,
							    .dct_access_key = n->dc_key } };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = port->active_mtu,
				   .min_rnr_timer = 12,
				   .ah_attr = {
					   .is_global = 1,
					   .port_num = 1,
					   .grh = { .hop_limit = 64, .sgid_index = (uint8_t)gid_index } } };

	n->dct = mlx5dv_create_qp(n->ctx, &qa, &dv);
	if (!n->dct)
		raw_die(EXIT_NO_NIC, "DCT: %s", strerror(errno));
	int r = ibv_modify_qp(n->dct, &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (!r)
		r = ibv_modify_qp(n->dct, &rtr,
				  IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER);
	if (r)
		raw_die(EXIT_NO_NIC, "DCT state: %s", strerror(r));
	n->dctn = n->dct->qp_num;
}

struct nic *
nic_open(const char *name, const char *device, uint64_t dc_key, int gid_index)
{
	struct nic *n = calloc(1, sizeof *n);
	struct ibv_port_attr port;
	union ibv_gid gid;

	snprintf(n->name, sizeof n->name, "%s", name);
	n->dc_key = dc_key;
	n->ctx = open_device(device);
	if (ibv_query_port(n->ctx, 1, &port) != 0)
		raw_die(EXIT_NO_NIC, "port 1: %s", strerror(errno));
	n->lid = port.lid;
	n->ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	if (gid_index < 0)
		gid_index = choose_gid(n->ctx);
	if (ibv_query_gid(n->ctx, 1, gid_index, &gid) != 0)
		raw_die(EXIT_NO_NIC, "GID %d: %s", gid_index, strerror(errno));
	memcpy(n->gid, gid.raw, 16);
	n->pd = ibv_alloc_pd(n->ctx);
	if (!n->pd)
		raw_die(EXIT_NO_NIC, "PD: %s", strerror(errno));
	create_dct(n, &port, gid_index);
	n->next = nics;
	nics = n;
	return n;
}

struct nic *
nic_find(const char *name, bool may_open)
{
	for (struct nic *n = nics; n; n = n->next)
		if (!strcmp(n->name, name))
			return n;
	if (!may_open)
		raw_die(EXIT_SCRIPT, "no nic \"%s\"", name);
	return nic_open(name, getenv("RAW_DEVICE"), 0xffeeddcc, -1);
}

void
nic_destroy_dct(struct nic *n)
{
	rc_destroy_all(n);
	if (n->dct && ibv_destroy_qp(n->dct) != 0)
		raw_die(EXIT_FAILED, "destroying the DCT: %s", strerror(errno));
	n->dct = NULL;
}

/* ---- windows ---- */

struct window *
window_first(void)
{
	return windows;
}

struct window *
window_find(const char *name)
{
	for (struct window *w = windows; w; w = w->next)
		if (!strcmp(w->name, name))
			return w;
	return NULL;
}

void
window_refill(struct window *w, struct fill fill)
{
	w->fill = fill;
	fill_bytes(&fill, 0, w->mem, w->len);
}

struct window *
window_new(const char *name, struct nic *n, size_t len, struct fill fill, size_t guard, size_t shift,
	   int access, bool exact)
{
	static const struct fill g = { .kind = FILL_PATTERN, .seed = GUARD_SEED };
	struct window *w = calloc(1, sizeof *w);

	if (window_find(name))
		raw_die(EXIT_SCRIPT, "window \"%s\" exists", name);
	snprintf(w->name, sizeof w->name, "%s", name);
	w->nic = n;
	w->len = len;
	w->guard = guard;
	w->map_len = guard + shift + len + guard;
	if (!w->map_len)
		w->map_len = 1;
	w->map = mmap(NULL, w->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->map == MAP_FAILED)
		raw_die(EXIT_FAILED, "%zu bytes: %s", w->map_len, strerror(errno));
	/* In huge pages, if there are any: page faults were most of the CPU time of large windows. */
	madvise(w->map, w->map_len, MADV_HUGEPAGE);
	w->mem = w->map + guard + shift;
	fill_bytes(&g, 0, w->map, (size_t)(w->mem - w->map));
	fill_bytes(&g, (uint64_t)(w->mem + len - w->map), w->mem + len, guard);
	window_refill(w, fill);
	w->mr = exact ? ibv_reg_mr(n->pd, w->mem, len, (unsigned)access)
		      : ibv_reg_mr(n->pd, w->map, w->map_len, (unsigned)access);
	if (!w->mr)
		raw_die(EXIT_FAILED, "registering %zu bytes: %s", len, strerror(errno));
	w->rkey = w->mr->rkey;
	w->next = windows;
	windows = w;
	if (rc_is_on())
		rc_window_new(w);
	return w;
}

void
window_dereg(struct window *w)
{
	if (w->mr && ibv_dereg_mr(w->mr) != 0)
		raw_die(EXIT_FAILED, "deregistering: %s", strerror(errno));
	w->mr = NULL;
}

void
window_free(struct window *w)
{
	struct window **p = &windows;

	window_dereg(w);
	munmap(w->map, w->map_len);
	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
	free(w);
}

const char *
window_guards(const struct window *w)
{
	static const struct fill g = { .kind = FILL_PATTERN, .seed = GUARD_SEED };
	static char why[160];
	int64_t at = fill_compare(&g, 0, w->map, (size_t)(w->mem - w->map));

	if (at >= 0) {
		snprintf(why, sizeof why, "window %s: the guard %lld bytes before it was overwritten",
			 w->name, (long long)(w->mem - w->map - at));
		return why;
	}
	at = fill_compare(&g, (uint64_t)(w->mem + w->len - w->map), w->mem + w->len, w->guard);
	if (at < 0)
		return NULL;
	snprintf(why, sizeof why, "window %s: the guard %lld bytes behind its end was overwritten", w->name,
		 (long long)at);
	return why;
}

/* ---- tokens ---- */

struct parts {
	const char *rc_id; /* of an rc: token; NULL: the token is DC's */
	uint64_t addr, size, suffix_addr, suffix_size;
	uint32_t rkey, dctn;
	unsigned lid, g;
	uint8_t gid[16];
	bool suffix, upper;
};

static void
parts_of(const struct window *w, struct parts *p)
{
	*p = (struct parts){ .addr = (uintptr_t)w->mem,
			     .size = w->len,
			     .rkey = w->rkey,
			     .dctn = w->nic->dctn,
			     .lid = w->nic->ethernet ? 0 : w->nic->lid,
			     .g = 1 };
	memcpy(p->gid, w->nic->gid, 16);
}

static void
parts_text(const struct parts *p, char text[RAW_TOKEN_MAX])
{
	int n;

	if (p->rc_id) {
		snprintf(text, RAW_TOKEN_MAX, "rc:%s:%016llx:%08llx:%08x", p->rc_id,
			 (unsigned long long)p->addr, (unsigned long long)p->size, p->rkey);
		return;
	}
	n = snprintf(text, RAW_TOKEN_MAX, "%016llx:%08llx:%08x:%04x:%06x:%x:", (unsigned long long)p->addr,
		     (unsigned long long)p->size, p->rkey, p->lid, p->dctn, p->g);

	for (int i = 0; i < 16; i++)
		n += snprintf(text + n, RAW_TOKEN_MAX - (size_t)n, "%02x", p->gid[i]);
	if (p->suffix)
		snprintf(text + n, RAW_TOKEN_MAX - (size_t)n, ":%016llx:%016llx",
			 (unsigned long long)p->suffix_addr, (unsigned long long)p->suffix_size);
	for (char *c = text; p->upper && *c; c++)
		if (*c >= 'a' && *c <= 'f')
			*c = (char)(*c - 'a' + 'A');
}

void
token_of_window(const struct window *w, char text[RAW_TOKEN_MAX])
{
	struct parts p;

	parts_of(w, &p);
	parts_text(&p, text);
}

void
token_of(struct window *w, char text[RAW_TOKEN_MAX])
{
	struct parts p;

	parts_of(w, &p);
	p.rc_id = rc_is_on() ? rc_window_id(w) : NULL;
	parts_text(&p, text);
}

/* "+N", "-N", "^N" change the true value, "N" replaces it. */
static uint64_t
changed(uint64_t truth, const char *text)
{
	switch (*text) {
	case '+':
		return truth + raw_number(text + 1);
	case '-':
		return truth - raw_number(text + 1);
	case '^':
		return truth ^ raw_number(text + 1);
	}
	return raw_number(text);
}

static void
parse_gid(const char *text, uint8_t gid[16])
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		memset(gid, 0, 10);
		memset(gid + 10, 0xff, 2);
		memcpy(gid + 12, &v4, 4);
		return;
	}
	if (inet_pton(AF_INET6, text, gid) == 1)
		return;
	if (strlen(text) != 32)
		raw_die(EXIT_SCRIPT, "gid=%s: want an address or 32 hex digits", text);
	for (int i = 0; i < 16; i++) {
		unsigned b;

		if (sscanf(text + 2 * i, "%2x", &b) != 1)
			raw_die(EXIT_SCRIPT, "gid=%s: not hex", text);
		gid[i] = (uint8_t)b;
	}
}

static bool
change_part(struct parts *p, const char *key, const char *value)
{
	if (!strcmp(key, "addr"))
		p->addr = changed(p->addr, value);
	else if (!strcmp(key, "size"))
		p->size = changed(p->size, value);
	else if (!strcmp(key, "rkey"))
		p->rkey = (uint32_t)changed(p->rkey, value);
	else if (!strcmp(key, "dctn"))
		p->dctn = (uint32_t)changed(p->dctn, value) & 0xffffff;
	else if (!strcmp(key, "lid"))
		p->lid = (unsigned)raw_number(value) & 0xffff;
	else if (!strcmp(key, "g"))
		p->g = (unsigned)raw_number(value) & 15;
	else if (!strcmp(key, "gid"))
		parse_gid(value, p->gid);
	else if (!strcmp(key, "suffix_addr"))
		p->suffix = true, p->suffix_addr = changed(p->suffix_addr, value);
	else if (!strcmp(key, "suffix_size"))
		p->suffix = true, p->suffix_size = changed(p->suffix_size, value);
	else
		return false;
	return true;
}

/* Damage to the text itself. */
static bool
change_text(char *text, const char *key, char *value)
{
	size_t len = strlen(text);

	if (!strcmp(key, "cut")) {
		bool of_end = *value == '-';
		size_t n = raw_number(value + of_end);

		text[n > len ? (of_end ? 0 : len) : of_end ? len - n : n] = 0;
	} else if (!strcmp(key, "append")) {
		snprintf(text + len, RAW_TOKEN_MAX - len, "%s", value);
	} else if (!strcmp(key, "prepend")) {
		char copy[RAW_TOKEN_MAX];

		memcpy(copy, text, len + 1);
		snprintf(text, RAW_TOKEN_MAX, "%s%.*s", value, (int)(RAW_TOKEN_MAX - 1 - strlen(value)),
			 copy);
	} else if (!strcmp(key, "at")) {
		char *colon = strchr(value, ':');

		if (!colon || !colon[1])
			raw_die(EXIT_SCRIPT, "at=%s: want POSITION:CHARACTER", value);
		*colon = 0;
		size_t pos = raw_number(value);

		if (pos < len)
			text[pos] = colon[1];
	} else {
		return false;
	}
	return true;
}

void
token_make(const char *name, struct window *w, char **words, int nr)
{
	struct token_text *t = calloc(1, sizeof *t);
	struct parts p;

	parts_of(w, &p);
	p.rc_id = rc_is_on() ? rc_window_id(w) : NULL;
	p.suffix_addr = p.addr;
	p.suffix_size = p.size;
	snprintf(t->name, sizeof t->name, "%s", name);
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < nr; i++) {
			char key[RAW_NAME_MAX], *eq = strchr(words[i], '=');

			snprintf(key, sizeof key, "%.*s", eq ? (int)(eq - words[i]) : (int)strlen(words[i]),
				 words[i]);
			bool is_text = eq && (!strcmp(key, "cut") || !strcmp(key, "append") ||
					      !strcmp(key, "prepend") || !strcmp(key, "at"));

			if (pass == 1 && is_text)
				change_text(t->text, key, eq + 1);
			else if (pass == 0 && !eq && !strcmp(key, "upper"))
				p.upper = true;
			else if (pass == 0 && !eq && !strcmp(key, "suffix"))
				p.suffix = true;
			else if (pass == 0 && !is_text && (!eq || !change_part(&p, key, eq + 1)))
				raw_die(EXIT_SCRIPT, "token: \"%s\" is not known", words[i]);
		}
		if (pass == 0)
			parts_text(&p, t->text);
	}
	t->next = tokens;
	tokens = t;
}

void
token_set(const char *name, const char *text)
{
	struct token_text *t = calloc(1, sizeof *t);

	snprintf(t->name, sizeof t->name, "%s", name);
	snprintf(t->text, sizeof t->text, "%s", text);
	t->next = tokens;
	tokens = t;
}

const struct token_text *
token_find(const char *name)
{
	for (const struct token_text *t = tokens; t; t = t->next)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

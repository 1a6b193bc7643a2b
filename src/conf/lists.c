/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are lists: address blocks, devices, cores, and lists of maps with a table of their own.  Called
 * through value.c. */
#include "conf/conf_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int
expected(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n)
{
	char text[256];
	const char *got = node_is_null(n)        ? "nothing"
			  : n->kind == NODE_MAP  ? "a map"
			  : n->kind == NODE_LIST ? "a list"
						 : n->text;

	key_expected(k, text, sizeof text);
	load_fail(ld, n, path, "expected %s, not %.100s", text, got);
	return -EINVAL;
}

static int
too_many(struct loader *ld, const char *path, const struct node *n, int max)
{
	load_fail(ld, n, path, "%d entries; at most %d", n->item_nr, max);
	return -EINVAL;
}

static bool
is_list_of_scalars(const struct node *n)
{
	if (n->kind != NODE_LIST)
		return false;
	for (int i = 0; i < n->item_nr; i++) {
		if (n->item[i]->kind != NODE_SCALAR)
			return false;
	}
	return true;
}

static int
nets_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	 struct conf_nets *ret_nets)
{
	struct conf_net nets[CONF_NETS_MAX];
	char why[CONF_NET_REFUSAL_MAX];
	bool routed = false;
	int r = 0, nr = 0;

	if (!is_list_of_scalars(n))
		return expected(ld, k, path, n);
	if (n->item_nr > CONF_NETS_MAX)
		return too_many(ld, path, n, CONF_NETS_MAX);
	for (int i = 0; i < n->item_nr; i++) {
		const char *text = n->item[i]->text;

		if (k->words && strcmp(text, k->words[0]) == 0) {
			routed = true;
		} else if (conf_net_parse(text, &nets[nr++]) < 0) {
			load_fail(ld, n->item[i], path, "%s%s%s, not \"%.100s\"", conf_net_refusal(text, why),
				  k->words ? " or " : "", k->words ? k->words[0] : "", text);
			r = -EINVAL;
		}
	}
	if (r == 0) {
		memcpy(ret_nets->net, nets, (size_t)nr * sizeof *nets);
		ret_nets->nr = nr;
		ret_nets->routed = routed;
	}
	return r;
}

static int
special_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	    struct conf_rdma *rdma)
{
	bool on[3] = { false };
	int r = 0;

	if (!is_list_of_scalars(n))
		return expected(ld, k, path, n);
	for (int i = 0; i < n->item_nr; i++) {
		int w = 0;

		while (k->words[w] && strcmp(k->words[w], n->item[i]->text) != 0)
			w++;
		if (k->words[w])
			on[w] = true;
		else
			r = expected(ld, k, path, n->item[i]);
	}
	if (r == 0) {
		rdma->allow_loopback = on[0];
		rdma->allow_self = on[1];
		rdma->allow_link_local = on[2];
	}
	return r;
}

static void
devices_free(struct conf_rdma *rdma)
{
	for (int i = 0; i < rdma->device_nr; i++) {
		free(rdma->devices[i]);
		rdma->devices[i] = NULL;
	}
	rdma->device_nr = 0;
}

static bool
is_device(const char *text)
{
	return *text && strlen(text) < 64 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:") ==
		       strlen(text);
}

static int
devices_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	    struct conf_rdma *rdma)
{
	int r = 0;

	if (n->kind == NODE_SCALAR) {
		bool none = strcmp(n->text, "none") == 0;

		if (!none && strcmp(n->text, "auto") != 0)
			return expected(ld, k, path, n);
		devices_free(rdma);
		rdma->mode = none ? RDMA_NONE : RDMA_AUTO;
		return 0;
	}
	/* An empty list could mean all or nothing: auto and none say which. */
	if (!is_list_of_scalars(n) || n->item_nr == 0)
		return expected(ld, k, path, n);
	if (n->item_nr > CONF_DEVICES_MAX)
		return too_many(ld, path, n, CONF_DEVICES_MAX);
	for (int i = 0; i < n->item_nr; i++) {
		if (!is_device(n->item[i]->text)) {
			load_fail(ld, n->item[i], path,
				  "expected a device name, address or GID, not \"%.100s\"", n->item[i]->text);
			r = -EINVAL;
		}
		for (int j = 0; j < i; j++) {
			if (strcmp(n->item[i]->text, n->item[j]->text) == 0) {
				load_fail(ld, n->item[i], path, "%.63s is named twice", n->item[i]->text);
				r = -EINVAL;
			}
		}
	}
	if (r < 0)
		return r;
	devices_free(rdma);
	rdma->mode = RDMA_LIST;
	for (int i = 0; i < n->item_nr; i++) {
		rdma->devices[i] = strdup(n->item[i]->text);
		if (!rdma->devices[i]) {
			ld->no_memory = true;
			return -ENOMEM;
		}
		rdma->device_nr++;
	}
	return 0;
}

static void
domains_free(struct conf_s3 *s3)
{
	for (int i = 0; i < s3->domain_nr; i++) {
		free(s3->domains[i]);
		s3->domains[i] = NULL;
	}
	s3->domain_nr = 0;
}

/* A name of DNS without a port: labels of letters, digits and '-', with dots between them. */
static bool
is_domain(const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || len > 253 || text[0] == '.' || text[len - 1] == '.' || strstr(text, ".."))
		return false;
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") == len;
}

static int
domains_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	    struct conf_s3 *s3)
{
	int r = 0;

	if (!is_list_of_scalars(n))
		return expected(ld, k, path, n);
	if (n->item_nr > CONF_DOMAINS_MAX)
		return too_many(ld, path, n, CONF_DOMAINS_MAX);
	for (int i = 0; i < n->item_nr; i++) {
		if (!is_domain(n->item[i]->text)) {
			load_fail(ld, n->item[i], path,
				  "expected a domain name without a port, not \"%.100s\"", n->item[i]->text);
			r = -EINVAL;
		}
		for (int j = 0; j < i; j++) {
			if (strcasecmp(n->item[i]->text, n->item[j]->text) == 0) {
				load_fail(ld, n->item[i], path, "%.100s is named twice", n->item[i]->text);
				r = -EINVAL;
			}
		}
	}
	if (r < 0)
		return r;
	domains_free(s3);
	for (int i = 0; i < n->item_nr; i++) {
		s3->domains[i] = strdup(n->item[i]->text);
		if (!s3->domains[i]) {
			ld->no_memory = true;
			return -ENOMEM;
		}
		for (char *c = s3->domains[i]; *c; c++)
			*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
		s3->domain_nr++;
	}
	return 0;
}

static int
uuids_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n, struct conf *c)
{
	int r = 0;

	if (!is_list_of_scalars(n))
		return expected(ld, k, path, n);
	if (n->item_nr > CONF_DISKS_MAX)
		return too_many(ld, path, n, CONF_DISKS_MAX);
	c->store.accept_missing_nr = 0;
	for (int i = 0; i < n->item_nr; i++) {
		if (uuid_parse(n->item[i]->text, c->store.accept_missing[i]) < 0) {
			load_fail(ld, n->item[i], path,
				  "expected the UUID of a disk, as the start and /disks write it, not "
				  "\"%.100s\"",
				  n->item[i]->text);
			r = -EINVAL;
		}
	}
	if (r == 0)
		c->store.accept_missing_nr = n->item_nr;
	return r;
}

static int
cores_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n)
{
	int cpus[CONF_CORES_MAX], r = 0;
	uint64_t v;

	if (n->kind == NODE_SCALAR && strcmp(n->text, "auto") == 0) {
		ld->cores_count = CORES_AUTO;
		return 0;
	}
	if (n->kind == NODE_SCALAR) {
		if (u64_parse(n->text, &v) < 0 || v < 1 || v > CONF_CORES_MAX)
			return expected(ld, k, path, n);
		ld->cores_count = (int)v;
		return 0;
	}
	if (!is_list_of_scalars(n) || n->item_nr == 0)
		return expected(ld, k, path, n);
	if (n->item_nr > CONF_CORES_MAX)
		return too_many(ld, path, n, CONF_CORES_MAX);
	for (int i = 0; i < n->item_nr; i++) {
		if (u64_parse(n->item[i]->text, &v) < 0 || v >= 4096) {
			load_fail(ld, n->item[i], path, "expected a CPU number, not \"%.100s\"",
				  n->item[i]->text);
			r = -EINVAL;
			v = 4096 + (uint64_t)i;
		}
		cpus[i] = (int)v;
		for (int j = 0; j < i; j++) {
			if (cpus[j] == cpus[i]) {
				load_fail(ld, n->item[i], path, "CPU %d is named twice", cpus[i]);
				r = -EINVAL;
			}
		}
	}
	if (r == 0) {
		memcpy(ld->conf->cores, cpus, (size_t)n->item_nr * sizeof *cpus);
		ld->conf->core_nr = n->item_nr;
		ld->cores_count = CORES_LIST;
	}
	return r;
}

/* { module: level, ... }; what is not named has the common level. */
static int
levels_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	   struct conf *conf)
{
	signed char levels[LOG_MODULES_NR];
	int r = 0;

	memset(levels, LOG_LEVEL_COMMON, sizeof levels);
	if (n->kind != NODE_MAP)
		return expected(ld, k, path, n);
	for (int i = 0; i + 1 < n->item_nr; i += 2) {
		const struct node *name = n->item[i], *level = n->item[i + 1];
		enum log_level l;
		int m = name->kind == NODE_SCALAR ? log_module_find(name->text) : -ENOENT;

		if (m < 0 || level->kind != NODE_SCALAR || log_level_parse(level->text, &l) < 0) {
			r = expected(ld, k, path, m < 0 ? name : level);
		} else if (levels[m] != LOG_LEVEL_COMMON) {
			load_fail(ld, name, path, "%s is named twice", name->text);
			r = -EINVAL;
		} else {
			levels[m] = (signed char)l;
		}
	}
	if (r == 0)
		memcpy(conf->log.levels, levels, sizeof levels);
	return r;
}

static void
levels_print(const struct conf *c, FILE *out)
{
	const char *sep = "";

	putc('{', out);
	for (int i = 0; i < LOG_MODULES_NR; i++) {
		if (c->log.levels[i] == LOG_LEVEL_COMMON)
			continue;
		fprintf(out, "%s%s: %s", sep, log_module_name[i], log_level_name[(int)c->log.levels[i]]);
		sep = ", ";
	}
	putc('}', out);
}

/* ---- lists of maps ---- */

static void
elem_free(const struct key_list *l, void *elem)
{
	for (int i = 0; i < l->key_nr; i++)
		value_free(&l->keys[i], elem);
}

static void
elem_defaults(struct loader *ld, const struct key_list *l, const char *path, void *elem)
{
	for (int i = 0; i < l->key_nr; i++) {
		const struct conf_key *k = &l->keys[i];
		char name[128];
		struct node *n;

		/* A list is empty by default, as the element was made. */
		if (!k->def || k->type >= KT_NETS)
			continue;
		snprintf(name, sizeof name, "%s.%s", path, k->name);
		n = node_scalar(k->def, strlen(k->def));
		if (!n)
			ld->no_memory = true;
		else
			check(value_set(ld, k, name, n, elem) == 0 || ld->no_memory);
		node_free(n);
	}
}

/* The keys of one element; returns which were given, as bits. */
static unsigned
elem_keys(struct loader *ld, const struct key_list *l, const char *path, const struct node *n, void *elem)
{
	unsigned given = 0;
	char name[256];

	for (int i = 0; i + 1 < n->item_nr; i += 2) {
		const struct node *key = n->item[i];
		const struct conf_key *k;

		if (key->kind != NODE_SCALAR) {
			load_fail(ld, key, path, "expected a key");
			continue;
		}
		snprintf(name, sizeof name, "%s.%.100s", path, key->text);
		k = key_find(l->keys, l->key_nr, key->text);
		if (!k) {
			load_unknown(ld, key, name);
		} else if (given & (1u << (k - l->keys))) {
			load_fail(ld, key, name, "given twice");
		} else {
			value_set(ld, k, name, n->item[i + 1], elem);
			given |= 1u << (k - l->keys);
		}
	}
	return given;
}

static void
elem_set(struct loader *ld, const struct key_list *l, const char *path, const struct node *n, void *elem)
{
	const struct conf_key *dialect = key_find(l->keys, l->key_nr, "dialect");
	unsigned given;

	if (n->kind != NODE_MAP) {
		load_fail(ld, n, path, "expected a map (%s: %s, ...)", l->keys[0].name, l->what);
		return;
	}
	elem_defaults(ld, l, path, elem);
	given = elem_keys(ld, l, path, n, elem);
	for (int i = 0; i < l->key_nr; i++) {
		const struct conf_key *k = &l->keys[i];
		unsigned only = k->flags & (KEY_S3 | KEY_SCALITY);
		char name[256];

		snprintf(name, sizeof name, "%s.%s", path, k->name);
		if ((k->flags & KEY_REQUIRED) && !(given & (1u << i)))
			load_fail(ld, n, name, "missing; %s needs it", l->what);
		if (!only || !dialect || !(given & (1u << (dialect - l->keys))) || !(given & (1u << i)))
			continue;
		if (only !=
		    (*(int *)(void *)((char *)elem + dialect->offset) == DIALECT_S3 ? KEY_S3 : KEY_SCALITY))
			load_fail(ld, n, name, "only a listener of dialect %s has this",
				  only == KEY_S3 ? "s3" : "scality");
	}
}

static int
maps_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	 struct conf *conf)
{
	const struct key_list *l = k->list;
	char *elems, *target = (char *)conf + l->offset, prefix[64];
	int *nr = (int *)(void *)((char *)conf + l->nr_offset), errors = ld->errors;

	if (n->kind != NODE_LIST)
		return expected(ld, k, path, n);
	if (n->item_nr > l->max)
		return too_many(ld, path, n, l->max);
	elems = calloc((size_t)l->max, l->elem_bytes);
	if (!elems) {
		ld->no_memory = true;
		return -ENOMEM;
	}
	snprintf(prefix, sizeof prefix, "%s[", path);
	load_drop_origins(ld, prefix);
	for (int i = 0; i < n->item_nr; i++) {
		snprintf(prefix, sizeof prefix, "%s[%d]", path, i);
		elem_set(ld, l, prefix, n->item[i], elems + (size_t)i * l->elem_bytes);
	}
	if (ld->errors != errors) {
		for (int i = 0; i < n->item_nr; i++)
			elem_free(l, elems + (size_t)i * l->elem_bytes);
		free(elems);
		return -EINVAL;
	}
	for (int i = 0; i < *nr; i++)
		elem_free(l, target + (size_t)i * l->elem_bytes);
	memcpy(target, elems, (size_t)l->max * l->elem_bytes);
	*nr = n->item_nr;
	free(elems);
	return 0;
}

int
lists_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n, void *base)
{
	struct conf *conf = base;
	int r;

	switch (k->type) {
	case KT_NETS:
		r = nets_set(ld, k, path, n, (void *)((char *)base + k->offset));
		break;
	case KT_SPECIAL:
		r = special_set(ld, k, path, n, &conf->rdma);
		break;
	case KT_DEVICES:
		r = devices_set(ld, k, path, n, &conf->rdma);
		break;
	case KT_DOMAINS:
		r = domains_set(ld, k, path, n, &conf->s3);
		break;
	case KT_UUIDS:
		r = uuids_set(ld, k, path, n, conf);
		break;
	case KT_CORES:
		r = cores_set(ld, k, path, n);
		break;
	case KT_LEVELS:
		r = levels_set(ld, k, path, n, conf);
		break;
	default:
		r = maps_set(ld, k, path, n, conf);
		break;
	}
	if (r == 0)
		load_set_origin(ld, path, n);
	return r;
}

void
lists_free(const struct conf_key *k, void *base)
{
	struct conf *conf = base;

	if (k->type == KT_DEVICES)
		devices_free(&conf->rdma);
	if (k->type == KT_DOMAINS)
		domains_free(&conf->s3);
	if (k->type != KT_MAPS)
		return;
	for (int i = 0; i < *(int *)(void *)((char *)base + k->list->nr_offset); i++)
		elem_free(k->list, (char *)base + k->list->offset + (size_t)i * k->list->elem_bytes);
}

void
lists_print(const struct conf_key *k, const void *base, FILE *out)
{
	const struct conf *c = base;
	const struct conf_nets *nets = (const void *)((const char *)base + k->offset);
	bool on[3] = { false };
	const char *sep = "";
	char text[64];

	if (k->type == KT_DEVICES && c->rdma.mode != RDMA_LIST) {
		fputs(c->rdma.mode == RDMA_AUTO ? "auto" : "none", out);
		return;
	}
	if (k->type == KT_CORES && !c->pin) {
		fprintf(out, "%d", c->core_nr);
		return;
	}
	if (k->type == KT_LEVELS) {
		levels_print(c, out);
		return;
	}
	/* Not before: base is a struct conf for keys that are in no list of maps alone. */
	if (k->type == KT_SPECIAL) {
		on[0] = c->rdma.allow_loopback;
		on[1] = c->rdma.allow_self;
		on[2] = c->rdma.allow_link_local;
	}
	putc('[', out);
	for (int i = 0; k->type == KT_NETS && i < nets->nr; i++, sep = ", ") {
		conf_net_format(&nets->net[i], text, sizeof text);
		fprintf(out, "%s\"%s\"", sep, text);
	}
	if (k->type == KT_NETS && nets->routed)
		fprintf(out, "%s%s", sep, k->words[0]);
	for (int i = 0; k->type == KT_SPECIAL && i < 3; i++) {
		if (on[i]) {
			fprintf(out, "%s%s", sep, k->words[i]);
			sep = ", ";
		}
	}
	for (int i = 0; k->type == KT_DEVICES && i < c->rdma.device_nr; i++, sep = ", ") {
		fputs(sep, out);
		string_print(c->rdma.devices[i], out);
	}
	for (int i = 0; k->type == KT_DOMAINS && i < c->s3.domain_nr; i++, sep = ", ") {
		fputs(sep, out);
		string_print(c->s3.domains[i], out);
	}
	for (int i = 0; k->type == KT_UUIDS && i < c->store.accept_missing_nr; i++, sep = ", ") {
		uuid_write(text, c->store.accept_missing[i]);
		fprintf(out, "%s\"%s\"", sep, text);
	}
	for (int i = 0; k->type == KT_CORES && i < c->core_nr; i++, sep = ", ")
		fprintf(out, "%s%d", sep, c->cores[i]);
	putc(']', out);
}

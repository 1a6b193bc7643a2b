/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_load(): defaults, the file, conf.d beside it, the environment, the command line; each may overwrite
 * what came before, and where each value came from is kept.  Errors do not end the reading: an operator wants
 * to see all of them.
 */
#include "conf/conf_int.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define FILE_BYTES_FIRST ((size_t)4 << 10)

extern char **environ;

/* ---- a tree of sections ---- */

/* True, with the error reported, when the key at `at` stands in the map a second time. */
static bool
is_repeated(struct loader *ld, const struct node *map, int at, const char *path)
{
	for (int i = 0; i < at; i += 2) {
		if (map->item[i]->kind == NODE_SCALAR &&
		    strcmp(map->item[i]->text, map->item[at]->text) == 0) {
			load_fail(ld, map->item[at], path, "given twice; first in line %d",
				  map->item[i]->line);
			return true;
		}
	}
	return false;
}

static void
load_map(struct loader *ld, const char *section, const struct node *map)
{
	for (int i = 0; i + 1 < map->item_nr; i += 2) {
		const struct node *key = map->item[i], *value = map->item[i + 1];
		const struct conf_key *k;
		char path[256];

		if (key->kind != NODE_SCALAR) {
			load_fail(ld, key, section, "expected a key, not a list or a map");
			continue;
		}
		snprintf(path, sizeof path, "%s%s%.100s", section ? section : "", section ? "." : "",
			 key->text);
		if (is_repeated(ld, map, i, path))
			continue;
		k = key_find(conf_keys, conf_key_nr, path);
		/* "rdma.dc_key: 1" at the top is not how it is written. */
		if (k && !strchr(key->text, '.'))
			value_set(ld, k, path, value, ld->conf);
		else if (strchr(key->text, '.') || !key_is_section(path))
			load_unknown(ld, key, path);
		else if (value->kind == NODE_MAP)
			load_map(ld, path, value);
		else if (!node_is_null(value))
			load_fail(ld, value, path, "expected the keys of this section, not a %s",
				  value->kind == NODE_LIST ? "list" : "value");
	}
}

static void
load_tree(struct loader *ld, const struct node *root)
{
	if (node_is_null(root))
		return;
	if (root->kind != NODE_MAP)
		load_fail(ld, root, NULL, "expected sections (listen:, store:, ...)");
	else
		load_map(ld, NULL, root);
}

/* ---- files ---- */

static int
read_file(const char *name, char **ret_text, size_t *ret_len)
{
	FILE *f = fopen(name, "re");
	size_t len = 0, cap = FILE_BYTES_FIRST;
	char *text = NULL, *more;
	int r = 0;

	if (!f)
		return -errno;
	/* It may be a pipe, of which nobody knows the length. */
	do {
		cap *= 2;
		more = realloc(text, cap);
		if (!more)
			break;
		text = more;
		len += fread(text + len, 1, cap - len, f);
	} while (len == cap && len <= FILE_BYTES_MAX);
	if (!more)
		r = -ENOMEM;
	else if (ferror(f))
		r = errno ? -errno : -EIO;
	else if (len > FILE_BYTES_MAX)
		r = -EFBIG;
	fclose(f);
	if (r < 0) {
		free(text);
		return r;
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}

static void
load_file(struct loader *ld, const char *name, bool required)
{
	struct node *root;
	char *text = NULL;
	size_t len = 0;
	bool ok;
	int r = read_file(name, &text, &len);

	if (r == -ENOENT && !required) {
		ld->missing_file = name;
		return;
	}
	ld->source = name;
	ld->is_file = true;
	if (r < 0) {
		load_fail(ld, &(struct node){ 0 }, NULL, "cannot read it: %s", strerror(-r));
	} else {
		root = yaml_read(ld, text, len, &ok);
		if (root)
			load_tree(ld, root);
		node_free(root);
		free(text);
	}
	ld->is_file = false;
	ld->source = NULL;
}

static bool
ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);

	return len > n && strcasecmp(name + len - n, end) == 0;
}

/* Selects files that are read, and those that look as if they should be. */
static int
is_yaml(const struct dirent *d)
{
	return d->d_name[0] != '.' && (ends_with(d->d_name, ".yaml") || ends_with(d->d_name, ".yml"));
}

static bool
is_read(const char *name)
{
	return strcmp(strrchr(name, '.'), ".yaml") == 0;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* conf.d beside the file, in the order of names; not being there is fine. */
static void
load_directory(struct loader *ld, const char *file)
{
	const char *slash = strrchr(file, '/');
	struct dirent **names = NULL;
	char *dir, *name;
	int nr;

	if (asprintf(&dir, "%.*sconf.d", slash ? (int)(slash - file) + 1 : 0, file) < 0) {
		ld->no_memory = true;
		return;
	}
	nr = scandir(dir, &names, is_yaml, by_name);
	if (nr < 0 && errno != ENOENT && errno != ENOTDIR) {
		ld->source = dir;
		load_fail(ld, &(struct node){ 0 }, NULL, "cannot read it: %s", strerror(errno));
		ld->source = NULL;
	}
	for (int i = 0; i < nr; i++) {
		if (asprintf(&name, "%s/%s", dir, names[i]->d_name) < 0) {
			ld->no_memory = true;
			name = NULL;
		} else if (is_read(names[i]->d_name)) {
			load_file(ld, name, true);
		} else {
			load_note(ld, "%s: not read: names of files in conf.d end with .yaml", name);
		}
		free(name);
		free(names[i]);
	}
	free(names);
	free(dir);
}

/* ---- single values from elsewhere ---- */

/* "a, b,c" as a list of three. */
static struct node *
split_commas(const char *text)
{
	struct node *list = calloc(1, sizeof *list);
	size_t nr = 1;

	if (!list)
		return NULL;
	list->kind = NODE_LIST;
	for (const char *p = text; *p; p++)
		nr += *p == ',';
	list->item = calloc(nr, sizeof *list->item);
	if (!list->item) {
		free(list);
		return NULL;
	}
	while (*text) {
		size_t len;

		text += strspn(text, " ");
		len = strcspn(text, ",");
		list->item[list->item_nr] = node_scalar(text, len);
		if (!list->item[list->item_nr]) {
			node_free(list);
			return NULL;
		}
		for (char *t = list->item[list->item_nr++]->text; len > 0 && t[len - 1] == ' '; len--)
			t[len - 1] = 0;
		text += strcspn(text, ",");
		if (*text)
			text++;
	}
	return list;
}

/* Lists may be written as in YAML, or with commas alone. */
static struct node *
text_to_node(struct loader *ld, const struct conf_key *k, const char *text, bool *ret_ok)
{
	const char *first = text + strspn(text, " ");
	bool word = strcmp(text, "auto") == 0 || strcmp(text, "none") == 0;
	struct node *n;

	if (k->type == KT_MAPS || k->type == KT_LEVELS || (k->type >= KT_NETS && *first == '['))
		return yaml_read(ld, text, strlen(text), ret_ok);
	if (k->type == KT_CORES)
		word = word || !strchr(text, ',');
	if (k->type < KT_NETS || ((k->type == KT_DEVICES || k->type == KT_CORES) && word)) {
		n = node_scalar(text, strlen(text));
		if (n)
			n->plain = false;
	} else {
		n = split_commas(text);
	}
	*ret_ok = n != NULL;
	if (!n)
		ld->no_memory = true;
	return n;
}

static void
load_text(struct loader *ld, const struct conf_key *k, const char *text)
{
	char expected[256];
	bool ok;
	struct node *n = text_to_node(ld, k, text, &ok);

	if (n) {
		value_set(ld, k, k->name, n, ld->conf);
	} else if (ok) {
		key_expected(k, expected, sizeof expected);
		load_fail(ld, &(struct node){ 0 }, k->name, "expected %s, not nothing", expected);
	}
	node_free(n);
}

static void
load_defaults(struct loader *ld)
{
	ld->defaults = true;
	for (int i = 0; i < conf_key_nr; i++) {
		if (conf_keys[i].def)
			load_text(ld, &conf_keys[i], conf_keys[i].def);
	}
	ld->defaults = false;
}

/* "rdma.dc_key" is GANTRY_RDMA_DC_KEY. */
static void
env_name(const char *key, char *out, size_t cap)
{
	size_t n = (size_t)snprintf(out, cap, "GANTRY_%s", key);

	for (size_t i = 0; i < n && i < cap; i++)
		out[i] = out[i] == '.' ? '_' : (char)toupper((unsigned char)out[i]);
}

static void
load_env_entry(struct loader *ld, const char *entry, const char *eq)
{
	char name[128], env[128], source[160], *underscore;

	snprintf(name, sizeof name, "%.*s", (int)(eq - entry), entry);
	snprintf(source, sizeof source, "environment %s", name);
	ld->source = source;
	for (int i = 0; i < conf_key_nr; i++) {
		env_name(conf_keys[i].name, env, sizeof env);
		if (strcmp(env, name) == 0) {
			load_text(ld, &conf_keys[i], eq + 1);
			ld->source = NULL;
			return;
		}
	}
	/* Other programs have variables with this prefix too; one that names a section of ours is meant for
	 * us. */
	snprintf(env, sizeof env, "%s", name + strlen("GANTRY_"));
	for (char *p = env; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	underscore = strchr(env, '_');
	if (underscore) {
		*underscore = 0;
		if (key_is_section(env)) {
			*underscore = '.';
			load_unknown(ld, &(struct node){ 0 }, env);
		}
	}
	ld->source = NULL;
}

static void
load_environment(struct loader *ld)
{
	for (char **e = environ; e && *e; e++) {
		const char *eq = strchr(*e, '=');

		if (eq && strncmp(*e, "GANTRY_", 7) == 0 && eq - *e < 100)
			load_env_entry(ld, *e, eq);
	}
}

static void
load_override(struct loader *ld, const char *text)
{
	const char *eq = strchr(text, '=');
	const struct conf_key *k;
	char name[128];

	ld->source = "option -o";
	if (!eq) {
		load_fail(ld, &(struct node){ 0 }, NULL, "expected section.key=value, not \"%.100s\"", text);
	} else {
		snprintf(name, sizeof name, "%.*s", (int)(eq - text), text);
		k = key_find(conf_keys, conf_key_nr, name);
		if (k)
			load_text(ld, k, eq + 1);
		else
			load_unknown(ld, &(struct node){ 0 }, name);
	}
	ld->source = NULL;
}

/* ---- the whole ---- */

int
conf_load(const struct conf_source *src, struct conf **ret_conf, FILE *err)
{
	struct loader ld = { .err = err, .cores_count = CORES_AUTO, .starts = src->starts };
	const char *file = src->file ? src->file : CONF_DEFAULT_FILE;

	ld.conf = calloc(1, sizeof *ld.conf);
	if (!ld.conf) {
		fprintf(err, "out of memory\n");
		return -ENOMEM;
	}
	load_defaults(&ld);
	load_file(&ld, file, src->file_required);
	load_directory(&ld, file);
	load_environment(&ld);
	for (int i = 0; i < src->override_nr; i++)
		load_override(&ld, src->overrides[i].text);
	ld.conf->origins = ld.origin;
	if (!ld.no_memory)
		verify(&ld, src->partial);
	if (ld.errors > ERRORS_SHOWN)
		fprintf(err, "and %d more errors\n", ld.errors - ERRORS_SHOWN);
	if (ld.no_memory)
		fprintf(err, "out of memory\n");
	if (ld.errors || ld.no_memory) {
		conf_free(ld.conf);
		return ld.no_memory ? -ENOMEM : -EINVAL;
	}
	*ret_conf = ld.conf;
	return 0;
}

const struct conf *
conf_get(const struct conf *c)
{
	/* Counting is the one thing about it that changes. */
	atomic_fetch_add(&((struct conf *)(uintptr_t)c)->refs, 1);
	return c;
}

void
conf_free(struct conf *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) > 0)
		return;
	for (int i = 0; i < conf_key_nr; i++)
		value_free(&conf_keys[i], c);
	for (struct conf_origin *o = c->origins; o && o->path; o++) {
		free(o->path);
		free(o->source);
	}
	free(c->origins);
	free(c);
}

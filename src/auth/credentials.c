/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials file, see auth.h: a YAML list of access keys.  Called at start and on a reload, on the main
 * thread.  Errors name file, line, column and key, never a value: it may be a secret in the wrong place.
 */
#include "auth/auth_int.h"

#include "base/nodump.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#define ERRORS_SHOWN 50
#define SECRET_MIN 8

struct reader {
	yaml_document_t *doc;
	const char *source;
	FILE *err;
	int errors;
	bool may_be_empty; /* a file with nothing in it is one without keys */
	bool no_memory;
};

static void fail(struct reader *rd, const yaml_node_t *n, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void
fail(struct reader *rd, const yaml_node_t *n, const char *path, const char *fmt, ...)
{
	va_list ap;

	if (rd->errors++ >= ERRORS_SHOWN)
		return;
	fprintf(rd->err, "%s:", rd->source);
	if (n)
		fprintf(rd->err, "%zu:%zu:", n->start_mark.line + 1, n->start_mark.column + 1);
	fprintf(rd->err, " %s%s", path, *path ? ": " : "");
	va_start(ap, fmt);
	vfprintf(rd->err, fmt, ap);
	va_end(ap);
	putc('\n', rd->err);
}

/* ---- values ---- */

static struct span
text_of(const yaml_node_t *n)
{
	return (struct span){ (const char *)n->data.scalar.value, n->data.scalar.length };
}

/* min to max printable characters, none of `without`; a copy in *ret, with room for `before` ahead of it. */
static bool
take_text(struct reader *rd, const yaml_node_t *n, const char *path, size_t min, size_t max,
	  const char *without, const char *before, char **ret, size_t *ret_len)
{
	struct span b = text_of(n);
	size_t skip = strlen(before);

	if (*ret) {
		fail(rd, n, path, "given twice");
		return false;
	}
	if (b.len < min || b.len > max) {
		fail(rd, n, path, "expected %zu to %zu characters", min, max);
		return false;
	}
	for (size_t i = 0; i < b.len; i++) {
		unsigned char c = (unsigned char)b.p[i];

		if (c <= ' ' || c >= 0x7f || strchr(without, c)) {
			fail(rd, n, path, "has a character that it cannot have (number %zu)", i + 1);
			return false;
		}
	}
	*ret = malloc(skip + b.len + 1);
	if (!*ret) {
		rd->no_memory = true;
		return false;
	}
	memcpy(*ret, before, skip);
	memcpy(*ret + skip, b.p, b.len);
	(*ret)[skip + b.len] = 0;
	if (ret_len)
		*ret_len = skip + b.len;
	return true;
}

static void
take_bool(struct reader *rd, const yaml_node_t *n, const char *path, bool *ret)
{
	struct span b = text_of(n);

	if (!span_is(b, "true") && !span_is(b, "false"))
		fail(rd, n, path, "expected true or false");
	*ret = span_is(b, "true");
}

static void
take_time(struct reader *rd, const yaml_node_t *n, const char *path, bool *have, uint64_t *ret_s)
{
	if (*have)
		fail(rd, n, path, "given twice");
	else if (credentials_time(text_of(n), ret_s) < 0)
		fail(rd, n, path, "expected a time like 2026-12-31T23:59:59Z");
	*have = true;
}

static void
take_comment(struct reader *rd, const yaml_node_t *n, const char *path, char **ret)
{
	int e = *ret ? -EEXIST : credentials_comment(text_of(n), ret);

	if (e == -ENOMEM)
		rd->no_memory = true;
	else if (e == -EEXIST)
		fail(rd, n, path, "given twice");
	else if (e < 0)
		fail(rd, n, path, "expected a line of 1 to %d bytes of UTF-8, without control characters",
		     AUTH_COMMENT_MAX);
}

/* ---- grants ---- */

bool
credentials_bucket(struct span *name, bool *ret_any)
{
	*ret_any = name->len && name->p[name->len - 1] == '*';
	name->len -= *ret_any;
	if (name->len > 63 || (!name->len && !*ret_any))
		return false;
	for (size_t i = 0; i < name->len; i++) {
		if (!islower((unsigned char)name->p[i]) && !isdigit((unsigned char)name->p[i]) &&
		    !strchr(".-_", name->p[i]))
			return false;
	}
	return true;
}

static void
take_bucket(struct reader *rd, const yaml_node_t *n, const char *path, struct auth_grant *g, bool *given)
{
	struct span b = text_of(n);

	if (*given) {
		fail(rd, n, path, "given twice");
		return;
	}
	*given = true;
	if (!credentials_bucket(&b, &g->any_suffix)) {
		fail(rd, n, path, "expected a bucket's name, the beginning of one with *, or *");
		return;
	}
	memcpy(g->bucket, b.p, b.len);
	g->bucket_len = (uint8_t)b.len;
}

static void
take_prefix(struct reader *rd, const yaml_node_t *n, const char *path, struct auth_grant *g)
{
	struct span b = text_of(n);

	if (g->prefix) {
		fail(rd, n, path, "given twice");
	} else if (b.len > AUTH_PREFIX_MAX) {
		fail(rd, n, path, "expected at most %d bytes", AUTH_PREFIX_MAX);
	} else {
		g->prefix = malloc(b.len + 1);
		if (!g->prefix) {
			rd->no_memory = true;
			return;
		}
		memcpy(g->prefix, b.p, b.len);
		g->prefix[b.len] = 0;
		g->prefix_len = (uint16_t)b.len;
	}
}

/*
 * The value of a pair, and its key as "path.key" in name; NULL: not a key that is known, and said so.  What
 * an unknown one is called is not shown: where a colon is missing it is the secret.
 */
static const yaml_node_t *
pair(struct reader *rd, const yaml_node_pair_t *p, const char *path, const char *const *known, char *name,
     size_t cap)
{
	const yaml_node_t *k = yaml_document_get_node(rd->doc, p->key);
	int i = 0;

	if (k->type != YAML_SCALAR_NODE) {
		fail(rd, k, path, "expected a key");
		return NULL;
	}
	while (known[i] && !span_is(text_of(k), known[i]))
		i++;
	if (!known[i]) {
		fail(rd, k, path,
		     "unknown key; there are access_key, secret_key, session_token, expires, read_only, "
		     "no_delete, "
		     "no_overwrite, from, grants, gids, comment, made, and in a grant bucket, prefix, "
		     "read_only, no_delete, "
		     "no_overwrite, max_objects, max_bytes, max_uploads, max_buckets");
		return NULL;
	}
	snprintf(name, cap, "%s.%s", path, known[i]);
	return yaml_document_get_node(rd->doc, p->value);
}

static bool
want(struct reader *rd, const yaml_node_t *n, yaml_node_type_t type, const char *path)
{
	if (n->type == type)
		return true;
	fail(rd, n, path, "expected %s",
	     type == YAML_SCALAR_NODE     ? "one value"
	     : type == YAML_SEQUENCE_NODE ? "a list"
					  : "a map");
	return false;
}

static void
take_bound(struct reader *rd, const yaml_node_t *n, const char *path, bool is_bytes, uint64_t *bound)
{
	struct span b = text_of(n);
	char text[32];

	snprintf(text, sizeof text, "%.*s", (int)(b.len < sizeof text ? b.len : 0), b.p);
	if (*bound != AUTH_UNBOUNDED)
		fail(rd, n, path, "given twice");
	else if (strlen(text) != b.len || conf_bound_parse(text, is_bytes, bound) < 0)
		fail(rd, n, path,
		     is_bytes ? "expected a size (bytes, or KiB MiB GiB TiB) up to 4194304TiB"
			      : "expected a number");
}

static void
take_grant(struct reader *rd, const yaml_node_t *n, const char *path, struct auth_grant *g)
{
	static const char *const known[] = { "bucket",       "prefix",      "read_only", "no_delete",
					     "no_overwrite", "max_objects", "max_bytes", "max_uploads",
					     "max_buckets",  NULL };
	bool bucket = false;

	g->max_objects = g->max_bytes = g->max_uploads = g->max_buckets = AUTH_UNBOUNDED;
	if (!want(rd, n, YAML_MAPPING_NODE, path))
		return;
	for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
		char name[160];
		const yaml_node_t *v = pair(rd, p, path, known, name, sizeof name);
		const char *key = name + strlen(path) + 1;

		if (!v || !want(rd, v, YAML_SCALAR_NODE, name))
			continue;
		if (strcmp(key, "bucket") == 0)
			take_bucket(rd, v, name, g, &bucket);
		else if (strcmp(key, "prefix") == 0)
			take_prefix(rd, v, name, g);
		else if (strncmp(key, "max_", 4) == 0)
			take_bound(rd, v, name, strcmp(key, "max_bytes") == 0,
				   strcmp(key, "max_bytes") == 0     ? &g->max_bytes
				   : strcmp(key, "max_objects") == 0 ? &g->max_objects
				   : strcmp(key, "max_uploads") == 0 ? &g->max_uploads
								     : &g->max_buckets);
		else
			take_bool(rd, v, name,
				  strcmp(key, "read_only") == 0   ? &g->read_only
				  : strcmp(key, "no_delete") == 0 ? &g->no_delete
								  : &g->no_overwrite);
	}
	if (!bucket)
		fail(rd, n, path, "bucket is missing");
	/* To an operator who wants a bound for a part of a bucket, this bound would mean something else. */
	if (g->prefix_len && (g->max_objects != AUTH_UNBOUNDED || g->max_bytes != AUTH_UNBOUNDED ||
			      g->max_uploads != AUTH_UNBOUNDED || g->max_buckets != AUTH_UNBOUNDED))
		fail(rd, n, path,
		     "max_objects, max_bytes, max_uploads and max_buckets count whole buckets: not with a "
		     "prefix");
	else if (g->max_buckets != AUTH_UNBOUNDED && !g->any_suffix)
		fail(rd, n, path,
		     "max_buckets counts the buckets of a pattern, and bucket is the name of one");
}

static void
take_grants(struct reader *rd, const yaml_node_t *n, const char *path, struct auth_entry *e)
{
	size_t nr;

	if (!want(rd, n, YAML_SEQUENCE_NODE, path))
		return;
	nr = (size_t)(n->data.sequence.items.top - n->data.sequence.items.start);
	/* No grants at all means everything: an empty list could be read either way. */
	if (e->grant || nr == 0 || nr > AUTH_GRANTS_MAX) {
		fail(rd, n, path, e->grant ? "given twice" : "expected 1 to %d grants", AUTH_GRANTS_MAX);
		return;
	}
	e->grant = calloc(nr, sizeof *e->grant);
	if (!e->grant) {
		rd->no_memory = true;
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		char name[160];

		snprintf(name, sizeof name, "%s[%zu]", path, i);
		take_grant(rd, yaml_document_get_node(rd->doc, n->data.sequence.items.start[i]), name,
			   &e->grant[e->grant_nr++]);
	}
}

/* ---- addresses ---- */

/* A list of at most max addresses and blocks. */
static void
take_nets(struct reader *rd, const yaml_node_t *n, const char *path, size_t max, struct conf_net **nets,
	  int *ret_nr)
{
	size_t nr;

	if (!want(rd, n, YAML_SEQUENCE_NODE, path))
		return;
	nr = (size_t)(n->data.sequence.items.top - n->data.sequence.items.start);
	/* An empty list could be read as all or as none. */
	if (*nets || nr == 0 || nr > max) {
		fail(rd, n, path, *nets ? "given twice" : "expected 1 to %zu addresses or blocks", max);
		return;
	}
	*nets = calloc(nr, sizeof **nets);
	if (!*nets) {
		rd->no_memory = true;
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		const yaml_node_t *v = yaml_document_get_node(rd->doc, n->data.sequence.items.start[i]);
		char name[160], why[CONF_NET_REFUSAL_MAX];

		snprintf(name, sizeof name, "%s[%zu]", path, i);
		if (!want(rd, v, YAML_SCALAR_NODE, name))
			continue;
		/* A text with more bytes after a NUL is no address either. */
		if (strlen(text_of(v).p) != text_of(v).len ||
		    conf_net_parse(text_of(v).p, &(*nets)[(*ret_nr)++]) < 0)
			fail(rd, v, name, "%s", conf_net_refusal(text_of(v).p, why));
	}
}

/* ---- entries ---- */

static void
take_value(struct reader *rd, const yaml_node_t *v, const char *name, const char *key, struct auth_entry *e)
{
	if (strcmp(key, "gids") == 0) {
		take_nets(rd, v, name, AUTH_GIDS_MAX, &e->gid, &e->gid_nr);
		return;
	}
	if (strcmp(key, "from") == 0) {
		take_nets(rd, v, name, AUTH_FROM_MAX, &e->from, &e->from_nr);
		return;
	}
	if (strcmp(key, "grants") == 0) {
		take_grants(rd, v, name, e);
		return;
	}
	if (!want(rd, v, YAML_SCALAR_NODE, name))
		return;
	if (strcmp(key, "access_key") == 0)
		take_text(rd, v, name, 3, AUTH_ACCESS_KEY_MAX, "/,=%", "", &e->access_key, NULL);
	else if (strcmp(key, "secret_key") == 0)
		take_text(rd, v, name, SECRET_MIN, AUTH_SECRET_MAX, "", "AWS4", &e->secret, &e->secret_len);
	else if (strcmp(key, "session_token") == 0)
		take_text(rd, v, name, 1, AUTH_TOKEN_MAX, "", "", &e->token, &e->token_len);
	else if (strcmp(key, "read_only") == 0)
		take_bool(rd, v, name, &e->read_only);
	else if (strcmp(key, "no_delete") == 0)
		take_bool(rd, v, name, &e->no_delete);
	else if (strcmp(key, "no_overwrite") == 0)
		take_bool(rd, v, name, &e->no_overwrite);
	else if (strcmp(key, "comment") == 0)
		take_comment(rd, v, name, &e->comment);
	else if (strcmp(key, "made") == 0)
		take_time(rd, v, name, &e->have_made, &e->made_s);
	else
		take_time(rd, v, name, &e->have_expires, &e->expires_s);
}

static void
take_entry(struct reader *rd, const yaml_node_t *n, const char *path, struct auth_entry *e)
{
	static const char *const known[] = { "access_key", "secret_key", "session_token", "expires",
					     "read_only",  "no_delete",  "no_overwrite",  "from",
					     "grants",     "gids",       "comment",       "made",
					     NULL };

	if (!want(rd, n, YAML_MAPPING_NODE, path))
		return;
	for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
		char name[128];
		const yaml_node_t *v = pair(rd, p, path, known, name, sizeof name);

		if (v)
			take_value(rd, v, name, name + strlen(path) + 1, e);
	}
	if (!e->access_key)
		fail(rd, n, path, "access_key is missing, or not good");
	if (!e->secret)
		fail(rd, n, path, "secret_key is missing, or not good");
	if (e->access_key && e->secret)
		secret_id(e->access_key, e->secret + SECRET_BEGINS, e->id);
	if (usage_new(e) < 0)
		rd->no_memory = true;
}

static int
by_access_key(const void *a, const void *b)
{
	const struct auth_entry *x = a, *y = b;

	return strcmp(x->access_key, y->access_key);
}

/* In the order of the file, still. */
static void
check_twins(struct reader *rd, const struct auth_keys *keys)
{
	for (int i = 1; i < keys->nr; i++) {
		for (int j = 0; j < i; j++) {
			if (entries_are_twins(&keys->entry[i], &keys->entry[j]))
				fail(rd, NULL, "", "[%d] has the access key and the secret of [%d]", i, j);
		}
	}
}

static void
take_list(struct reader *rd, const yaml_node_t *root, struct auth_keys *keys)
{
	size_t nr;

	if (root && root->type != YAML_SEQUENCE_NODE) {
		fail(rd, root, "", "expected a list of credentials (- { access_key: ..., secret_key: ... })");
		return;
	}
	/* A file with nothing in it is more likely one that was cut short than a wish: none at all is written as []. */
	if (!root && !rd->may_be_empty)
		fail(rd, root, "", "expected a list of credentials, or [] for none at all");
	if (!root)
		return;
	nr = (size_t)(root->data.sequence.items.top - root->data.sequence.items.start);
	if (nr > AUTH_KEYS_MAX) {
		fail(rd, root, "", "expected at most %d credentials", AUTH_KEYS_MAX);
		return;
	}
	if (nr == 0)
		return;
	keys->entry = calloc(nr, sizeof *keys->entry);
	if (!keys->entry) {
		rd->no_memory = true;
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		char path[40];

		snprintf(path, sizeof path, "[%zu]", i);
		take_entry(rd, yaml_document_get_node(rd->doc, root->data.sequence.items.start[i]), path,
			   &keys->entry[keys->nr++]);
	}
	if (rd->errors || rd->no_memory)
		return;
	check_twins(rd, keys);
	/* In glibc a merge sort, so equal ones keep their order; nothing depends on it but which is tried
	 * first. */
	qsort(keys->entry, nr, sizeof *keys->entry, by_access_key);
}

/* libyaml frees its copies as they are. */
void
credentials_wipe_document(struct yaml_document_s *doc)
{
	for (yaml_node_t *n = doc->nodes.start; n < doc->nodes.top; n++) {
		if (n->type == YAML_SCALAR_NODE)
			OPENSSL_cleanse(n->data.scalar.value, n->data.scalar.length);
	}
	yaml_document_delete(doc);
}

void
credentials_wipe(struct yaml_parser_s *y)
{
	if (y->buffer.start)
		OPENSSL_cleanse(y->buffer.start, (size_t)(y->buffer.end - y->buffer.start));
	if (y->raw_buffer.start)
		OPENSSL_cleanse(y->raw_buffer.start, (size_t)(y->raw_buffer.end - y->raw_buffer.start));
	yaml_parser_delete(y);
}

static void
parse_document(struct reader *rd, yaml_parser_t *y, struct auth_keys *keys)
{
	yaml_document_t doc, next;

	if (!yaml_parser_load(y, &doc)) {
		fail(rd, NULL, "", "not valid YAML: %s (line %zu)", y->problem ? y->problem : "unknown",
		     y->problem_mark.line + 1);
		return;
	}
	rd->doc = &doc;
	take_list(rd, yaml_document_get_root_node(&doc), keys);
	if (!yaml_parser_load(y, &next)) {
		fail(rd, NULL, "", "not valid YAML: %s (line %zu)", y->problem ? y->problem : "unknown",
		     y->problem_mark.line + 1);
	} else {
		if (yaml_document_get_root_node(&next))
			fail(rd, yaml_document_get_root_node(&next), "", "a second document");
		credentials_wipe_document(&next);
	}
	credentials_wipe_document(&doc);
}

/* Secrets, and what is derived from them for a day. */
static void
keep_from_dumps(const struct auth_keys *keys)
{
	nodump(keys->entry, (size_t)keys->nr * sizeof *keys->entry);
	for (int i = 0; i < keys->nr; i++) {
		nodump(keys->entry[i].secret, keys->entry[i].secret_len);
		nodump(keys->entry[i].token, keys->entry[i].token_len);
	}
}

int
credentials_parse(const char *text, size_t len, const char *source, bool may_be_empty,
		  struct auth_keys **ret_keys, FILE *err)
{
	struct reader rd = { .source = source, .err = err, .may_be_empty = may_be_empty };
	struct auth_keys *keys = calloc(1, sizeof *keys);
	yaml_parser_t y;

	if (!keys)
		return -ENOMEM;
	keys->refs = 1;
	if (!yaml_parser_initialize(&y)) {
		free(keys);
		return -ENOMEM;
	}
	yaml_parser_set_input_string(&y, (const unsigned char *)text, len);
	parse_document(&rd, &y, keys);
	credentials_wipe(&y);
	if (rd.errors || rd.no_memory) {
		auth_keys_put(keys);
		return rd.no_memory ? -ENOMEM : -EINVAL;
	}
	keep_from_dumps(keys);
	*ret_keys = keys;
	return 0;
}

int
auth_keys_parse(const char *text, size_t len, const char *source, struct auth_keys **ret_keys, FILE *err)
{
	return credentials_parse(text, len, source, false, ret_keys, err);
}

/*
 * Private to conf/: the table of keys, the tree that a source is read into, and the loader that puts one onto
 * the other. Everything here runs on the thread that called conf_load().
 */
#ifndef GANTRY_CONF_CONF_INT_H
#define GANTRY_CONF_CONF_INT_H

#include "conf/conf.h"

#include <stdarg.h>

/* ---- the table of keys (table.c) ---- */

enum key_type {
	KT_BOOL,
	KT_INT,  /* int */
	KT_U64,  /* uint64_t, decimal or 0x */
	KT_SIZE, /* uint64_t, bytes */
	KT_TIME, /* uint64_t, nanoseconds */
	KT_WORD, /* an enum whose values are the indices of words */
	KT_MTU,  /* int, a power of two */
	KT_STRING,
	KT_ADDR,    /* struct addr_field */
	KT_NETS,    /* rdma.allow */
	KT_SPECIAL, /* rdma.allow_special */
	KT_DEVICES, /* rdma.devices */
	KT_CORES,   /* cores */
	KT_LEVELS,  /* log.levels */
	KT_DOMAINS, /* s3.domain */
	KT_MAPS,    /* a list of maps with a table of its own */
};

#define KEY_RELOAD 1u /* a reload changes it; everything else needs a restart */
#define KEY_SECRET 2u /* shown masked unless it has its default */
#define KEY_AUTO 4u   /* "auto" may be written; stored as 0 */
#define KEY_NONE 8u   /* "none" may be written; stored as NULL */
#define KEY_REQUIRED 16u
#define KEY_S3 32u /* only where dialect is s3 */
#define KEY_SCALITY 64u
#define KEY_KIND 128u /* with KEY_RELOAD and KEY_NONE: a reload changes it, but not from or to none */

struct key_list;

struct conf_key {
	const char *name; /* dotted; in the table of a list the part behind "listen[]." */
	enum key_type type;
	unsigned flags;
	uint64_t min, max;        /* KT_INT, KT_U64, KT_SIZE, KT_TIME */
	size_t offset;            /* into struct conf, or into the list's element */
	const char *def;          /* default, as it would be written; NULL: there is none */
	const char *const *words; /* KT_WORD, KT_SPECIAL: NULL-terminated */
	const struct key_list *list;
	const char *help;
};

/* Elements lie in an array inside struct conf. */
struct key_list {
	const struct conf_key *keys;
	int key_nr;
	size_t offset, nr_offset, elem_bytes;
	int max;
	const char *what; /* "a listener" */
};

extern const struct conf_key conf_keys[];
extern const int conf_key_nr;

/* What KT_ADDR writes: the beginning of struct conf_listen and of conf.admin. */
struct addr_field {
	char *address;
	struct sockaddr_storage sa;
	socklen_t sa_len;
};

const struct conf_key *key_find(const struct conf_key *keys, int nr, const char *name);
/* Is there a key "<name>.something"? */
bool key_is_section(const char *name);
/* What may be written, for messages and the manual: "an integer from 0 to 7". */
void key_expected(const struct conf_key *k, char *out, size_t cap);
/* The known name nearest to `name`, or NULL if none is near.  buf holds the answer. */
const char *key_nearest(const char *name, char *buf, size_t cap);
int edit_distance(const char *a, const char *b, int limit);

/* ---- a source as a tree (yaml.c) ---- */

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	int line, column; /* from 1; 0: not from a file */
	char *text;       /* NODE_SCALAR */
	bool plain;       /* not quoted: may mean null */
	struct node **item;
	int item_nr; /* NODE_MAP: keys and values in turn */
};

struct node *node_scalar(const char *text, size_t len);
void node_free(struct node *n);
bool node_is_null(const struct node *n);

/* ---- the loader (load.c) ---- */

struct conf_origin {
	char *path;   /* "rdma.dc_key", "listen[0].address" */
	char *source; /* a file's name, "environment GANTRY_X", "option -o"; NULL: default */
	int line, column;
};

struct loader {
	struct conf *conf;
	FILE *err;
	const char *source; /* of what is being read */
	bool is_file;
	bool defaults; /* are being read: before all else, each key once */
	int errors;
	struct conf_origin *origin;
	int origin_nr, origin_cap;
	bool no_memory;
	bool starts;
	/* `cores` as written: a number, or one of the next two; CPUs are looked up by verify() */
	int cores_count;
};
#define CORES_AUTO (-1)
#define CORES_LIST (-2) /* conf->cores holds it */

/* An error at a node of the source being read. */
void load_fail(struct loader *ld, const struct node *n, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* An error about a key, wherever its value came from. */
void load_fail_key(struct loader *ld, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A key that is not in the table: names the nearest one that is. */
void load_unknown(struct loader *ld, const struct node *key, const char *path);
void load_set_origin(struct loader *ld, const char *path, const struct node *n);
void load_drop_origins(struct loader *ld, const char *prefix);

/* Text of a YAML stream onto a tree; NULL with the error reported, or for an empty document (*ret_ok true
 * then). */
struct node *yaml_read(struct loader *ld, const char *text, size_t len, bool *ret_ok);
/* Puts a tree of sections onto the configuration. */
void load_tree(struct loader *ld, const struct node *root);

/* ---- one key's value (value.c, lists.c) ---- */

/* Parses n into base + k->offset.  Errors are reported with `path`;
 * the old value stays then.  0 or -EINVAL. */
int value_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	      void *base);
void value_free(const struct conf_key *k, void *base);
/* As it would be written in a file, on one line.  KT_MAPS: nothing. */
void value_print(const struct conf_key *k, const void *base, FILE *out);
void string_print(const char *s, FILE *out);
/* The same as a text of its own, secrets masked; the caller frees it.  NULL: out of memory. */
char *value_text(const struct conf_key *k, const void *base);
/* Is that a key of elements of another dialect? */
bool key_is_foreign(const struct conf *c, const struct key_list *l, int elem, const struct conf_key *k);

int lists_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	      void *base);
void lists_free(const struct conf_key *k, void *base);
void lists_print(const struct conf_key *k, const void *base, FILE *out);

int size_parse(const char *text, uint64_t *ret_bytes);
int time_parse(const char *text, uint64_t *ret_ns);
void size_format(uint64_t bytes, char *out, size_t cap);
void time_format(uint64_t ns, char *out, size_t cap);
/* Decimal or 0x; nothing else around it.  0, -EINVAL, -ERANGE. */
int u64_parse(const char *text, uint64_t *ret_value);
void net_format(const struct conf_net *net, char *out, size_t cap);

/* ---- what no single key shows (verify.c) ---- */

/* Resolves cores and automatic sizes, then checks keys against each other and against the machine. */
void verify(struct loader *ld, bool partial);

#endif

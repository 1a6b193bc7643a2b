/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to conf/: the table of keys, the tree of a parsed source, and the loader that applies one source
 * after the other. Everything here runs on the thread that called conf_load().
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
	KT_NETS,    /* struct conf_nets: rdma.allow, listen[].proxy */
	KT_SPECIAL, /* rdma.allow_special */
	KT_DEVICES, /* rdma.devices */
	KT_CORES,   /* cores */
	KT_LEVELS,  /* log.levels */
	KT_DOMAINS, /* s3.domain */
	KT_UUIDS,   /* store.accept_missing */
	KT_MAPS,    /* a list of maps with a table of its own */
};

#define KEY_RELOAD 1u /* a reload applies a change of the key; other keys need a restart */
#define KEY_SECRET 2u /* a value other than the default is printed masked */
#define KEY_AUTO 4u   /* the value "auto" is allowed; stored as 0 */
#define KEY_NONE 8u   /* the value "none" is allowed; stored as NULL */
#define KEY_REQUIRED 16u
#define KEY_S3 32u /* the key exists only for dialect s3 */
#define KEY_SCALITY 64u
/* with KEY_RELOAD and KEY_NONE: a reload may change the value, but not from or to none */
#define KEY_KIND 128u
/* The class of a key. Keys without either bit are basic: the keys that an operator sets to get a server. */
#define KEY_TUNING 256u /* limits, rates and parameters of the wire, whose defaults fit most machines */
#define KEY_TEST 512u   /* keys for tests, which no server needs */

struct key_list;

struct conf_key {
	const char *name; /* dotted; in the table of a list the part after "listen[]." */
	enum key_type type;
	unsigned flags;
	uint64_t min, max;        /* limits of KT_INT, KT_U64, KT_SIZE, KT_TIME */
	size_t offset;            /* into struct conf, or into the list's element */
	const char *def;          /* default value, as in a file; NULL: none */
	const char *const *words; /* KT_WORD, KT_SPECIAL: NULL-terminated */
	const struct key_list *list;
	const char *help;
};

/* A list whose elements are stored in an array inside struct conf. */
struct key_list {
	const struct conf_key *keys;
	int key_nr;
	size_t offset, nr_offset, elem_bytes;
	int max;
	const char *what; /* "a listener" */
};

struct loader;
struct node;

extern const struct conf_key conf_keys[];
extern const int conf_key_nr;

/* The destination of KT_ADDR: the beginning of struct conf_listen and of conf.admin. */
struct addr_field {
	char *address;
	struct sockaddr_storage sa;
	socklen_t sa_len;
};

/* Looks up a key by its name in a table of nr keys. NULL: not found. */
const struct conf_key *key_find(const struct conf_key *keys, int nr, const char *name);
/* Returns true if there is a key "<name>.something". */
bool key_is_section(const char *name);
/* Describes the values allowed for k, for messages and the manual: "an integer from 0 to 7". */
void key_expected(const struct conf_key *k, char *out, size_t cap);
/* Returns the known name nearest to `name`, in buf, or NULL if none is near. */
const char *key_nearest(const char *name, char *buf, size_t cap);
/* Reports a key that is not in the table, with the nearest key of the table. */
void load_unknown(struct loader *ld, const struct node *key, const char *path);

/* ---- a source as a tree (yaml.c) ---- */

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	int line, column; /* from 1; 0: not from a file */
	char *text;       /* NODE_SCALAR */
	bool plain;       /* the text is not quoted, and may mean null */
	struct node **item;
	int item_nr; /* NODE_MAP: keys and values in turn */
};

/* Makes a scalar of len bytes of text.  NULL: out of memory. */
struct node *node_scalar(const char *text, size_t len);
/* Frees a tree.  NULL is fine. */
void node_free(struct node *n);
/* Returns true if a node is an empty value: nothing, ~ or null, not quoted. */
bool node_is_null(const struct node *n);

/* ---- the loader (load.c), and its messages (diag.c) ---- */

#define ERRORS_SHOWN 100 /* errors printed in full; further ones are only counted */

struct conf_origin {
	char *path;   /* "rdma.dc_key", "listen[0].address" */
	char *source; /* a file's name, "environment GANTRY_X", "option -o"; NULL: default */
	int line, column;
};

struct loader {
	struct conf *conf;
	FILE *err;
	const char *source;       /* name of the source being read */
	const char *missing_file; /* path of the default file, if it does not exist */
	bool is_file;
	bool defaults; /* true while the defaults are applied, before any source, each key once */
	int errors;
	struct conf_origin *origin;
	int origin_nr, origin_cap;
	bool no_memory;
	bool starts;
	/* configured value of `cores`: a number, CORES_AUTO or CORES_LIST; verify() looks up the CPUs */
	int cores_count;
};
#define CORES_AUTO (-1)
#define CORES_LIST (-2) /* the list is in conf->cores */

/* Reports an error at a node of the current source. */
void load_fail(struct loader *ld, const struct node *n, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Reports an error about a key, with the source of its value. */
void load_fail_key(struct loader *ld, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Notes that the value of the key at path comes from node n of the current source. */
void load_set_origin(struct loader *ld, const char *path, const struct node *n);
/* Removes the recorded sources of all keys whose paths begin with prefix. */
void load_drop_origins(struct loader *ld, const char *prefix);

/* Reads the text of a YAML stream into a tree.  NULL with the error reported, or for an empty document
 * (*ret_ok is true then). */
struct node *yaml_read(struct loader *ld, const char *text, size_t len, bool *ret_ok);

/* ---- one key's value (value.c, lists.c) ---- */

/* Parses n into base + k->offset. Errors are reported with `path`, and the old value remains. 0 or
 * -EINVAL. */
int value_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	      void *base);
/* Frees what value_set() allocated for k in base. */
void value_free(const struct conf_key *k, void *base);
/* Prints the value as in a file, on one line; nothing for KT_MAPS. */
void value_print(const struct conf_key *k, const void *base, FILE *out);
/* Prints a string, quoted where YAML needs it. */
void string_print(const char *s, FILE *out);
/* Returns the value as value_print() would print it, secrets masked; the caller frees it.  NULL: out of
 * memory. */
char *value_text(const struct conf_key *k, const void *base);
/* Returns true if an element of this dialect does not have the key k. */
bool key_is_foreign(const struct conf *c, const struct key_list *l, int elem, const struct conf_key *k);

/* Parses, frees and prints values that are lists; called by value_set(), value_free() and value_print(). */
int lists_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	      void *base);
void lists_free(const struct conf_key *k, void *base);
void lists_print(const struct conf_key *k, const void *base, FILE *out);

/* ---- numbers with and without units (units.c), networks (net.c) ---- */

/* Parses "1.5GiB" or a number of bytes.  0, -EINVAL, or -ERANGE beyond 64 bits. */
int size_parse(const char *text, uint64_t *ret_bytes);
/* Parses "5ms"; "0" needs no unit. 0, -EINVAL, or -ERANGE beyond 64 bits. */
int time_parse(const char *text, uint64_t *ret_ns);
/* Prints a size with the largest unit in which it is a whole number. */
void size_format(uint64_t bytes, char *out, size_t cap);
/* Prints a time with the largest unit in which it is a whole number. */
void time_format(uint64_t ns, char *out, size_t cap);
/* Parses a decimal or 0x number without other characters. 0, -EINVAL, -ERANGE. */
int u64_parse(const char *text, uint64_t *ret_value);

/* ---- the control group's memory (cgroup.c) ---- */

/* Returns the least memory limit, in bytes, of the control groups of this process, version 1 or 2, and of
 * their parents; UINT64_MAX: no limit. root: a directory in place of /, for tests. */
uint64_t cgroup_memory_bytes(const char *root);

/* ---- checks of several keys together (verify.c) ---- */

/* Resolves cores and automatic sizes, then checks keys against each other and against the machine. */
void verify(struct loader *ld, bool partial);

#endif

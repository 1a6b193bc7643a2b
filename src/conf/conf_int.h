/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of conf/: the table of keys, the tree of a parsed source, and the loader,
 * which applies one source after the other. All functions run on the thread that called conf_load().
 */
#ifndef GANTRY_CONF_CONF_INT_H
#define GANTRY_CONF_CONF_INT_H

#include "conf/conf.h"

#include <stdarg.h>

/* ---- the table of keys (table.c) ---- */

enum key_type {
	KT_BOOL,
	KT_INT,  /* an int */
	KT_U64,  /* uint64_t, decimal or 0x */
	KT_SIZE, /* a size in bytes, in a uint64_t */
	KT_TIME, /* a time in nanoseconds, in a uint64_t */
	KT_WORD, /* an enum; its values are the indices in conf_key.words */
	KT_MTU,  /* int, a power of two */
	KT_STRING,
	KT_ADDR,    /* an address with a port, in a struct addr_field */
	KT_NETS,    /* struct conf_nets: rdma.allow, listen[].proxy */
	KT_SPECIAL, /* the value of rdma.allow_special */
	KT_DEVICES, /* the value of rdma.devices */
	KT_CORES,   /* the value of the key cores */
	KT_LEVELS,  /* the value of log.levels */
	KT_DOMAINS, /* the value of s3.domain */
	KT_UUIDS,   /* the value of store.accept_missing */
	KT_MAPS,    /* a list of maps, whose keys have a table of their own (conf_key.list) */
};

#define KEY_RELOAD 1u /* a reload applies a change of the key; other keys need a restart */
#define KEY_SECRET 2u /* a value other than the default is printed masked */
#define KEY_AUTO 4u   /* the value "auto" is allowed; stored as 0 */
#define KEY_NONE 8u   /* the value "none" is allowed; stored as NULL */
#define KEY_REQUIRED 16u
#define KEY_S3 32u /* the key exists only for dialect s3 */
#define KEY_SCALITY 64u
/* used with KEY_RELOAD and KEY_NONE: a reload applies a change of the value, but not a change from or to
 * "none" */
#define KEY_KIND 128u
/* Bits of the class of a key. A key without these bits is basic: an operator sets it to get a working
 * server. */
#define KEY_TUNING 256u /* limits, rates and parameters of the wire; their defaults fit most machines */
#define KEY_TEST 512u   /* keys for tests; no server needs them */

struct key_list;

struct conf_key {
	/* full name with dots ("rdma.dc_key"); in the table of a list only the name after "listen[]." */
	const char *name;
	enum key_type type;
	unsigned flags;
	uint64_t min, max;        /* smallest and largest value of KT_INT, KT_U64, KT_SIZE, KT_TIME */
	size_t offset;            /* offset of the field in struct conf, or in the element of a list */
	const char *def;          /* default value, as written in a file; NULL: no default */
	const char *const *words; /* allowed words of KT_WORD and KT_SPECIAL; NULL-terminated */
	const struct key_list *list;
	const char *help;
};

/* A list whose elements are stored in an array inside struct conf. */
struct key_list {
	const struct conf_key *keys;
	int key_nr;
	size_t offset, nr_offset, elem_bytes;
	int max;
	const char *what; /* name of an element in messages: "a listener" */
};

struct loader;
struct node;

extern const struct conf_key conf_keys[];
extern const int conf_key_nr;

/* The fields in which a value of type KT_ADDR is stored: struct conf_listen and conf.admin begin with
 * them. */
struct addr_field {
	char *address;
	struct sockaddr_storage sa;
	socklen_t sa_len;
};

/* Looks up a key by its name in a table of nr keys. Returns NULL if there is no such key. */
const struct conf_key *key_find(const struct conf_key *keys, int nr, const char *name);
/* Returns true if `name` is a section: the name of a key begins with "<name>.". */
bool key_is_section(const char *name);
/* Describes the allowed values of k, for messages and the manual: "an integer from 0 to 7". */
void key_expected(const struct conf_key *k, char *out, size_t cap);
/* Finds the name of a key that differs from `name` by few typing mistakes, and writes it to buf. Returns buf;
 * NULL: there is no such key. */
const char *key_nearest(const char *name, char *buf, size_t cap);
/* Reports a key that is not in the table of keys, with the nearest name of the table. */
void load_unknown(struct loader *ld, const struct node *key, const char *path);

/* ---- a source as a tree (yaml.c) ---- */

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	int line, column; /* position in the file, from 1; 0: the source is not a file */
	char *text;       /* text of a NODE_SCALAR */
	bool plain;       /* true: the text is not quoted, so that null or ~ means an empty value */
	struct node **item;
	int item_nr; /* number of items; keys and values of a NODE_MAP alternate */
};

/* Makes a scalar of len bytes of text. Returns NULL if there is no memory. */
struct node *node_scalar(const char *text, size_t len);
/* Frees a tree. NULL is allowed. */
void node_free(struct node *n);
/* Returns true if a node is an empty value: the text is empty, ~ or null, and is not quoted. */
bool node_is_null(const struct node *n);

/* ---- the loader (load.c), and its messages (diag.c) ---- */

#define ERRORS_SHOWN 100 /* number of errors that are printed; further errors are only counted */

struct conf_origin {
	char *path;   /* path of the key, such as "rdma.dc_key" or "listen[0].address" */
	char *source; /* name of a file, "environment GANTRY_X", or "option -o"; NULL: the default */
	int line, column;
};

struct loader {
	struct conf *conf;
	FILE *err;
	const char *source;       /* name of the source being read */
	const char *missing_file; /* path of the default file, if it does not exist */
	bool is_file;
	/* true while the keys get their defaults, which happens before the first source (file, environment, option)
	 * is read */
	bool defaults;
	int errors;
	struct conf_origin *origin;
	int origin_nr, origin_cap;
	bool no_memory;
	bool starts;
	/* value of the key `cores`: a number of CPUs, CORES_AUTO or CORES_LIST; verify() chooses the CPUs */
	int cores_count;
};
#define CORES_AUTO (-1)
#define CORES_LIST (-2) /* conf->cores has the list */

/* Reports an error in a node of the current source. */
void load_fail(struct loader *ld, const struct node *n, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Reports an error in the value of a key, with the source of the value. */
void load_fail_key(struct loader *ld, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Writes a line to the error stream without counting it as an error. */
void load_note(struct loader *ld, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Stores the current source, and the position of node n in it, as the origin of the value of the key at
 * path. */
void load_set_origin(struct loader *ld, const char *path, const struct node *n);
/* Removes the stored origins of all keys whose paths begin with prefix. */
void load_drop_origins(struct loader *ld, const char *prefix);

/* Parses the text of a YAML file into a tree. Returns the tree, which the caller frees. Returns NULL with
 * *ret_ok true if the document is empty, and NULL with *ret_ok false after reporting an error. */
struct node *yaml_read(struct loader *ld, const char *text, size_t len, bool *ret_ok);

/* ---- one key's value (value.c, lists.c) ---- */

/* Parses node n as a value of key k, and stores it at base + k->offset. Returns 0; or -EINVAL after reporting
 * the error with `path`, and the old value is unchanged. */
int value_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	      void *base);
/* Frees the memory that value_set() has allocated for the value of k in base. */
void value_free(const struct conf_key *k, void *base);
/* Prints the value of k in base on one line, as in a configuration file; prints nothing for KT_MAPS. */
void value_print(const struct conf_key *k, const void *base, FILE *out);
/* Prints a string, quoted where YAML needs it. */
void string_print(const char *s, FILE *out);
/* Returns the text that value_print() prints, with secrets masked; the caller frees it. Returns NULL if there
 * is no memory. */
char *value_text(const struct conf_key *k, const void *base);
/* Returns true if key k does not exist for element elem of list l, because the listener has another
 * dialect. */
bool key_is_foreign(const struct conf *c, const struct key_list *l, int elem, const struct conf_key *k);

/* Parses a value that is a list; called by value_set(). */
int lists_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n,
	      void *base);
void lists_free(const struct conf_key *k, void *base);
void lists_print(const struct conf_key *k, const void *base, FILE *out);

/* ---- numbers with and without units (units.c), networks (net.c) ---- */

/* Parses a size: "1.5GiB", or a number of bytes. Returns 0, -EINVAL, or -ERANGE if the size has more than 64
 * bits. */
int size_parse(const char *text, uint64_t *ret_bytes);
/* Parses a time such as "5ms" or "7d"; "0" needs no unit. Returns 0, -EINVAL, or -ERANGE if the time has more than 64
 * bits. */
int time_parse(const char *text, uint64_t *ret_ns);
/* Writes the size or the time that a text may have meant ("512M", "512MB"; "8" without a unit), and returns true; false: the text
 * has no such form. */
bool size_hint(const char *text, char *out, size_t cap);
bool time_hint(const char *text, char *out, size_t cap);
/* Prints a size as a whole number of the largest possible unit. */
void size_format(uint64_t bytes, char *out, size_t cap);
/* Prints a time as a whole number of the largest possible unit, which is at most the second. */
void time_format(uint64_t ns, char *out, size_t cap);
/* Parses a number, decimal or with 0x, without other characters. Returns 0, -EINVAL, or -ERANGE if the number
 * has more than 64 bits. */
int u64_parse(const char *text, uint64_t *ret_value);

/* ---- the control group's memory (cgroup.c) ---- */

/* Returns the smallest memory limit, in bytes, of the control groups (version 1 or 2) of this process and of
 * their parents; UINT64_MAX: no limit. root: directory that tests use in place of /. */
uint64_t cgroup_memory_bytes(const char *root);

/* ---- checks of several keys together (verify.c) ---- */

/* Resolves the CPUs and automatic sizes, then checks keys against each other and against the machine. */
void verify(struct loader *ld, bool partial);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the entries in the text of a credentials file, for the functions that edit the text. Pure functions. */
#ifndef GANTRY_AUTH_KEYLAYOUT_H
#define GANTRY_AUTH_KEYLAYOUT_H

#include "auth/auth_int.h"

#include <yaml.h>

/* The position of an entry in the text, in bytes: from its dash, or in a list in brackets from its first character, to
 * the end of its last character. */
struct item {
	size_t at, end;
	size_t comma_at; /* position of the comma after the entry; 0: none */
};

struct layout {
	const char *text;
	size_t len;
	bool in_brackets; /* the list has brackets */
	/* position of the list; end: position of a further entry, except in brackets */
	size_t at, end;
	int depth;    /* number of open collections at the position of the scanner */
	bool is_open; /* the scanner is in the last item */
	struct item
		*item; /* the entries in the order of the file; the caller of layout_find() frees the array */
	int nr, cap;
	/* the last position that layout_byte() has computed, in characters and in bytes */
	size_t chars, bytes;
	size_t last_mark; /* end of the last token with a text, in characters */
};

/* Finds the entries of a text that credentials_parse() has accepted. Returns 0, -ENOMEM, or -EINVAL if the text is not
 * UTF-8. */
int layout_find(struct layout *l);
/* Returns the position in bytes of a mark of the YAML library, which counts characters. */
size_t layout_byte(struct layout *l, size_t mark);
/* Returns the length of the line break at a position; 0: there is none. */
size_t layout_break(const struct layout *l, size_t at);
/* Returns true if a line begins at the position. */
bool layout_begins_line(const struct layout *l, size_t at);
/* Returns the end of the line of a position, with the line break. */
size_t layout_line_end(const struct layout *l, size_t at);
/* Returns the position of the blanks before a position. */
size_t layout_unindented(const struct layout *l, size_t at);

/* The nodes of an entry in the YAML library's tree: values; NULL: the entry does not have the member. */
struct entry_nodes {
	const yaml_node_t *secret_name; /* the name "secret_key" */
	const yaml_node_t *access_key, *secret, *expires, *made;
	bool in_braces; /* the entry has braces */
};
/* Calls fn() for entry i of the text, in the order of the file. The nodes are valid during the call only. Returns 0 or
 * -ENOMEM. */
int layout_nodes(const struct layout *l, void (*fn)(void *cookie, int i, const struct entry_nodes *n),
		 void *cookie);

/* ---- edits (keyedit.c) ---- */

/* Parses the text and finds the entries. Returns 0, and the keys in *ret_keys; or -errno, after writing the reason to
 * err. edit_end() ends the edit. */
int edit_begin(struct layout *l, const char *source, struct auth_keys **ret_keys, FILE *err);
/* Judges the text of an edit: `before` are the keys of the previous text, `after` those of the new one. */
typedef bool (*edit_good_fn)(const struct auth_keys *before, const struct auth_keys *after,
			     const void *cookie);
/* Ends an edit, whose new text was written to f, a stream of open_memstream(); f NULL: there was no memory. Releases
 * the keys `before`. Returns 0 if good() accepts the keys of the new text, which then belongs to the caller; or -errno,
 * after writing the reason to err. */
int edit_end(struct layout *l, const char *source, struct auth_keys *before, edit_good_fn good,
	     const void *cookie, FILE *f, char **text, size_t *len, FILE *err);
#endif

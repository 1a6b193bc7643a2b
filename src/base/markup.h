/* SPDX-License-Identifier: Apache-2.0 */
/* markup - checks of XML before a parser reads it. Pure functions, which any thread may call. */
#ifndef GANTRY_BASE_MARKUP_H
#define GANTRY_BASE_MARKUP_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if no tag, with its attributes, is longer than max bytes. A parser compares each attribute of
 * a tag with all other attributes of the tag, so a tag as long as a whole body would keep the parser busy for
 * a minute. */
bool markup_tags_are_short(const char *text, size_t len, size_t max);

#endif

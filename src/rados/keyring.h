/* SPDX-License-Identifier: Apache-2.0 */
/* keyring - says where librados has looked for the key of this gateway. */
#ifndef GANTRY_RADOS_KEYRING_H
#define GANTRY_RADOS_KEYRING_H

#include <rados/librados.h>
#include <stddef.h>

/* Appends a sentence to the text of one line in `text` (a buffer of cap bytes): the user of this process, and the result for each
 * keyring file of the configuration, or the number of files that have no room. user: name of the client, such as "gantry". Called by the thread that connects. */
void keyring_say(rados_t cluster, const char *user, char *text, size_t cap);

#endif

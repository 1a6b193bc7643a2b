/* SPDX-License-Identifier: Apache-2.0 */
/* keyring - reports the files in which librados has searched for the key of this gateway. */
#ifndef GANTRY_RADOS_KEYRING_H
#define GANTRY_RADOS_KEYRING_H

#include <rados/librados.h>
#include <stddef.h>

/* Appends to the sentence in `text`, one line in a buffer of cap bytes: the user of this process, and the
 * result for each keyring file of the configuration, or the number of files for which there is no room.
 * user: name of the client, such as "gantry". Called by the thread that connects. */
void keyring_say(rados_t cluster, const char *user, char *text, size_t cap);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* look - the state of a look-up of a key with two copies, and of an object that such a look-up has opened, for
 * look.c and read.c. */
#ifndef GANTRY_SET_LOOK_H
#define GANTRY_SET_LOOK_H

#include "set/key_op.h"

struct look {
	struct key_op ko;
	struct store_op *op; /* operation of the caller; it belongs to an object until the object is closed */
	struct store_look call; /* arguments for an engine; is_second is false in them */
	bool is_second;         /* true: only the secondary copy is opened */
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	int home; /* engine at which the key is looked up */
	int tries;
	/* operation at that engine; the state of an upload is read with the operation of the caller instead */
	union {
		struct store_op op;
		struct store_obj obj;
		struct store_part_list parts;
	} u;
	struct store_obj other; /* object or part at the other engine of the key */
	/* has_other: `other` is open; asked_other: an attempt to open `other` was made */
	bool has_other, asked_other;
};

/* Returns true for an error after which the other copy is tried. */
bool look_is_lost(int error);
/* Opens the other copy of an open object. Returns false if its disk does not have the version that was
 * opened. */
bool look_open_other(struct look *lk);

/* Begins the repair of a damaged copy with the bytes of the other copy. waits: a read that waits for the
 * repair: waits->go() follows (NULL: no read waits). During another repair the new repair is queued, or
 * dropped if no read waits for it. Returns true if waits->go() follows. */
bool mend_begin(struct look *lk, struct set_wait *waits);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The operations by number: the rows of op.def as the machine uses them.  A start that is missing does not
 * link. */
#include "ops/ops_int.h"

const struct op_entry op_table[OP_NR] = {
#define OP(id, name, start_, ...) [OP_##id] = { .start = start_ },
#include "dialect/op.def"

	[OP_GET_OBJECT].hooks = &get_hooks,
	[OP_HEAD_OBJECT].hooks = &get_hooks,
	[OP_GET_OBJECT_ATTRIBUTES].hooks = &attributes_hooks,
	[OP_PUT_OBJECT].hooks = &put_hooks,
	[OP_UPLOAD_PART].hooks = &put_hooks,
	[OP_POST_OBJECT].hooks = &form_hooks,
	[OP_CREATE_MULTIPART_UPLOAD].hooks = &upload_create_hooks,
	[OP_COMPLETE_MULTIPART_UPLOAD].hooks = &upload_complete_hooks,
	[OP_LIST_OBJECTS].hooks = &list_hooks,
	[OP_LIST_OBJECTS_V2].hooks = &list_hooks,
	[OP_LIST_OBJECT_VERSIONS].hooks = &list_hooks,
	[OP_LIST_MULTIPART_UPLOADS].hooks = &list_hooks,
	[OP_CREATE_BUCKET].hooks = &bucket_hooks,
	[OP_HEAD_BUCKET].hooks = &bucket_hooks,
	[OP_RC_CONNECT].hooks = &rc_connect_hooks,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The protocols of cuObject that a program can name. */
#ifndef GANTRY_CUOBJ_PROTOCOL_H
#define GANTRY_CUOBJ_PROTOCOL_H

typedef enum cuObjProto_enum {
	CUOBJ_PROTO_RDMA_DC_V1 = 1001, /* DC, the dynamically connected transport of mlx5 */
	CUOBJ_PROTO_MAX,
} cuObjProto_t;

#define OBJ_RDMA_V1 "CUOBJ"

#endif

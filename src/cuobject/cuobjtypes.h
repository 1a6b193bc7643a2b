/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types that the client interface and the server interface share. Names and numbers are those of NVIDIA's
 * published specifications of cuObject; the text is Gantry's.
 */
#ifndef GANTRY_CUOBJTYPES_H
#define GANTRY_CUOBJTYPES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol.h"

/* The result of a call that moves no bytes. */
typedef enum cuObjErr_enum {
	CU_OBJ_SUCCESS = 0,
	CU_OBJ_FAIL = 1,
} cuObjErr_t;

typedef enum cuObjOpType_enum {
	CUOBJ_GET = 0,
	CUOBJ_PUT = 1,
	CUOBJ_INVALID = 9999,
} cuObjOpType_t;

/*
 * Version numbers of cuObject, for programs that test them. They are defined only if the program is compiled
 * with -DGANTRY_CUOBJ_LEVEL=13 or =20, and then name release 1.3 or 2.0.
 */
#ifdef GANTRY_CUOBJ_LEVEL
#define CUOBJ_CLIENT_MAJOR_VERSION (GANTRY_CUOBJ_LEVEL / 10)
#define CUOBJ_CLIENT_MINOR_VERSION (GANTRY_CUOBJ_LEVEL % 10)
#define CUOBJ_SERVER_MAJOR_VERSION (GANTRY_CUOBJ_LEVEL / 10)
#define CUOBJ_SERVER_MINOR_VERSION (GANTRY_CUOBJ_LEVEL % 10)
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of setTelemFlags(). */
#ifndef GANTRY_CUOBJTELEM_H
#define GANTRY_CUOBJTELEM_H

/* Bits of `flags`: the lines that are logged. */
#define CUOBJ_LOG_PATH_INFO 1u  /* lines about sessions, ports and registrations */
#define CUOBJ_LOG_PATH_DEBUG 2u /* lines about each operation */
#define CUOBJ_LOG_PATH_ERROR 4u /* lines about failures and their causes */

/* Bits of `ops`: the operations about which CUOBJ_LOG_PATH_DEBUG logs lines. */
#define CUOBJ_LOG_OP_GET 1u
#define CUOBJ_LOG_OP_PUT 2u

#endif

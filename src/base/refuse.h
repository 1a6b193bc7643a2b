/* SPDX-License-Identifier: Apache-2.0 */
/* refuse - the reason of an error, as a sentence for operators. Any thread. */
#ifndef GANTRY_BASE_REFUSE_H
#define GANTRY_BASE_REFUSE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Writes the reason of an error to a buffer of err_len bytes. Returns e. */
static inline int __attribute__((format(printf, 4, 5)))
refuse(char *err, size_t err_len, int e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, err_len, fmt, ap);
	va_end(ap);
	return e;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What an error of the store or of memory means to a client.  Any thread. */
#include "req/machine.h"

#include <errno.h>

enum fault
fault_of(int err)
{
	switch (err) {
	case -ENOENT:
		return FAULT_NO_SUCH_KEY;
	case -ENXIO:
		return FAULT_NO_SUCH_BUCKET;
	case -EEXIST:
	case -ESTALE:
		return FAULT_PRECONDITION;
	case -EPERM:
		return FAULT_NO_OVERWRITE;
	case -ENOTEMPTY:
		return FAULT_BUCKET_NOT_EMPTY;
	case -EILSEQ:
		return FAULT_BAD_DIGEST;
	case -ENOSPC:
	case -ENOMEM:
		return FAULT_FULL;
	case -EDQUOT:
		return FAULT_QUOTA;
	case -EMLINK:
		return FAULT_TOO_MANY_BUCKETS;
	case -EAGAIN:
	case -EXDEV:
		return FAULT_BUSY;
	case -EROFS:
	case -ENODEV:
		return FAULT_NO_DISK;
	case -ECANCELED:
	case -ESHUTDOWN:
		return FAULT_UNAVAILABLE;
	case -EBADMSG:
		return FAULT_DAMAGED;
	case -EOPNOTSUPP:
		return FAULT_NOT_IMPLEMENTED;
	case -ENAMETOOLONG:
		return FAULT_KEY_TOO_LONG;
	case -EFBIG:
		return FAULT_TOO_LARGE;
	default:
		return FAULT_INTERNAL;
	}
}

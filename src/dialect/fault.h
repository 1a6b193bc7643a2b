/*
 * What can go wrong with a request, once: the step that knows what an -errno means makes it a fault, the
 * dialect makes that a status and a body (protocol.md 4.8).
 */
#ifndef GANTRY_DIALECT_FAULT_H
#define GANTRY_DIALECT_FAULT_H

#include <stdbool.h>

enum fault {
	FAULT_NONE,
	FAULT_BAD_REQUEST,       /* 400 InvalidRequest */
	FAULT_BAD_URI,           /* 400 InvalidURI */
	FAULT_BAD_TOKEN,         /* 400 InvalidRDMAToken */
	FAULT_BAD_ARGUMENT,      /* 400 InvalidArgument */
	FAULT_BAD_BUCKET_NAME,   /* 400 InvalidBucketName */
	FAULT_BAD_DIGEST,        /* 400 BadDigest */
	FAULT_INVALID_DIGEST,    /* 400 InvalidDigest: not base64 of the right length */
	FAULT_SHA_MISMATCH,      /* 400 XAmzContentSHA256Mismatch */
	FAULT_KEY_TOO_LONG,      /* 400 KeyTooLongError */
	FAULT_META_TOO_LARGE,    /* 400 MetadataTooLarge */
	FAULT_TOO_LARGE,         /* 400 EntityTooLarge */
	FAULT_INCOMPLETE_BODY,   /* 400 IncompleteBody */
	FAULT_REQUEST_TIMEOUT,   /* 400 RequestTimeout: the body stopped coming */
	FAULT_ACCESS_DENIED,     /* 403 AccessDenied */
	FAULT_SIGNATURE,         /* 403: a signed request, and signatures are not served */
	FAULT_NO_SUCH_KEY,       /* 404 NoSuchKey */
	FAULT_NO_SUCH_BUCKET,    /* 404 NoSuchBucket */
	FAULT_NOT_FOUND,         /* 404, no such route */
	FAULT_METHOD,            /* 405 MethodNotAllowed */
	FAULT_BUCKET_EXISTS,     /* 409 BucketAlreadyOwnedByYou */
	FAULT_BUCKET_NOT_EMPTY,  /* 409 BucketNotEmpty */
	FAULT_LENGTH_REQUIRED,   /* 411 MissingContentLength */
	FAULT_PRECONDITION,      /* 412 PreconditionFailed */
	FAULT_NOT_MODIFIED,      /* 304, no body */
	FAULT_RANGE,             /* 416 InvalidRange */
	FAULT_HEADERS_TOO_LARGE, /* 431 */
	FAULT_INTERNAL,          /* 500 InternalError */
	FAULT_TRANSFER,          /* 500 RDMATransferFailed, with reply 500 */
	FAULT_DAMAGED, /* 500 InternalError: stored bytes do not match their CRC; with reply 500 inside a
			  transfer */
	FAULT_NOT_IMPLEMENTED,    /* 501 NotImplemented */
	FAULT_RDMA_NOT_SUPPORTED, /* 501 RDMANotSupported: decline in the dialects of 4.2 */
	FAULT_BUSY,               /* 503 SlowDown, Retry-After */
	FAULT_DEADLINE,           /* 503 SlowDown: the deadline passed before any byte moved */
	FAULT_UNAVAILABLE, /* 503 ServiceUnavailable: disk missing or failed, outcome unknown, draining */
	FAULT_FULL,        /* 507 InsufficientStorage */
	FAULT_NR
};

struct fault_info {
	int status;
	const char *code;    /* S3 code */
	const char *message; /* one sentence; a request may give its own */
};

const struct fault_info *fault_info(enum fault f);

#endif

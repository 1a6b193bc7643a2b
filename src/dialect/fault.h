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
	FAULT_SIGNATURE,         /* 403 SignatureDoesNotMatch */
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
	/* 500 InternalError: stored bytes do not match their CRC; with reply 500 inside a transfer */
	FAULT_DAMAGED,
	FAULT_NOT_IMPLEMENTED,    /* 501 NotImplemented */
	FAULT_RDMA_NOT_SUPPORTED, /* 501 RDMANotSupported: decline in the dialects of 4.2 */
	FAULT_BUSY,               /* 503 SlowDown, Retry-After */
	FAULT_DEADLINE,           /* 503 SlowDown: the deadline passed before any byte moved */
	FAULT_UNAVAILABLE,    /* 503 ServiceUnavailable: disk missing or failed, outcome unknown, draining */
	FAULT_FULL,           /* 507 InsufficientStorage */
	FAULT_NO_SUCH_UPLOAD, /* 404 NoSuchUpload */
	FAULT_INVALID_PART,   /* 400 InvalidPart */
	FAULT_INVALID_PART_ORDER,    /* 400 InvalidPartOrder */
	FAULT_ENTITY_TOO_SMALL,      /* 400 EntityTooSmall */
	FAULT_MALFORMED_XML,         /* 400 MalformedXML */
	FAULT_INVALID_TAG,           /* 400 InvalidTag */
	FAULT_NO_SUCH_TAG_SET,       /* 404 NoSuchTagSet */
	FAULT_NO_SUCH_CORS,          /* 404 NoSuchCORSConfiguration */
	FAULT_NO_SUCH_LIFECYCLE,     /* 404 NoSuchLifecycleConfiguration */
	FAULT_NO_SUCH_VERSION,       /* 404 NoSuchVersion */
	FAULT_NO_SUCH_POLICY,        /* 404 NoSuchBucketPolicy */
	FAULT_NO_SUCH_ENCRYPTION,    /* 404 ServerSideEncryptionConfigurationNotFoundError */
	FAULT_NO_SUCH_ACCESS_BLOCK,  /* 404 NoSuchPublicAccessBlockConfiguration */
	FAULT_NO_SUCH_OWNERSHIP,     /* 404 OwnershipControlsNotFoundError */
	FAULT_NO_SUCH_WEBSITE,       /* 404 NoSuchWebsiteConfiguration */
	FAULT_NO_SUCH_REPLICATION,   /* 404 ReplicationConfigurationNotFoundError */
	FAULT_NO_SUCH_OBJECT_LOCK,   /* 404 ObjectLockConfigurationNotFoundError */
	FAULT_INVALID_STORAGE_CLASS, /* 400 InvalidStorageClass */
	FAULT_INVALID_LOCATION,      /* 400 InvalidLocationConstraint */
	FAULT_INVALID_PART_NUMBER,   /* 416 InvalidPartNumber */
	FAULT_TEXT_TOO_LARGE,        /* 400 MaxMessageLengthExceeded */
	FAULT_POST_FORM,             /* 400 MalformedPOSTRequest */
	FAULT_POST_TOO_LARGE,        /* 400 MaxPostPreDataLengthExceededError */
	FAULT_POST_POLICY,           /* 400 InvalidPolicyDocument */
	FAULT_CORS_FORBIDDEN,        /* 403 AccessForbidden */
	FAULT_BAD_CHUNK,             /* 400 InvalidChunkSizeError */
	FAULT_BAD_TRAILER,           /* 400 MalformedTrailerError */
	FAULT_CONFLICT,              /* 409 OperationAborted */
	FAULT_COPY_TO_ITSELF,        /* 400 InvalidRequest */
	FAULT_RC_OFF,                /* 501 NotImplemented; with x-amz-rdma-protocol-status: unsupported */
	FAULT_ACCESS_KEY,            /* 403 InvalidAccessKeyId */
	FAULT_AUTH_HEADER,           /* 400 AuthorizationHeaderMalformed */
	FAULT_AUTH_QUERY,            /* 400 AuthorizationQueryParametersError */
	FAULT_SKEWED,                /* 403 RequestTimeTooSkewed */
	FAULT_EXPIRED_TOKEN,         /* 400 ExpiredToken */
	FAULT_SECURITY_TOKEN,        /* 400 InvalidToken: x-amz-security-token */
	FAULT_NR
};

struct fault_info {
	int status;
	const char *code;    /* S3 code */
	const char *message; /* one sentence; a request may give its own */
};

const struct fault_info *fault_info(enum fault f);

#endif

/* Status, S3 code and default sentence of every fault (protocol.md 4.8), see fault.h.  Any thread. */
#include "dialect/fault.h"

#include "base/check.h"

static const struct fault_info infos[FAULT_NR] = {
	[FAULT_NONE] = { 200, "", "" },
	[FAULT_BAD_REQUEST] = { 400, "InvalidRequest", "The request contradicts itself or is malformed." },
	[FAULT_BAD_URI] = { 400, "InvalidURI", "The request target could not be parsed." },
	[FAULT_BAD_TOKEN] = { 400, "InvalidRDMAToken", "The RDMA descriptor is not valid." },
	[FAULT_BAD_ARGUMENT] = { 400, "InvalidArgument", "An argument is not valid." },
	[FAULT_BAD_BUCKET_NAME] = { 400, "InvalidBucketName", "The bucket name is not valid." },
	[FAULT_BAD_DIGEST] = { 400, "BadDigest", "The checksum given does not match the bytes received." },
	[FAULT_INVALID_DIGEST] = { 400, "InvalidDigest", "The Content-MD5 given is not valid." },
	[FAULT_SHA_MISMATCH] = { 400, "XAmzContentSHA256Mismatch",
				 "x-amz-content-sha256 does not match the bytes received." },
	[FAULT_KEY_TOO_LONG] = { 400, "KeyTooLongError", "The key is longer than 1024 bytes." },
	[FAULT_META_TOO_LARGE] = { 400, "MetadataTooLarge",
				   "The metadata headers exceed the maximum allowed size." },
	[FAULT_TOO_LARGE] = { 400, "EntityTooLarge", "The object or part is larger than allowed." },
	[FAULT_INCOMPLETE_BODY] = { 400, "IncompleteBody", "The body ended before its Content-Length." },
	[FAULT_REQUEST_TIMEOUT] = { 400, "RequestTimeout", "The body stopped coming." },
	[FAULT_ACCESS_DENIED] = { 403, "AccessDenied", "Access denied." },
	[FAULT_SIGNATURE] = { 403, "AccessDenied",
			      "The request is signed, and this server does not verify signatures yet." },
	[FAULT_NO_SUCH_KEY] = { 404, "NoSuchKey", "The key does not exist." },
	[FAULT_NO_SUCH_BUCKET] = { 404, "NoSuchBucket", "The bucket does not exist." },
	[FAULT_NOT_FOUND] = { 404, "NotFound", "There is nothing at this address." },
	[FAULT_METHOD] = { 405, "MethodNotAllowed", "The method is not allowed on this resource." },
	[FAULT_BUCKET_EXISTS] = { 409, "BucketAlreadyOwnedByYou", "The bucket exists already." },
	[FAULT_BUCKET_NOT_EMPTY] = { 409, "BucketNotEmpty", "The bucket is not empty." },
	[FAULT_LENGTH_REQUIRED] = { 411, "MissingContentLength", "Content-Length is missing." },
	[FAULT_PRECONDITION] = { 412, "PreconditionFailed", "A condition of the request does not hold." },
	[FAULT_NOT_MODIFIED] = { 304, "NotModified", "The object has not changed." },
	[FAULT_RANGE] = { 416, "InvalidRange", "The range begins at or beyond the end of the object." },
	[FAULT_HEADERS_TOO_LARGE] = { 431, "RequestHeaderSectionTooLarge",
				      "The request has too many header fields." },
	[FAULT_INTERNAL] = { 500, "InternalError", "The server met an error of its own." },
	[FAULT_TRANSFER] = { 500, "RDMATransferFailed", "The RDMA transfer failed." },
	[FAULT_DAMAGED] = { 500, "InternalError", "Stored bytes do not match their checksum." },
	[FAULT_NOT_IMPLEMENTED] = { 501, "NotImplemented", "What the request asks for is not implemented." },
	[FAULT_RDMA_NOT_SUPPORTED] = { 501, "RDMANotSupported", "RDMA cannot be used for this request." },
	[FAULT_BUSY] = { 503, "SlowDown", "The server is busy; try again." },
	[FAULT_DEADLINE] = { 503, "SlowDown", "The request waited too long; try again." },
	[FAULT_UNAVAILABLE] = { 503, "ServiceUnavailable", "The service is not available; try again." },
	[FAULT_FULL] = { 507, "InsufficientStorage", "The storage is full." },
};

const struct fault_info *
fault_info(enum fault f)
{
	check((unsigned)f < FAULT_NR);
	return &infos[f];
}

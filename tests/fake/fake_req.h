/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request machine with scripted behaviour: implements all of req.h without dialects, channels or a store,
 * for the unit tests of http/.  The request's path is the script:
 *
 * - /now: reply when req_begin() returns; /text/N: the same with N bytes of text; /status/S: empty, with S
 * - /peer: the client's address and port, as req_begin() got them
 * - /fields: every field as "name: value", one a line
 * - /delay/MS: reply after MS; /never: replies only once the client is gone
 * - /block/MS: keeps the whole thread for MS, then replies
 * - /full: req_begin() returns NULL
 * - /reject: 403, closing, before any body; /late-reject/MS: 403 after MS, wants no body
 * - /patience/MS: wants a body; 403 after MS, whatever of it has come
 * - /echo: the body comes back
 * - /slow/N/MS: takes N bytes of the body at a time, then none for MS; replies with the body's length
 * - /mid/N: 403 after N bytes of the body; /mid-at-once/N: one that does not wait for the rest
 * - /stream/N[/E/MS]: N bytes, a pause of MS after each E
 * - /broken/N/AT[/MS]: a stream that fails at AT, after a pause of MS; /stall/N: one that stops half-way, aborted after 100 ms
 * - /clog/N: a stream that is aborted after 200 ms
 *
 * HEAD gets REPLY_LENGTH_ONLY of what the path gives.  A request with x-amz-rdma-token is tokened.
 * Content-Length beside Transfer-Encoding, either of them repeated, and other than one Host get 400 with
 * close, as dialect/ would have it.  A stream's byte at position p is fake_req_byte(p).  One thread; the
 * counters may be read by any.
 */
#ifndef GANTRY_TESTS_FAKE_REQ_H
#define GANTRY_TESTS_FAKE_REQ_H

#include "req/req.h"

#include <stdatomic.h>

struct fake_req_counts {
	_Atomic int begun, ended, sent, gone, live, tokened, confs;
	_Atomic int between; /* number of requests before which the core was called */
	_Atomic uint64_t body_bytes, stream_bytes;
};
extern struct fake_req_counts fake_req_counts;

static inline char
fake_req_byte(uint64_t pos)
{
	return (char)(pos * 2654435761u >> 13);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff - one random history of operations on several back ends of store.h, whose answers are compared.
 *
 *	diff.c          the history: choices, comparison, the known differences
 *	diff_two.c      two operations in flight at once, and the order that explains their answers
 *	diff_ops.c      each operation on one back end, with its answer as text
 *	diff_ends.c     the store in memory as a back end of a history
 *	librados_end.c  the store on RADOS as one, on the cluster in memory
 *
 * A history is made of choices, from a seed or from bytes (a fuzz target). Each operation runs on one back end after the other, and
 * ends before the next one begins. Its answer is a text: results, sizes, ETags, attributes, entries of lists, and of a version only
 * whether it is the version that the back end gave last. All texts must be equal.
 *
 * Objects may have an expiry. The history has the wall clock: it advances by OP_PASS in whole seconds, objects expire half a second after
 * one, and the turns of the back ends take less, so that all back ends decide an operation on the same side of an expiry.
 */
#ifndef TESTS_FAKE_DIFF_H
#define TESTS_FAKE_DIFF_H

#include "base/buf.h"
#include "base/mailbox.h"
#include "store/store.h"

#define DIFF_ENDS_MAX 3
#define DIFF_BUCKETS 3
#define DIFF_KEYS 8
#define DIFF_UPLOADS 5
#define DIFF_PARTS 4
#define DIFF_TEXT (16u << 10)

/* The answer to an operation. */
struct diff_answer {
	char text[DIFF_TEXT];
	size_t len;
	const char *wrong; /* a rule of store.h that the answer breaks; NULL: none */
	/* OP_BUCKET_HEAD: the usage of the bucket, if the back end knows it */
	bool has_used;
	struct store_use used;
};

/* The versions and ids that a back end gave last; 0: none. */
struct diff_told {
	uint64_t version[DIFF_BUCKETS][DIFF_KEYS];
	uint64_t attrs_version[DIFF_BUCKETS];
	struct {
		uint8_t id[STORE_UPLOAD_ID_BYTES];
		uint64_t version[DIFF_PARTS];
	} upload[DIFF_UPLOADS];
};

/* A back end of a history. */
struct diff_end {
	const char *name;
	/* Makes an empty store (is_new true), or starts the same store again; attaches port. */
	void (*start)(struct diff_end *e, bool is_new);
	void (*stop)(struct diff_end *e);
	/* One turn of the loop of the port. */
	void (*turn)(struct diff_end *e);
	/* Makes the turns of background work; NULL: the back end has none. */
	void (*idle)(struct diff_end *e);
	/* Ends the process without a last step of the store, and starts another one. Operations in flight end first, with any result.
	 * NULL: the back end cannot do so. */
	void (*kill)(struct diff_end *e);
	/* Selects the process that gets the next operations, by its number, 0 or 1: both serve the same store. NULL: the back end has
	 * one process. */
	void (*select)(struct diff_end *e, unsigned process);
	struct store *store;
	struct store_port *port;
	struct bufpool *bufs;
	struct mailbox mb;
	/* ---- of the history ---- */
	struct diff_answer *answer; /* to the operation that runs */
	struct diff_answer own, two[2],
		state; /* state: looks after two operations that were in flight at once */
	struct diff_told told;
	/* The same before two operations that are in flight at once, which both name these versions and ids; NULL: one operation runs. */
	const struct diff_told *before;
};

/* Where the choices come from. */
struct diff_source {
	const uint8_t *bytes; /* NULL: from the seed */
	size_t nr, at;
	uint64_t seed;
};
/* Returns a number below n. */
uint32_t diff_below(struct diff_source *s, uint32_t n);

/* One operation, as all back ends get it. */
enum diff_kind {
	OP_PUT,
	OP_PUT_ABORT,
	OP_DELETE,
	OP_SET_ATTRS,
	OP_COPY,
	OP_READ,
	OP_LIST,
	OP_BUCKET_CREATE,
	OP_BUCKET_DELETE,
	OP_BUCKET_HEAD,
	OP_BUCKET_SET_ATTRS,
	OP_BUCKET_GET_ATTRS,
	OP_BUCKET_QUOTA,
	OP_UPLOAD_CREATE,
	OP_UPLOAD_STAT,
	OP_UPLOAD_ABORT,
	OP_PART,
	OP_COMPLETE,
	OP_LIST_UPLOADS,
	OP_LIST_PARTS,
	OP_LIST_BUCKETS,
	OP_EXPIRE, /* the removal of the objects of a bucket that have expired */
	OP_PASS,   /* time passes; no back end does anything */
	OP_RESTART,
	OP_KILL,
	OP_IDLE,
	OP_NR
};

struct diff_op {
	enum diff_kind kind;
	unsigned process; /* that gets the operation, of a back end that has two */
	unsigned bucket, key, upload, part;
	uint32_t nr; /* of the operation in its history: content, ETag and attributes follow from it */
	uint64_t size;
	uint32_t attrs_len;
	uint64_t expires_ns;            /* of the object; PRE_EXPIRED: time of the condition */
	uint64_t seconds;               /* OP_PASS */
	unsigned from_bucket, from_key; /* OP_COPY */
	bool says_size, rides, wrong_crc, expects_crc, expects_size, wrong_size, has_delimiter, shows_gone,
		keeps_expiry;
	bool has_use; /* OP_BUCKET_HEAD: the usage of the bucket is compared */
	enum store_pre_kind pre;
	bool keep;
	unsigned etag[2],
		etag_nr; /* ETags of the precondition, by the number of the operation that gave them */
	int version;     /* of the key: 0: any; 1: the last one; 2: another one */
	uint32_t max, after;
	const char *prefix, *from;
	struct store_use quota;
	/* the list of a completion: indexes of parts; and what is wrong with the ETag of one */
	unsigned part_nr, parts[DIFF_PARTS], part_etag[DIFF_PARTS];
	uint64_t part_min, expect_size, expect_crc;
	bool part_versions;
};

/* Runs an operation on a back end; the answer is in e->own. */
void diff_do(struct diff_end *e, const struct diff_op *op);
/* Runs an operation, and appends the answer to *e->answer. */
void diff_run(struct diff_end *e, const struct diff_op *op);
/* Starts a PUT, removal or completion, lets it go on for some turns, and kills the process. */
void diff_do_killed(struct diff_end *e, const struct diff_op *op, unsigned turns);
/* Describes an operation. */
void diff_say(const struct diff_op *op, char *text, size_t len);
const char *diff_bucket(unsigned i);
const char *diff_key(unsigned i);
/* Returns the content's CRC. */
uint64_t diff_crc(uint32_t nr, uint64_t size);
/* Returns the version of an object, which may have expired; 0: there is none. */
uint64_t diff_look(struct diff_end *e, unsigned bucket, unsigned key);

void diff_answer_clear(struct diff_answer *a);
/* Compares the answers of two back ends to an operation. */
bool diff_same(const struct diff_op *op, const struct diff_answer *a, const struct diff_answer *b);

/* ---- two operations in flight: diff_two.c ---- */

/* Waits for the end of an operation that is one of two in flight. Returns false without a wait for all others. */
bool diff_two_wait(const struct store_op *op);

/* The operations of a history, as the store in memory has done them since it was empty. */
enum diff_how { DIFF_ALONE, DIFF_FIRST, DIFF_SECOND };
struct diff_log {
	struct diff_logged {
		struct diff_op op;
		uint64_t ns;       /* diff_now() at its begin */
		enum diff_how how; /* alone, or which one of two */
	} * entry;
	size_t nr, cap;
};
void diff_log_add(struct diff_log *log, const struct diff_op *op, enum diff_how how);
void diff_log_free(struct diff_log *log);

/*
 * Runs two operations on ends[1], of which the second one begins so many turns after the first one, and looks at what they may have
 * changed. Then the store in memory, ends[0], does both in one order, and, if an answer or a look is another one, starts again from the
 * log and does them in the other order. Returns 0, or -1, after a message, if no order explains what ends[1] has answered. The answers
 * of ends[0] are in its two[]; the log has the operations in this order.
 */
int diff_two(struct diff_end **ends, struct diff_log *log, const struct diff_op op[2], unsigned turns,
	     bool verbose);

/* Sets the wall clock of histories; base/clock.h shows it. */
void diff_clock(uint64_t ns);
/* Returns it. */
uint64_t diff_now(void);
/* Lets clock_ns() show a clock of the history too, which advances with diff_pass(); for back ends without threads. */
void diff_clock_all(void);
/* Advances both clocks. */
void diff_pass(uint64_t ns);
/* Makes a turn of a back end, which takes some time. */
void diff_turn(struct diff_end *e);

/* Makes the stores of the back ends anew, and forgets what the earlier ones answered. */
void diff_start(struct diff_end **ends, int nr);
/* Runs one history of at most ops operations on back ends that are started and empty, and leaves them empty. Returns the number of
 * operations, or -1 after a difference, which is printed. verbose: every operation and its answer are printed. */
int diff_history(struct diff_end **ends, int nr, struct diff_source *s, unsigned ops, bool verbose);
/* Runs histories numbered first to first + nr - 1 of a seed. fresh: number of histories after which the stores are made again.
 * Returns 0, or 1 after a difference. */
int diff_histories(struct diff_end **ends, int nr_ends, uint64_t seed, uint64_t first, uint64_t nr,
		   unsigned fresh);
/* The same by the variables SEED, FIRST, HISTORIES and VERBOSE of the environment. */
int diff_main(struct diff_end **ends, int nr_ends, uint64_t histories);

/* The store in memory. */
struct diff_end *diff_mem_end(struct bufpool *bufs);
/* The store on RADOS, on the cluster of tests/fake/librados.h, with faults. NULL: no librados on this machine. */
struct diff_end *diff_rados_end(struct bufpool *bufs) __attribute__((weak));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: a table of all keys (conf/table.c), and an immutable struct with their values.
 *
 * If several sources give a key, the first of them in this order counts: options of the command line, the
 * environment (GANTRY_SECTION_KEY), conf.d/ *.yaml next to the file, the file, the default. conf_load() runs
 * on the main thread; the struct is read-only from then on and may be read by any thread. Units: bytes and
 * nanoseconds, regardless of the unit in the file. Errors name file, line, column, key, the expected value
 * and the nearest known key.
 */
#ifndef GANTRY_CONF_CONF_H
#define GANTRY_CONF_CONF_H

#include "base/log.h"
#include "base/uuid.h"
#include "conf/rdma.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <sys/socket.h>

#define CONF_LISTEN_MAX 16
#define CONF_DISKS_MAX 64
#define CONF_CORES_MAX 256
#define CONF_DOMAINS_MAX 16
#define CONF_PIECES_MAX 16 /* largest number of pieces of one request in flight */
#define CONF_DEFAULT_FILE "/etc/gantry/gantryd.yaml"

enum conf_dialect { DIALECT_S3, DIALECT_SCALITY };

struct conf_listen {
	/* "127.0.0.1:9000", "[::1]:9000" or "*:9000", as configured; port 0: a free port */
	char *address;
	struct sockaddr_storage sa;
	socklen_t sa_len;
	enum conf_dialect dialect;
	/* paths of PEM files; NULL: plain HTTP; both are set, or neither is */
	char *tls_certificate, *tls_key;
	bool anonymous; /* s3: unsigned requests are accepted */
	/* scality: name of the bucket that has the keys of this listener; default ".scality" */
	char *bucket;
	bool v1_prefix; /* scality: paths of keys begin with /v1/ (protocol.md item 93) */
	bool decode;    /* scality: keys are percent-decoded once; default true (item 94) */
	/* scality: true: DELETE of an absent key is answered with 404, otherwise with 204 (item 92) */
	bool delete_404;
	/* addresses of proxies; a connection from a proxy begins with a header of the PROXY protocol */
	struct conf_nets proxy;
};

struct conf_disk {
	char *path;
	uint64_t size_bytes; /* size of the disk, used by --format */
};

/* Signatures of version 2 that are accepted. OFF: none. PRESIGNED: those of presigned URLs and of forms. */
enum conf_sigv2 { SIGV2_OFF, SIGV2_PRESIGNED };
/* Checks for repeated signatures. OFF: no check. PEER: a request with a descriptor is refused if its
 * signature was used from another address. ONCE: a request with a descriptor is refused if its signature
 * was used at all. REJECT: every request is refused if its signature was used from another address. */
enum conf_replay { REPLAY_OFF, REPLAY_PEER, REPLAY_ONCE, REPLAY_REJECT };

enum conf_fair { FAIR_BY_ADDRESS, FAIR_BY_ACCESS_KEY };

enum conf_etag { S3_ETAG_MD5, S3_ETAG_RANDOM };
struct conf_s3 {
	enum conf_etag etag; /* kind of the ETag that an object received over HTTP gets */
	/* domains of the server, in lower case; a Host field "bucket.domain" names a bucket */
	char *domains[CONF_DOMAINS_MAX];
	int domain_nr;
	bool encrypted_below; /* true: the operator declares that the disks encrypt their data */
};

enum conf_backend { BACKEND_DISKS, BACKEND_RADOS };

/* Parameters of a store on a RADOS cluster; used only if the backend is rados. */
struct conf_rados {
	char *conf; /* path of the cluster's ceph.conf */
	char *user;
	char *meta_pool, *data_pool;
	char *namespace_; /* namespace of the pools; NULL: the default namespace */
	int index_shards, clients;
	uint64_t object_bytes, dead_after_ns;
};

struct conf {
	struct conf_listen listen[CONF_LISTEN_MAX];
	int listen_nr;

	struct {
		char *address; /* TCP address; NULL: no TCP */
		struct sockaddr_storage sa;
		socklen_t sa_len;
		char *socket; /* path of the Unix socket; NULL: no Unix socket */
		/* path of the file with the bearer token; NULL: control calls are accepted on the Unix socket
		 * only, and pages need no token */
		char *token_file;
		/* paths of PEM files for the TCP address; NULL: plain HTTP; both are set, or neither is */
		char *tls_certificate, *tls_key;
	} admin;

	int cores[CONF_CORES_MAX]; /* numbers of the CPUs */
	int core_nr;
	/* true: threads are pinned to CPUs; false: the scheduler places them, for tests with more threads
	 * than CPUs */
	bool pin;

	struct {
		uint64_t buffers_bytes;      /* size of the payload buffers of all cores together */
		uint64_t http_buffers_bytes; /* largest memory for HTTP bodies, all cores together */
		uint64_t index_bytes;
		uint64_t replay_bytes; /* size of the table of used signatures */
	} memory;

	struct conf_rdma rdma;
	struct conf_s3 s3;

	struct {
		enum conf_backend backend;
		struct conf_disk disks[CONF_DISKS_MAX];
		int disk_nr;
		uint8_t accept_missing[CONF_DISKS_MAX][UUID_BYTES];
		int accept_missing_nr;
		/* number of copies of each object in a bucket whose creator does not specify this number */
		int default_copies;
		/* number of disks that must serve, or else the daemon is not ready; 0: all but one */
		int min_disks;
		/* true: a listing omits keys that only a missing disk has; false: such a listing fails */
		bool partial_listings;
		uint64_t lock_wait_ns;
		/* longest time for which a start waits for absent disks; 0: it does not wait */
		uint64_t wait_for_disks_ns;
		uint64_t disk_timeout_ns; /* time limit of a write or flush of a disk; 0: no limit */
		/* largest number of bytes of small objects that are packed per second; 0: no packing */
		uint64_t pack_rate;
		/* largest number of bytes per second that are moved to or from a disk that is drained or
		 * added; 0: no limit */
		uint64_t move_rate;
		/* time after which the secondary copies of an absent disk are rebuilt on another disk */
		uint64_t heal_after_ns;
		uint64_t scrub_interval_ns; /* time between two scrubs, which read all objects; 0: a scrub
		                             * starts on request only */
		uint64_t scrub_rate;        /* largest number of bytes per second that a scrub reads */
		const char *state_dir;      /* directory for state outside of the disks, as configured;
		                             * NULL: none */
	} store;

	struct conf_rados rados;

	struct {
		char *region;
		char *credentials_file; /* path; NULL: no file; read by auth/ */
		uint64_t clock_skew_ns;
		/* true: the signature must cover x-rdma-info and x-cuobj-*, too; it must always cover
		 * x-amz-* */
		bool require_signed_headers;
		enum conf_replay replay;
		enum conf_sigv2 sigv2; /* signatures of version 2 that are accepted */
	} auth;

	struct {
		int connections; /* largest number of connections of a core */
		/* largest number of connections of a client address, all cores together; an IPv6 address
		 * counts by its first 64 bits; 0: no limit */
		int connections_per_address;
		int requests; /* largest number of requests of a core in flight */
		int pieces_per_request;
		/* largest number of requests of a core that wait for a buffer or a channel */
		int queue;
		uint64_t object_bytes; /* size of the largest object, in bytes */
		uint64_t part_bytes;
		uint64_t idle_ns; /* time limit of an idle connection */
		/* time limit from the first to the last byte of a request's head, or of a TLS handshake */
		uint64_t head_ns;
		uint64_t s3_progress_ns; /* time without progress after which a request ends; default 8 s */
		enum conf_fair fair_by;  /* the identity by which fair queues tell clients apart */
		/* minimum rate, in bytes per second, of an HTTP body that arrives or leaves while other
		 * requests wait; 0: no minimum */
		uint64_t body_rate;
		uint64_t body_grace_ns; /* time over which body_rate is averaged */
		/* constant part of the time limit of a request, which is s3_total_ns + length / s3_rate;
		 * default 8 s */
		uint64_t s3_total_ns;
		uint64_t s3_rate;          /* rate of the variable part of this limit, in bytes per second */
		uint64_t scality_total_ns; /* time limit of a request; default 1.5 s */
		uint64_t drain_ns;         /* time after SIGTERM in which running requests may end */
		uint64_t xml_bytes;        /* size of the largest XML body, in bytes */
		uint64_t upload_expire_ns; /* age at which an unfinished upload is removed; 0: never */
	} limits;

	struct {
		uint64_t interval_ns; /* time between two scans of the buckets with rules */
		uint64_t day_ns;      /* length of a day of lifecycle rules in ns; tests shorten it */
		int rate;             /* maximum number of objects examined per second */
	} lifecycle;

	struct {
		enum log_level level;
		enum log_format format;
		bool access; /* true: the log has a line for each request */
		/* true: the lines of the access log contain the object's key */
		bool object_keys;
		/* level of each module: an enum log_level, or LOG_LEVEL_COMMON */
		signed char levels[LOG_MODULES_NR];
	} log;

	struct {
		/* path of the file of the audit stream, or "auto", as configured; NULL: no stream */
		char *file;
		uint64_t size_bytes; /* largest size of the file */
		int keep;            /* number of old files that are kept */
		bool reads;          /* true: the stream has reads, too */
	} audit;

	struct conf_origin *origins; /* private to conf/: the source of each value */
	_Atomic int refs;            /* number of references in addition to the first one */
};

#define CONF_ANY_REGION "any" /* value of auth.region with which signatures may name any region */

/* Returns the name of the region in replies: auth.region, or "us-east-1" if every region is accepted. */
static inline const char *
conf_region(const struct conf *c)
{
	return strcmp(c->auth.region, CONF_ANY_REGION) == 0 ? "us-east-1" : c->auth.region;
}

/* An assignment of the command line: "section.key=value". */
struct conf_override {
	const char *text;
};

struct conf_source {
	const char *file; /* path of the configuration file */
	/* true: the file must exist, because -c named it; false: it is the default file, and may be
	 * missing */
	bool file_required;
	bool partial; /* true: the configuration may lack listeners and disks (for --list-devices) */
	bool starts;  /* true: the process will serve, so its resource limits are checked, too */
	const struct conf_override *overrides;
	int override_nr;
};

/* Loads a configuration. Returns 0 and *ret_conf, which conf_free() frees; or -EINVAL, after writing a
 * line for every error to err. */
int conf_load(const struct conf_source *src, struct conf **ret_conf, FILE *err);
void conf_free(struct conf *c);
/* Takes another reference, which conf_free() releases. Any thread may call this function. */
const struct conf *conf_get(const struct conf *c);

/* Receives a key whose value has changed. from, to: the old and the new value as in a configuration file,
 * with secrets masked; both are empty if the length of a list has changed. applied: true: the new
 * configuration has the new value; false: the change needs a restart, and the new configuration has the old
 * value. */
typedef void (*conf_change_fn)(void *cookie, const char *path, const char *from, const char *to,
			       bool applied);
/* Prepares the configuration `fresh`, loaded for a reload, to replace `running`: for each key that needs a
 * restart, copies the value of `running` to `fresh`. Calls change() for each key whose value has changed.
 * Returns 0; -ENOMEM: `fresh` must not be used. */
int conf_merge(struct conf *fresh, const struct conf *running, conf_change_fn change, void *cookie);

/* Writes the source of a value: FILE:LINE, "environment NAME", "option -o" or "default". path: the key, such
 * as "rdma.dc_key" or "store.disks[0].path". */
void conf_origin(const struct conf *c, const char *path, char *out, size_t cap);
/* Prints every value with its origin, as YAML with comments; secrets are masked. */
void conf_print(const struct conf *c, FILE *out);
/* Prints every value with its origin as one JSON object: {"rdma.dc_key": {"value": "0xffeeddcc", "origin":
 * "default"}, ...}. */
void conf_print_json(const struct conf *c, FILE *out);
/* Prints the table of keys, with which scripts check the manual and the example, one line for each key:
 * "key\ttype\tdefault\treload\thelp\tclass". class is basic, tuning or test. */
void conf_print_table(FILE *out);

/* Returns the number of typing mistakes that turn one name into the other. If there are `limit` or more,
 * returns some number that is at least limit. */
int conf_edit_distance(const char *a, const char *b, int limit);

/* Parses an address block such as "10.0.0.0/8" or "fd00::/8", or an address. Returns 0; -EINVAL; or -ERANGE
 * if bits are set after the prefix, as in "10.1.2.3/8"; with -ERANGE *ret_net is the block with these bits
 * cleared. */
int conf_net_parse(const char *text, struct conf_net *ret_net);
#define CONF_NET_REFUSAL_MAX 160
/* Writes to out a sentence, without a full stop, that explains why conf_net_parse() refuses text. Returns
 * out. */
const char *conf_net_refusal(const char *text, char out[CONF_NET_REFUSAL_MAX]);
/* Limits of store.disks[].size: 64 MiB to 1024 TiB. */
#define CONF_DISK_MIN_BYTES ((uint64_t)64 << 20)
#define CONF_DISK_MAX_BYTES ((uint64_t)1024 << 40)

/* Parses a quota. is_bytes: true: a size of at most 4 EiB ("10TiB"); false: a number. Returns 0 or
 * -EINVAL. */
int conf_bound_parse(const char *text, bool is_bytes, uint64_t *ret_bound);
/* Writes an address block to out as in a configuration file. */
void conf_net_format(const struct conf_net *net, char *out, size_t cap);
/* Parses an address with a port, without a resolver. "host:port": host is a numeric address (an IPv6 address
 * with or without brackets) or "localhost". "*:port": the IPv6 wildcard address, which accepts IPv4, too,
 * unless IPV6_V6ONLY is set; 0.0.0.0 if the kernel has no IPv6. Returns 0 or -EINVAL. */
int conf_addr_parse(const char *text, struct sockaddr_storage *ret_sa, socklen_t *ret_len);

/* Returns true if only this machine can reach the address. */
bool conf_is_loopback(const struct sockaddr_storage *sa);
/* Returns true if a Host field can only mean this server: the field is an address, localhost, or a name in a
 * domain of s3.domain, with or without a port. Any other name could belong to an attacker who resolves it to
 * this machine's address; a browser would then treat the attacker's web page and this server as one origin
 * (DNS rebinding). s3 NULL: no domains. */
bool conf_host_is_ours(const struct conf_s3 *s3, const char *host, size_t len);

#endif

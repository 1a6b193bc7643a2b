/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: one table of keys (conf/table.c), one immutable struct.
 *
 * Flags take precedence over the environment (GANTRY_SECTION_KEY), then conf.d/ *.yaml next to the file, then
 * the file, then defaults. conf_load() runs on the main thread; the struct is read-only from then on and may
 * be read by any thread. Units: bytes and nanoseconds, regardless of the unit in the file. Errors name file,
 * line, column, key, the expected value and the nearest known key.
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
#define CONF_PIECES_MAX 16 /* pieces of a request in flight */
#define CONF_DEFAULT_FILE "/etc/gantry/gantryd.yaml"

enum conf_dialect { DIALECT_S3, DIALECT_SCALITY };

struct conf_listen {
	/* the configured text: "127.0.0.1:9000", "[::1]:9000", "*:9000"; port 0: a free port */
	char *address;
	struct sockaddr_storage sa;
	socklen_t sa_len;
	enum conf_dialect dialect;
	char *tls_certificate, *tls_key; /* files in PEM; both or none */
	bool anonymous;                  /* s3: unsigned requests are accepted */
	char *bucket;                    /* scality: the bucket of the listener's keys; default ".scality" */
	bool v1_prefix;                  /* scality: paths of keys begin with /v1/ (protocol.md item 93) */
	bool decode;                     /* scality: percent-decode keys once; default true (item 94) */
	bool delete_404;                 /* scality: DELETE of an absent key is 404, not 204 (item 92) */
	struct conf_nets proxy; /* proxies, whose connections begin with a header of the PROXY protocol */
};

struct conf_disk {
	char *path;
	uint64_t size_bytes; /* size of the disk for --format */
};

/* Accepted signatures of version 2: none; only those of presigned URLs. */
enum conf_sigv2 { SIGV2_OFF, SIGV2_PRESIGNED };
/* Restriction of repeated signatures: none; for requests with a descriptor, only from one address, or only
 * once; for all requests, only from one address. */
enum conf_replay { REPLAY_OFF, REPLAY_PEER, REPLAY_ONCE, REPLAY_REJECT };

enum conf_fair { FAIR_BY_ADDRESS, FAIR_BY_ACCESS_KEY };

enum conf_etag { S3_ETAG_MD5, S3_ETAG_RANDOM };
struct conf_s3 {
	enum conf_etag etag;             /* kind of ETag of objects received over HTTP */
	char *domains[CONF_DOMAINS_MAX]; /* lower case; "bucket.domain" in Host names the bucket */
	int domain_nr;
	bool encrypted_below; /* the operator declares that the disks are encrypted */
};

enum conf_backend { BACKEND_DISKS, BACKEND_RADOS };

/* The store on a RADOS cluster; used only if the backend is rados. */
struct conf_rados {
	char *conf; /* path of the cluster's ceph.conf */
	char *user;
	char *meta_pool, *data_pool;
	char *namespace_; /* NULL: none */
	int index_shards, clients;
	uint64_t object_bytes, dead_after_ns;
};

struct conf {
	struct conf_listen listen[CONF_LISTEN_MAX];
	int listen_nr;

	struct {
		char *address; /* NULL: no TCP */
		struct sockaddr_storage sa;
		socklen_t sa_len;
		char *socket;     /* NULL: no Unix socket */
		char *token_file; /* NULL: control calls are accepted on the Unix socket only */
	} admin;

	int cores[CONF_CORES_MAX]; /* CPU numbers */
	int core_nr;
	/* threads are pinned to CPUs; false: the scheduler places them (tests with more threads than CPUs) */
	bool pin;

	struct {
		uint64_t buffers_bytes;      /* payload buffers, over all cores */
		uint64_t http_buffers_bytes; /* quota of HTTP bodies, over all cores */
		uint64_t index_bytes;
		uint64_t replay_bytes; /* size of the table of signatures already used */
	} memory;

	struct conf_rdma rdma;
	struct conf_s3 s3;

	struct {
		enum conf_backend backend;
		struct conf_disk disks[CONF_DISKS_MAX];
		int disk_nr;
		uint8_t accept_missing[CONF_DISKS_MAX][UUID_BYTES];
		int accept_missing_nr;
		int default_copies;    /* copies of a bucket whose creation does not specify a number */
		int min_disks;         /* disks that must serve for the node to be ready; 0: all but one */
		bool partial_listings; /* lists omit the keys of a missing disk instead of failing */
		uint64_t lock_wait_ns;
		uint64_t wait_for_disks_ns; /* limit of the wait of a start for absent disks; 0: no wait */
		uint64_t disk_timeout_ns;   /* limit of the time of a write or flush; 0: none */
		uint64_t pack_rate; /* bytes a second of small objects that are packed; 0: no packing */
		/* bytes a second moved between disks when one is drained or added; 0: no limit */
		uint64_t move_rate;
		/* time after which the secondary copies of a disk that is away are rebuilt on another disk */
		uint64_t heal_after_ns;
		uint64_t scrub_interval_ns; /* time between two scans of all objects; 0: on request only */
		uint64_t scrub_rate;        /* bytes a second that a scan reads */
		const char *state_dir;      /* the configured path; NULL: none */
	} store;

	struct conf_rados rados;

	struct {
		char *region;
		char *credentials_file; /* NULL: none; read by auth/ */
		uint64_t clock_skew_ns;
		/* x-rdma-info and x-cuobj-* must be signed, too; x-amz-* always must */
		bool require_signed_headers;
		enum conf_replay replay;
		enum conf_sigv2 sigv2; /* accepted kinds of signatures of version 2 */
	} auth;

	struct {
		int connections;             /* per core */
		int connections_per_address; /* over all cores, IPv6 by /64; 0: no limit per address */
		int requests;                /* per core */
		int pieces_per_request;
		int queue;             /* waiting requests per FIFO */
		uint64_t object_bytes; /* largest object */
		uint64_t part_bytes;
		uint64_t idle_ns; /* time limit of an idle connection */
		/* from the first byte of a request's head, or of a TLS handshake, to its end */
		uint64_t head_ns;
		uint64_t s3_progress_ns; /* time limit without progress; default 8 s */
		enum conf_fair fair_by;  /* identity of a client in fair queues */
		/* minimum bytes per second of an HTTP body while other requests wait; 0: none */
		uint64_t body_rate;
		uint64_t body_grace_ns; /* time over which body_rate is averaged */
		/* fixed part of a request's time limit, to which length / s3_rate is added; default 8 s */
		uint64_t s3_total_ns;
		uint64_t s3_rate;          /* bytes per second */
		uint64_t scality_total_ns; /* time limit of a request; default 1.5 s */
		uint64_t drain_ns;         /* after SIGTERM: time limit of running requests */
		uint64_t xml_bytes;        /* largest XML body */
		uint64_t upload_expire_ns; /* age at which an upload is removed; 0: never */
	} limits;

	struct {
		uint64_t interval_ns; /* between two scans of buckets with rules */
		uint64_t day_ns;      /* length of a day in the rules; tests shorten it */
		int rate;             /* maximum number of objects examined per second */
	} lifecycle;

	struct {
		enum log_level level;
		enum log_format format;
		bool access;                        /* the log has a line for each request */
		bool object_keys;                   /* the lines of the access log contain the object's key */
		signed char levels[LOG_MODULES_NR]; /* LOG_LEVEL_COMMON or an enum log_level */
	} log;

	struct conf_origin *origins; /* private to conf.c: the source of each value */
	_Atomic int refs;            /* references beyond the first: conf_get(), conf_free() */
};

#define CONF_ANY_REGION "any" /* auth.region: signatures may name any region */

/* Returns the region name for replies. */
static inline const char *
conf_region(const struct conf *c)
{
	return strcmp(c->auth.region, CONF_ANY_REGION) == 0 ? "us-east-1" : c->auth.region;
}

/* One assignment from the command line: "section.key=value". */
struct conf_override {
	const char *text;
};

struct conf_source {
	const char *file;   /* NULL: the default file */
	bool file_required; /* -c was given; the default file may be missing */
	bool partial;       /* listeners and disks may be missing (--list-devices) */
	bool starts;        /* the process will serve: the limits of this process are checked too */
	const struct conf_override *overrides;
	int override_nr;
};

/* Loads a configuration. 0, or -EINVAL with every error found written to err (a line each). *ret_conf is
 * freed with conf_free(). */
int conf_load(const struct conf_source *src, struct conf **ret_conf, FILE *err);
void conf_free(struct conf *c);
/* Takes another reference, to be released with conf_free(). Any thread. */
const struct conf *conf_get(const struct conf *c);

/* Receives a key whose value differs: from and to are the values as in a file (secrets masked; empty for a
 * list with another length). applied: the new value is used; otherwise the change needs a restart, and fresh
 * got the running value. */
typedef void (*conf_change_fn)(void *cookie, const char *path, const char *from, const char *to,
			       bool applied);
/* Gives fresh, just loaded for a reload, the running values of keys that need a restart. 0, or -ENOMEM: fresh
 * is unusable. */
int conf_merge(struct conf *fresh, const struct conf *running, conf_change_fn change, void *cookie);

/* Prints every value with its origin, as YAML with comments; secrets are masked. */
void conf_print(const struct conf *c, FILE *out);
/* Prints every value with its origin as one JSON object: {"rdma.dc_key": {"value": "0xffeeddcc", "origin":
 * "default"}, ...}. */
void conf_print_json(const struct conf *c, FILE *out);
/* Prints the table of keys, for checks against manual and example: "key\ttype\tdefault\treload\thelp\tclass"
 * a line; class is basic, tuning or test. */
void conf_print_table(FILE *out);

/* Counts the typing mistakes between two names; at `limit` or more mistakes it may return any number not
 * below limit. */
int conf_edit_distance(const char *a, const char *b, int limit);

/* Parses "10.0.0.0/8", "fd00::/8", a bare address. 0; -EINVAL; -ERANGE: bits are set after the prefix, as in
 * "10.1.2.3/8", and *ret_net has the network with these bits cleared. */
int conf_net_parse(const char *text, struct conf_net *ret_net);
/* Describes the error in a text that conf_net_parse() refuses, as a sentence without full stop; returns
 * out. */
#define CONF_NET_REFUSAL_MAX 160
const char *conf_net_refusal(const char *text, char out[CONF_NET_REFUSAL_MAX]);
/* Limits of store.disks[].size: 64 MiB to 1024 TiB. */
#define CONF_DISK_MIN_BYTES ((uint64_t)64 << 20)
#define CONF_DISK_MAX_BYTES ((uint64_t)1024 << 40)

/* Parses a limit of a quota: a number, or for bytes a size ("10TiB"), up to 4 EiB. 0 or -EINVAL. */
int conf_bound_parse(const char *text, bool is_bytes, uint64_t *ret_bound);
/* Prints a network as in a configuration file. */
void conf_net_format(const struct conf_net *net, char *out, size_t cap);
/* Parses "host:port" with IPv6 in brackets or without, "*:port" (the IPv6 wildcard, which takes IPv4 too
 * unless IPV6_V6ONLY is set; 0.0.0.0 where the kernel has no IPv6). Numbers and "localhost" only, no
 * resolver. 0 or -EINVAL. */
int conf_addr_parse(const char *text, struct sockaddr_storage *ret_sa, socklen_t *ret_len);

/* Returns true if only this machine can reach the address. */
bool conf_is_loopback(const struct sockaddr_storage *sa);
/* Returns true if a Host field can only mean this server: an address, localhost, or a name in s3.domain, with
 * or without a port. Any other name may be a stranger's name with the address of this machine, so that a
 * browser treats the stranger's web page and this server as one origin (DNS rebinding). s3 may be NULL. */
bool conf_host_is_ours(const struct conf_s3 *s3, const char *host, size_t len);

#endif

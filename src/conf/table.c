/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of keys: the one place where a key's name, type, range, default and help are written.  The
 * example file and the manual are checked against it (scripts/check-conf-doc).  Read by the loader, by
 * conf_print() and by the manual check.
 */
#include "conf/conf_int.h"

#include <stddef.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)
#define MS ((uint64_t)1000000)
#define SEC ((uint64_t)1000000000)

#define AT(field) offsetof(struct conf, field)
#define LISTEN(field) offsetof(struct conf_listen, field)
#define DISK(field) offsetof(struct conf_disk, field)
#define RULE(field) offsetof(struct conf_decline_rule, field)
_Static_assert(CONF_CLASS_AUTO == 255 + 1, "auto is what no class can be");
_Static_assert(CONF_LEVEL_AUTO == 15 + 1, "auto is what no level can be");
#define NR(a) ((int)(sizeof(a) / sizeof *(a)))

_Static_assert(offsetof(struct conf_listen, sa) - offsetof(struct conf_listen, address) ==
		       offsetof(struct addr_field, sa),
	       "KT_ADDR");
_Static_assert(offsetof(struct conf_listen, sa_len) - offsetof(struct conf_listen, address) ==
		       offsetof(struct addr_field, sa_len),
	       "KT_ADDR");
_Static_assert(offsetof(struct conf, admin.sa) - offsetof(struct conf, admin.address) ==
		       offsetof(struct addr_field, sa),
	       "KT_ADDR");
_Static_assert(sizeof(enum conf_dialect) == sizeof(int) && sizeof(enum log_level) == sizeof(int), "KT_WORD");

_Static_assert(offsetof(struct conf_rdma, allow_nr) - offsetof(struct conf_rdma, allow) ==
			       offsetof(struct conf_nets, nr) &&
		       offsetof(struct conf_rdma, allow_routed) - offsetof(struct conf_rdma, allow) ==
			       offsetof(struct conf_nets, routed),
	       "KT_NETS");

static const char *const dialect_words[] = { [DIALECT_S3] = "s3", [DIALECT_SCALITY] = "scality", NULL };
static const char *const etag_words[] = { [S3_ETAG_MD5] = "md5", [S3_ETAG_RANDOM] = "random", NULL };
static const char *const sigv2_words[] = { [SIGV2_OFF] = "off", [SIGV2_PRESIGNED] = "presigned", NULL };
static const char *const replay_words[] = {
	[REPLAY_OFF] = "off", [REPLAY_PEER] = "peer", [REPLAY_ONCE] = "once", [REPLAY_REJECT] = "reject", NULL
};
static const char *const backend_words[] = { [BACKEND_DISKS] = "disks", [BACKEND_RADOS] = "rados", NULL };
static const char *const fair_words[] = {
	[FAIR_BY_ADDRESS] = "address", [FAIR_BY_ACCESS_KEY] = "access_key", NULL
};
static const char *const bind_words[] = {
	[BIND_GID_OFF] = "off", [BIND_GID_SUBNET] = "subnet", [BIND_GID_EXACT] = "exact", NULL
};
static const char *const ordering_words[] = {
	[ORDERING_AUTO] = "auto", [ORDERING_ON] = "on", [ORDERING_OFF] = "off", NULL
};
static const char *const delay_words[] = { [DELAY_NONE] = "none",
					   [DELAY_BATCH] = "batch",
					   [DELAY_ENTRY] = "entry",
					   [DELAY_ADAPTIVE] = "adaptive",
					   NULL };
const char *const conf_token_header[] = { [TOKEN_HEADER_AMZ] = "x-amz-rdma-token",
					  [TOKEN_HEADER_INFO] = "x-rdma-info",
					  [TOKEN_HEADER_CUOBJ] = "x-cuobj-rdma-descr",
					  NULL };
static const char *const allow_words[] = { "routed", NULL };
static const char *const special_words[] = { "loopback", "self", "link_local", NULL };
static const char *const level_words[] = {
	[LOG_ERROR] = "error", [LOG_WARN] = "warning", [LOG_NOTE] = "notice",
	[LOG_INFO] = "info",   [LOG_DEBUG] = "debug",  NULL
};
static const char *const format_words[] = {
	[LOG_AUTO] = "auto", [LOG_PLAIN] = "plain", [LOG_JOURNAL] = "journal", [LOG_JSON] = "json", NULL
};

/* clang-format off */
static const struct conf_key listen_keys[] = {
	{ "address", KT_ADDR, KEY_REQUIRED, .offset = LISTEN(address),
	  .help = "Address and port of the listener. * is every address; port 0 selects a free port" },
	{ "dialect", KT_WORD, KEY_REQUIRED, .offset = LISTEN(dialect), .words = dialect_words,
	  .help = "Dialect of the listener" },
	{ "tls_certificate", KT_STRING, KEY_NONE | KEY_RELOAD | KEY_KIND, .offset = LISTEN(tls_certificate), .def = "none",
	  .help = "File with the certificate (PEM, followed by its chain). With this key the listener uses HTTPS" },
	{ "tls_key", KT_STRING, KEY_NONE | KEY_RELOAD | KEY_KIND, .offset = LISTEN(tls_key), .def = "none",
	  .help = "File with the private key of the certificate (PEM); the file must not be readable by all users" },
	{ "proxy", KT_NETS, KEY_RELOAD, .offset = LISTEN(proxy), .def = "[]",
	  .help = "Load balancers, as addresses or blocks, whose connections begin with a header of the PROXY protocol, version 2" },
	{ "anonymous", KT_BOOL, KEY_S3 | KEY_RELOAD, .offset = LISTEN(anonymous), .def = "false",
	  .help = "Serve unsigned requests (s3)" },
	{ "bucket", KT_STRING, KEY_SCALITY, .offset = LISTEN(bucket), .def = ".scality",
	  .help = "The bucket that holds the keys of this listener (scality)" },
	{ "v1_prefix", KT_BOOL, KEY_SCALITY | KEY_RELOAD, .offset = LISTEN(v1_prefix), .def = "false",
	  .help = "The path of a key begins with /v1/ (scality)" },
	{ "decode", KT_BOOL, KEY_SCALITY | KEY_RELOAD, .offset = LISTEN(decode), .def = "true",
	  .help = "Percent-decode keys once (scality)" },
	{ "delete_404", KT_BOOL, KEY_SCALITY | KEY_RELOAD, .offset = LISTEN(delete_404), .def = "false",
	  .help = "Answer 404 instead of 204 to the deletion of an absent key (scality)" },
};

static const struct conf_key disk_keys[] = {
	{ "path", KT_STRING, KEY_REQUIRED, .offset = DISK(path),
	  .help = "A directory, or a block device" },
	{ "size", KT_SIZE, KEY_AUTO, .min = CONF_DISK_MIN_BYTES, .max = CONF_DISK_MAX_BYTES, .offset = DISK(size_bytes), .def = "auto",
	  .help = "Space that --format gives to Gantry. auto is all of a block device" },
};

static const struct conf_key decline_keys[] = {
	{ "header", KT_WORD, KEY_RELOAD, .offset = RULE(header), .words = conf_token_header, .def = "x-amz-rdma-token",
	  .help = "The header of the token" },
	{ "access_key", KT_STRING, KEY_NONE | KEY_RELOAD, .offset = RULE(access_key), .def = "none",
	  .help = "The access key that signed the request. none: a request with any access key, or without a signature" },
	{ "listen", KT_STRING, KEY_NONE | KEY_RELOAD, .offset = RULE(listen), .def = "none",
	  .help = "The listener that received the request, as its listen[].address is written. none: any listener" },
	{ "user_agent", KT_STRING, KEY_NONE | KEY_RELOAD, .offset = RULE(user_agent), .def = "none",
	  .help = "A text that the User-Agent contains. none: any User-Agent" },
};

static const struct key_list listen_list = {
	listen_keys, NR(listen_keys), AT(listen), AT(listen_nr), sizeof(struct conf_listen), CONF_LISTEN_MAX, "a listener"
};
static const struct key_list disk_list = {
	disk_keys, NR(disk_keys), AT(store.disks), AT(store.disk_nr), sizeof(struct conf_disk), CONF_DISKS_MAX, "a disk"
};

static const struct key_list decline_list = {
	decline_keys, NR(decline_keys), AT(rdma.decline_2xx), AT(rdma.decline_2xx_nr), sizeof(struct conf_decline_rule),
	CONF_DECLINE_RULES_MAX, "a rule"
};

const struct conf_key conf_keys[] = {
	{ "listen", KT_MAPS, KEY_REQUIRED, .list = &listen_list,
	  .help = "The listeners that clients connect to" },

	{ "admin.address", KT_ADDR, KEY_NONE, .offset = AT(admin.address), .def = "127.0.0.1:9001",
	  .help = "Address and port of health, metrics and status" },
	{ "admin.socket", KT_STRING, KEY_NONE, .offset = AT(admin.socket), .def = "none",
	  .help = "Path of a Unix socket (mode 0600) that serves the requests of admin.address" },
	{ "admin.token_file", KT_STRING, KEY_NONE | KEY_RELOAD, .offset = AT(admin.token_file), .def = "none",
	  .help = "File (mode 0600) with the bearer token that control calls over TCP need, and, unless admin.address is a loopback address, all pages over TCP except those of health. none: only the socket accepts control calls, and pages need no token" },
	{ "admin.tls_certificate", KT_STRING, KEY_NONE | KEY_RELOAD | KEY_KIND, .offset = AT(admin.tls_certificate), .def = "none",
	  .help = "File with the certificate (PEM, followed by its chain) of admin.address, which then uses HTTPS" },
	{ "admin.tls_key", KT_STRING, KEY_NONE | KEY_RELOAD | KEY_KIND, .offset = AT(admin.tls_key), .def = "none",
	  .help = "File with the private key of this certificate (PEM); the file must not be readable by all users" },

	{ "cores", KT_CORES, 0, .max = CONF_CORES_MAX, .def = "auto",
	  .help = "CPUs of the daemon's threads: auto, a number of threads, or a list of CPU numbers" },

	{ "memory.buffers", KT_SIZE, KEY_AUTO, .min = 8 * MIB, .max = 4 * TIB, .offset = AT(memory.buffers_bytes),
	  .def = "auto", .help = "Payload buffers of all cores together. auto is 512MiB, or 16MiB for each core if that is more, but at most a quarter of the memory" },
	{ "memory.http_buffers", KT_SIZE, KEY_AUTO | KEY_TUNING, .min = 2 * MIB, .max = TIB, .offset = AT(memory.http_buffers_bytes),
	  .def = "auto", .help = "Buffers of HTTP bodies of all cores together. auto is 64MiB, or 4MiB for each core if that is more, but at most a sixteenth of the memory" },
	{ "memory.index", KT_SIZE, KEY_AUTO, .min = 16 * MIB, .max = 64 * TIB, .offset = AT(memory.index_bytes),
	  .def = "auto", .help = "Size of the index of objects of all disks together. A disk gets a share in proportion to its space, and at least 4MiB. auto is an eighth of the memory of the machine, or of the control group if that is less" },
	{ "memory.replay", KT_SIZE, KEY_AUTO | KEY_TUNING, .min = MIB, .max = TIB, .offset = AT(memory.replay_bytes),
	  .def = "auto", .help = "Memory for signatures seen (auth.replay), 20.5 bytes for each signature. auto is 1/256 of the memory of the machine, or of the control group if that is less, but at least 16MiB and at most 4GiB" },

	{ "rdma.devices", KT_DEVICES, 0, .def = "auto",
	  .help = "RDMA devices. auto is every port that supports DC, or RC with rdma.rc.shim; none disables RDMA; other values are lists of names, addresses and GIDs" },
	{ "rdma.require", KT_BOOL, 0, .offset = AT(rdma.require), .def = "false",
	  .help = "Report not ready (/readyz) while no RDMA rail is up" },
	{ "rdma.dc_key", KT_U64, KEY_SECRET, .max = UINT64_MAX, .offset = AT(rdma.dc_key), .def = "0xffeeddcc",
	  .help = "The DC key of the clients' DC targets" },
	{ "rdma.channels", KT_INT, KEY_TUNING, .min = 1, .max = 32768, .offset = AT(rdma.channels), .def = "128",
	  .help = "Number of DC initiators of each rail, over all cores. The daemon uses at least 8 for each core" },
	{ "rdma.cq_depth", KT_INT, KEY_AUTO | KEY_TUNING, .min = 1, .max = 4194304, .offset = AT(rdma.cq_depth), .def = "auto",
	  .help = "Number of entries of a completion queue. auto is the sum of the send depths; the daemon refuses a smaller value" },
	{ "rdma.service_level", KT_INT, KEY_AUTO, .max = 15, .offset = AT(rdma.service_level), .def = "0",
	  .help = "InfiniBand service level, or RoCE priority. auto is the level that the subnet manager has for the path to each client, or 0 if it has none" },
	{ "rdma.traffic_class", KT_INT, KEY_AUTO, .max = 255, .offset = AT(rdma.traffic_class), .def = "96",
	  .help = "Traffic class (DSCP and ECN bits) of RoCE packets. auto is the traffic class that the driver has for the port, or 96 if it has none" },
	{ "rdma.paths", KT_INT, KEY_AUTO | KEY_TUNING, .min = 1, .max = CONF_PATHS_MAX, .offset = AT(rdma.paths), .def = "auto",
	  .help = "Number of paths through the fabric for each client. Each path has its own flow label, and so its own UDP source port. auto is 4 on RoCE and 1 on InfiniBand" },
	{ "rdma.hop_limit", KT_INT, KEY_TUNING, .min = 1, .max = 255, .offset = AT(rdma.hop_limit), .def = "64",
	  .help = "Hop limit of routed RDMA packets" },
	{ "rdma.pkey_index", KT_INT, 0, .max = 65535, .offset = AT(rdma.pkey_index), .def = "0",
	  .help = "Index of the partition key" },
	{ "rdma.timeout", KT_INT, KEY_TUNING, .min = 1, .max = 31, .offset = AT(rdma.timeout), .def = "16",
	  .help = "Time-out for an acknowledgement, as the exponent t of 4.096 us * 2^t" },
	{ "rdma.retry_cnt", KT_INT, KEY_TUNING, .max = 7, .offset = AT(rdma.retry_cnt), .def = "7",
	  .help = "Number of retries after a missing acknowledgement. Connections of RC have at most 6, because for Linux' Soft-RoCE 7 is no limit" },
	{ "rdma.rnr_retry", KT_INT, KEY_TUNING, .max = 7, .offset = AT(rdma.rnr_retry), .def = "7",
	  .help = "Number of retries while the receiver is not ready. 7 is no limit" },
	{ "rdma.max_rd_atomic", KT_INT, KEY_AUTO | KEY_TUNING, .min = 1, .max = 255, .offset = AT(rdma.max_rd_atomic), .def = "auto",
	  .help = "Number of outstanding RDMA READs of each channel, at most as many as the device supports. auto is at most 16" },
	{ "rdma.path_mtu", KT_MTU, KEY_AUTO | KEY_TUNING, .min = 256, .max = 4096, .offset = AT(rdma.path_mtu), .def = "auto",
	  .help = "Path MTU in bytes: 256, 512, 1024, 2048 or 4096. auto is the active MTU of the port" },
	{ "rdma.relaxed_ordering", KT_WORD, KEY_TUNING, .offset = AT(rdma.relaxed_ordering), .words = ordering_words, .def = "auto",
	  .help = "Let the adapter write to payload buffers in any order (PCIe relaxed ordering). auto is on for AMD and Arm processors" },
	{ "rdma.thread_domains", KT_BOOL, KEY_TUNING, .offset = AT(rdma.thread_domains), .def = "false",
	  .help = "Give each core its own doorbells (ibv_alloc_td), if the driver supports them" },
	{ "rdma.delay_mode", KT_WORD, KEY_TUNING, .offset = AT(rdma.delay_mode), .words = delay_words, .def = "batch",
	  .help = "Event after which a core pauses before the next poll of its completion queues. none is no pause, batch is a pause after each round, entry a pause after each completion, and adaptive a pause that grows while no completion arrives" },
	{ "rdma.delay_interval", KT_TIME, KEY_TUNING, .max = MS, .offset = AT(rdma.delay_interval_ns), .def = "5us",
	  .help = "Duration of the pause of rdma.delay_mode" },
	{ "rdma.qp_reset_on_failure", KT_BOOL, KEY_TUNING, .offset = AT(rdma.qp_reset_on_failure), .def = "true",
	  .help = "Reset a channel after an error completion. false: the channel is not used again" },
	{ "rdma.poll_batch", KT_INT, KEY_TUNING, .min = 1, .max = 256, .offset = AT(rdma.poll_batch), .def = "16",
	  .help = "Largest number of completions that one poll takes" },
	{ "rdma.linger", KT_TIME, KEY_RELOAD | KEY_TUNING, .max = SEC, .offset = AT(rdma.linger_ns), .def = "20ms",
	  .help = "Delay of an error reply that follows flushed RDMA WRITEs" },
	{ "rdma.ah_cache", KT_INT, KEY_TUNING, .min = 16, .max = 1048576, .offset = AT(rdma.ah_cache), .def = "1024",
	  .help = "Number of address handles that each rail caches" },
	{ "rdma.allow", KT_NETS, KEY_RELOAD, .offset = AT(rdma.allow), .words = allow_words, .def = "[]",
	  .help = "GIDs that tokens may name: addresses, blocks, or routed, which is every address with a route through the interface of a rail. An empty list means the subnets of the daemon's own rails" },
	{ "rdma.allow_special", KT_SPECIAL, KEY_RELOAD | KEY_TEST, .words = special_words, .def = "[]",
	  .help = "Kinds of addresses that tokens may name in addition: loopback, self, link_local. For tests" },
	{ "rdma.bind_gid", KT_WORD, KEY_RELOAD, .offset = AT(rdma.bind_gid), .words = bind_words, .def = "off",
	  .help = "Relation that the GID of a token must have to the address of the HTTP client: none (off), the same subnet (subnet), or the same address (exact)" },
	{ "rdma.decline_2xx", KT_MAPS, KEY_RELOAD, .list = &decline_list, .def = "[]",
	  .help = "Rules that select clients whose tokens are declined with a 2xx, because these clients fall back to HTTP only after a 2xx. The body of a declined GET has the data" },
	{ "rdma.meta_token", KT_BOOL, KEY_RELOAD, .offset = AT(rdma.meta_token), .def = "false",
	  .help = "Accept tokens in x-amz-meta-rdma-token" },
	{ "rdma.short_get_reject", KT_BOOL, KEY_RELOAD, .offset = AT(rdma.short_get_reject), .def = "false",
	  .help = "Refuse a GET without Range whose window is smaller than the object, instead of an answer with 206" },
	{ "rdma.rc.shim", KT_BOOL, 0, .offset = AT(rdma.rc.shim), .def = "off",
	  .help = "Let clients connect queue pairs by POST /.s3rdma-rc/connect, and serve rc: tokens, which name these connections. For adapters without DC transport. The connects are not signed" },
	{ "rdma.rc.connections", KT_INT, KEY_RELOAD | KEY_TUNING, .min = 1, .max = 65536, .offset = AT(rdma.rc.connections), .def = "1024",
	  .help = "Largest number of connections. A connection has a queue pair, a completion queue and a file descriptor" },
	{ "rdma.rc.per_peer", KT_INT, KEY_RELOAD | KEY_TUNING, .min = 1, .max = 65536, .offset = AT(rdma.rc.per_peer), .def = "64",
	  .help = "Largest number of connections of a client address; IPv6 addresses count by their /64" },
	{ "rdma.rc.connect_rate", KT_INT, KEY_RELOAD | KEY_TUNING, .min = 1, .max = 100000, .offset = AT(rdma.rc.connect_rate), .def = "20",
	  .help = "Largest number of connects of a client address per second, and at once" },
	{ "rdma.rc.idle", KT_TIME, KEY_RELOAD | KEY_TUNING, .min = SEC, .max = 86400 * SEC, .offset = AT(rdma.rc.idle_ns), .def = "60s",
	  .help = "Time without a request after which a connection is closed" },
	{ "rdma.in_flight", KT_SIZE, KEY_RELOAD | KEY_TUNING, .min = 64 * KIB, .max = GIB, .offset = AT(rdma.inflight_bytes), .def = "2MiB",
	  .help = "Bytes of one request that may be on the wire at a time. One piece is always allowed" },

	{ "store.backend", KT_WORD, 0, .offset = AT(store.backend), .words = backend_words, .def = "disks",
	  .help = "Back end of the store: the disks of this machine, or a RADOS cluster (package gantryd-rados)" },
	{ "store.disks", KT_MAPS, 0, .list = &disk_list, .def = "[]",
	  .help = "Disks of the store (backend disks), at least one" },
	{ "store.accept_missing", KT_UUIDS, 0, .offset = AT(store.accept_missing), .def = "[]",
	  .help = "Disks of the store that may be missing at start. Requests for objects on a missing disk are answered 503 until the disk is back" },
	{ "store.default_copies", KT_INT, 0, .min = 1, .max = 2, .offset = AT(store.default_copies), .def = "1",
	  .help = "Number of disks with a copy of each object of a new bucket, unless x-gantry-copies of CreateBucket gives another number" },
	{ "store.state_dir", KT_STRING, KEY_NONE | KEY_TUNING, .offset = AT(store.state_dir), .def = "auto",
	  .help = "Directory of the daemon's state that is not on the disks, such as the UUIDs and paths of its disks and mutes of health reports. auto is $STATE_DIRECTORY, or /var/lib/gantry if that variable is not set and the directory exists. The daemon creates no directory" },
	{ "store.min_disks", KT_INT, KEY_AUTO | KEY_RELOAD, .min = 1, .max = CONF_DISKS_MAX, .offset = AT(store.min_disks), .def = "auto",
	  .help = "Number of disks in service that /readyz needs to report ready. auto is all disks but one, and at least one" },
	{ "store.partial_listings", KT_BOOL, KEY_RELOAD, .offset = AT(store.partial_listings), .def = "false",
	  .help = "If a disk is missing, answer a list of a bucket without the objects of this disk, with the header x-gantry-partial, and not with 503" },
	{ "store.wait_for_disks", KT_TIME, 0, .max = 3600 * SEC, .offset = AT(store.wait_for_disks_ns), .def = "90s",
	  .help = "Time for which a start waits for devices that are not there yet, and for directories that had a disk of this store and have none, such as a mount that comes late. 0s is no wait" },
	{ "store.lock_wait", KT_TIME, KEY_TUNING, .max = 3600 * SEC, .offset = AT(store.lock_wait_ns), .def = "30s",
	  .help = "Longest time for which a start waits for the last writes of a process that died" },
	{ "store.disk_timeout", KT_TIME, KEY_TUNING, .max = 3600 * SEC, .offset = AT(store.disk_timeout_ns), .def = "30s",
	  .help = "Time limit for a write or flush, in a store with several disks. A disk that takes longer has failed, and is read-only until a restart. Time in which the process does not run, as with SIGSTOP, is not counted. 0s is no limit" },
	{ "store.pack_rate", KT_SIZE, KEY_TUNING, .max = TIB, .offset = AT(store.pack_rate), .def = "8MiB",
	  .help = "Limit of the rate, in bytes of objects a second, at which small objects are packed into shared allocation units in the background. 0 packs no object" },
	{ "store.move_rate", KT_SIZE, KEY_RELOAD | KEY_TUNING, .max = TIB, .offset = AT(store.move_rate), .def = "200MiB",
	  .help = "Limit of the bytes that are moved in a second when a disk is drained or added, or when second copies are rebuilt. 0 is no limit" },
	{ "store.heal_after", KT_TIME, KEY_TUNING, .max = 315360000 * SEC, .offset = AT(store.heal_after_ns), .def = "1800s",
	  .help = "Time after which the second copies of an absent disk are rebuilt on other disks. The time begins with the failure of the disk, or with the start of the daemon if the disk was absent then" },
	{ "store.scrub_interval", KT_TIME, KEY_RELOAD, .max = 315360000 * SEC, .offset = AT(store.scrub_interval_ns),
	  .def = "604800s", .help = "Time from the end of a scrub, which reads every object, to the next scrub. 0s is a scrub on request only" },
	{ "store.scrub_rate", KT_SIZE, KEY_RELOAD | KEY_TUNING, .min = 64 * KIB, .max = TIB, .offset = AT(store.scrub_rate),
	  .def = "16MiB", .help = "Largest number of bytes that a scrub reads in a second" },

	{ "rados.conf", KT_STRING, 0, .offset = AT(rados.conf), .def = "/etc/ceph/ceph.conf",
	  .help = "Configuration file of the cluster (backend rados)" },
	{ "rados.user", KT_STRING, 0, .offset = AT(rados.user), .def = "gantry",
	  .help = "Ceph user of the daemon: the value gantry is the user client.gantry" },
	{ "rados.meta_pool", KT_STRING, 0, .offset = AT(rados.meta_pool), .def = "gantry.meta",
	  .help = "Pool of the index: replicated, on fast devices" },
	{ "rados.data_pool", KT_STRING, 0, .offset = AT(rados.data_pool), .def = "gantry.data",
	  .help = "Pool of the objects' bytes: replicated or erasure coded" },
	{ "rados.namespace", KT_STRING, KEY_NONE, .offset = AT(rados.namespace_), .def = "none",
	  .help = "RADOS namespace of the store in both pools, so that several stores can share the pools" },
	{ "rados.index_shards", KT_INT, KEY_TUNING, .min = 1, .max = 4096, .offset = AT(rados.index_shards), .def = "32",
	  .help = "Number of RADOS objects over which the index of a new bucket is distributed: one for each 200,000 objects expected" },
	{ "rados.object_size", KT_SIZE, KEY_TUNING, .min = 2 * MIB, .max = 16 * MIB, .offset = AT(rados.object_bytes),
	  .def = "4MiB", .help = "Size of a data object in bytes, a multiple of 1MiB. --format uses the value, and the store keeps it" },
	{ "rados.clients", KT_INT, KEY_AUTO | KEY_TUNING, .min = 1, .max = 16, .offset = AT(rados.clients), .def = "auto",
	  .help = "Connections of librados in this process. auto is one for every 4 cores" },
	{ "rados.dead_after", KT_TIME, KEY_TUNING, .min = 5 * SEC, .max = 3600 * SEC, .offset = AT(rados.dead_after_ns),
	  .def = "15s", .help = "Time without a heartbeat of another gateway after which this gateway considers the other gateway dead, and completes or removes the unfinished changes of the dead gateway" },

	{ "s3.domain", KT_DOMAINS, 0, .def = "[]",
	  .help = "Domains of virtual-host style: the host name bucket.DOMAIN names the bucket. Path style works in addition" },

	{ "s3.etag", KT_WORD, KEY_RELOAD, .offset = AT(s3.etag), .words = etag_words, .def = "md5",
	  .help = "ETags of objects and parts that arrive in an HTTP body: the MD5 of the bytes, or random values, which cost no CPU time" },
	{ "s3.encrypted_below", KT_BOOL, KEY_RELOAD, .offset = AT(s3.encrypted_below), .def = "false",
	  .help = "States that the devices below the store encrypt all data. The daemon then accepts requests for AES256, and every reply names AES256; gantryd itself encrypts nothing" },

	{ "auth.region", KT_STRING, KEY_RELOAD, .offset = AT(auth.region), .def = "us-east-1",
	  .help = "Region of signatures. any: a signature may name any region, and answers name us-east-1. A signature without a region is always accepted" },
	{ "auth.credentials_file", KT_STRING, KEY_NONE | KEY_RELOAD, .offset = AT(auth.credentials_file), .def = "none",
	  .help = "File of access keys, see gantryd.yaml(5); mode 0600" },
	{ "auth.clock_skew", KT_TIME, KEY_RELOAD, .min = SEC, .max = 86400 * SEC, .offset = AT(auth.clock_skew_ns), .def = "900s",
	  .help = "Largest difference between the time of a signed request and the daemon's clock" },
	{ "auth.require_signed_headers", KT_BOOL, KEY_RELOAD, .offset = AT(auth.require_signed_headers), .def = "true",
	  .help = "Require that signed requests sign x-rdma-info and x-cuobj-*. x-amz-* headers must always be signed" },
	{ "auth.replay", KT_WORD, 0, .offset = AT(auth.replay), .words = replay_words, .def = "peer",
	  .help = "Repeated signatures that the daemon refuses. peer: a signature with a token, from another address than before; once: every signature with a token; reject: every signature from another address than before; off: none" },
	{ "auth.sigv2", KT_WORD, KEY_RELOAD, .offset = AT(auth.sigv2), .words = sigv2_words, .def = "off",
	  .help = "Accept signatures of version 2 (HMAC-SHA1) in URLs of GET, HEAD and PUT and in forms (presigned), as boto3 and AWS CLI 1 make them by default for us-east-1. off: the answer is an error that names the remedy" },

	{ "limits.connections", KT_INT, KEY_TUNING, .min = 1, .max = 1048576, .offset = AT(limits.connections), .def = "4096",
	  .help = "Connections of each core. If all are in use, a new connection replaces a connection with an incomplete request head, or an idle connection" },
	{ "limits.connections_per_address", KT_INT, KEY_RELOAD | KEY_TUNING, .max = 1048576, .offset = AT(limits.connections_per_address), .def = "0",
	  .help = "Connections of one client address (IPv6: of a /64) over all cores. 0 is no limit for an address" },
	{ "limits.requests", KT_INT, KEY_TUNING, .min = 1, .max = 65536, .offset = AT(limits.requests), .def = "1024",
	  .help = "Concurrent requests of each core" },
	{ "limits.pieces_per_request", KT_INT, KEY_TUNING, .min = 1, .max = CONF_PIECES_MAX, .offset = AT(limits.pieces_per_request), .def = "8",
	  .help = "Pieces (buffers) that one request may have in flight. On RADOS, a value of 8 or more allows reads of 4 MiB, which count as four pieces each" },
	{ "limits.queue", KT_INT, KEY_TUNING, .min = 1, .max = 1048576, .offset = AT(limits.queue), .def = "4096",
	  .help = "Requests of each core that may wait for a buffer or a channel" },
	{ "limits.object", KT_SIZE, KEY_RELOAD, .min = MIB, .max = 1024 * TIB, .offset = AT(limits.object_bytes), .def = "5TiB",
	  .help = "Largest object" },
	{ "limits.part", KT_SIZE, KEY_RELOAD, .min = MIB, .max = 1024 * TIB, .offset = AT(limits.part_bytes), .def = "5GiB",
	  .help = "Largest part of a multipart upload" },
	{ "limits.idle", KT_TIME, KEY_RELOAD | KEY_TUNING, .min = SEC, .max = 86400 * SEC, .offset = AT(limits.idle_ns), .def = "75s",
	  .help = "Time after which the daemon closes an idle connection" },
	{ "limits.head", KT_TIME, KEY_RELOAD | KEY_TUNING, .min = SEC, .max = 86400 * SEC, .offset = AT(limits.head_ns), .def = "10s",
	  .help = "Longest time from the first to the last byte of a request head, or of a TLS handshake" },
	{ "limits.s3_progress", KT_TIME, KEY_RELOAD | KEY_TUNING, .min = 10 * MS, .max = 86400 * SEC, .offset = AT(limits.s3_progress_ns),
	  .def = "8s", .help = "Longest time without progress of a request on an s3 listener. The limit also holds for the rest of a body whose request has been answered" },
	{ "limits.fair_by", KT_WORD, KEY_RELOAD | KEY_TUNING, .offset = AT(limits.fair_by), .words = fair_words, .def = "address",
	  .help = "Identity of a client for turns and shares: an address (IPv6: a /64), or an access key, for clients with a common proxy or NAT. Unsigned requests count by address" },
	{ "limits.body_rate", KT_SIZE, KEY_RELOAD | KEY_TUNING, .max = TIB, .offset = AT(limits.body_rate), .def = "64KiB",
	  .help = "Smallest number of bytes that an HTTP body must move in a second, in either direction, while other requests wait for the resources of this body. 0 is no limit" },
	{ "limits.body_grace", KT_TIME, KEY_RELOAD | KEY_TUNING, .min = 10 * MS, .max = 3600 * SEC, .offset = AT(limits.body_grace_ns), .def = "300ms",
	  .help = "Time for which a body may be slower than limits.body_rate" },
	{ "limits.s3_total", KT_TIME, KEY_RELOAD | KEY_TUNING, .min = 10 * MS, .max = 86400 * SEC, .offset = AT(limits.s3_total_ns),
	  .def = "8s", .help = "Longest time of an RDMA request on an s3 listener. A request gets more time in proportion to its length (limits.s3_rate)" },
	{ "limits.s3_rate", KT_SIZE, KEY_RELOAD | KEY_TUNING, .min = KIB, .max = TIB, .offset = AT(limits.s3_rate), .def = "256MiB",
	  .help = "Number of bytes for which an RDMA request gets one second in addition to limits.s3_total" },
	{ "limits.scality_total", KT_TIME, KEY_RELOAD | KEY_TUNING, .min = 10 * MS, .max = 86400 * SEC, .offset = AT(limits.scality_total_ns),
	  .def = "1500ms", .help = "Longest time of an RDMA request on a scality listener" },
	{ "limits.drain", KT_TIME, KEY_RELOAD | KEY_TUNING, .max = 3600 * SEC, .offset = AT(limits.drain_ns), .def = "30s",
	  .help = "Longest time for which a stop waits for running requests" },
	{ "limits.xml", KT_SIZE, KEY_RELOAD | KEY_TUNING, .min = 64 * KIB, .max = 64 * MIB, .offset = AT(limits.xml_bytes), .def = "4MiB",
	  .help = "Largest request body of XML. The completion of an upload of 10,000 parts takes up to 3 MiB" },
	{ "limits.upload_expire", KT_TIME, KEY_RELOAD, .max = 315360000 * SEC, .offset = AT(limits.upload_expire_ns),
	  .def = "604800s", .help = "Age at which the daemon aborts an incomplete multipart upload. 0s is never" },

	{ "lifecycle.interval", KT_TIME, KEY_RELOAD, .min = 100 * MS, .max = 604800 * SEC, .offset = AT(lifecycle.interval_ns),
	  .def = "3600s", .help = "Time between two walks over the buckets' lifecycle rules and old uploads. The first walk begins at most a minute after the start" },
	{ "lifecycle.day", KT_TIME, KEY_RELOAD | KEY_TEST, .min = SEC, .max = 86400 * SEC, .offset = AT(lifecycle.day_ns),
	  .def = "86400s", .help = "Duration of a day in lifecycle rules. Shorter values are for tests" },
	{ "lifecycle.rate", KT_INT, KEY_RELOAD | KEY_TUNING, .min = 1, .max = 1000000, .offset = AT(lifecycle.rate), .def = "10000",
	  .help = "Largest number of objects that a walk checks in a second" },

	{ "log.level", KT_WORD, KEY_RELOAD, .offset = AT(log.level), .words = level_words, .def = "info",
	  .help = "Lowest severity of logged lines" },
	{ "log.levels", KT_LEVELS, KEY_RELOAD | KEY_TUNING, .def = "{}",
	  .help = "Severities of single modules that differ from log.level" },
	{ "log.format", KT_WORD, 0, .offset = AT(log.format), .words = format_words, .def = "auto",
	  .help = "Form of log lines. auto is journal under systemd, plain elsewhere" },
	{ "log.access", KT_BOOL, KEY_RELOAD, .offset = AT(log.access), .def = "true",
	  .help = "One line for every request: access key, bucket, peer, operation, status, bytes, times" },
	{ "log.object_keys", KT_BOOL, KEY_RELOAD, .offset = AT(log.object_keys), .def = "false",
	  .help = "Log the key of the object in the line of each request too, and one line for each key that DeleteObjects names" },

	{ "audit.file", KT_STRING, KEY_NONE | KEY_RELOAD, .offset = AT(audit.file), .def = "auto",
	  .help = "File of the audit stream: one JSON object a line for each change and each refusal. auto is audit.jsonl in $LOGS_DIRECTORY, which the packages' unit sets to /var/log/gantry, and no stream where that variable is not set" },
	{ "audit.size", KT_SIZE, KEY_RELOAD, .min = 64 * KIB, .max = TIB, .offset = AT(audit.size_bytes), .def = "64MiB",
	  .help = "Largest size of this file. A full file is renamed, to audit.jsonl.1, and a new file begins" },
	{ "audit.keep", KT_INT, KEY_RELOAD, .min = 1, .max = 100, .offset = AT(audit.keep), .def = "10",
	  .help = "Number of renamed files that are kept" },
	{ "audit.reads", KT_BOOL, KEY_RELOAD, .offset = AT(audit.reads), .def = "false",
	  .help = "The audit stream has requests that only read, too" },
};
/* clang-format on */
const int conf_key_nr = NR(conf_keys);

const struct conf_key *
key_find(const struct conf_key *keys, int nr, const char *name)
{
	for (int i = 0; i < nr; i++) {
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	}
	return NULL;
}

bool
key_is_section(const char *name)
{
	size_t len = strlen(name);

	for (int i = 0; i < conf_key_nr; i++) {
		if (strncmp(conf_keys[i].name, name, len) == 0 && conf_keys[i].name[len] == '.')
			return true;
	}
	return false;
}

static size_t
join_words(const struct conf_key *k, char *out, size_t cap)
{
	size_t n = 0;

	out[0] = 0;
	for (int i = 0; k->words[i]; i++)
		n += (size_t)snprintf(out + n, n < cap ? cap - n : 0, "%s%s", i ? ", " : "", k->words[i]);
	return n;
}

/* Writes the range of a number, a size or a time. */
static void
range_expected(const struct conf_key *k, const char *or_auto, char *out, size_t cap)
{
	char lo[32], hi[32];

	if (k->type == KT_SIZE) {
		size_format(k->min, lo, sizeof lo);
		size_format(k->max, hi, sizeof hi);
		snprintf(out, cap, "a size (bytes, or KiB MiB GiB TiB) from %s to %s%s", lo, hi, or_auto);
	} else if (k->type == KT_TIME) {
		time_format(k->min, lo, sizeof lo);
		time_format(k->max, hi, sizeof hi);
		snprintf(out, cap, "a time (ns us ms s m h d) from %s to %s%s", lo, hi, or_auto);
	} else if (k->max == UINT64_MAX) {
		snprintf(out, cap, "a number of at most 64 bits (decimal or 0x...)%s", or_auto);
	} else {
		snprintf(out, cap, "an integer from %llu to %llu%s", (unsigned long long)k->min,
			 (unsigned long long)k->max, or_auto);
	}
}

void
key_expected(const struct conf_key *k, char *out, size_t cap)
{
	const char *or_auto = k->flags & KEY_AUTO ? ", or auto" : "";
	const char *or_none = k->flags & KEY_NONE ? ", or none" : "";
	char words[160];
	size_t n = 0;

	switch (k->type) {
	case KT_BOOL:
		snprintf(out, cap, "true or false");
		return;
	case KT_INT:
	case KT_U64:
	case KT_SIZE:
	case KT_TIME:
		range_expected(k, or_auto, out, cap);
		return;
	case KT_WORD:
		join_words(k, words, sizeof words);
		snprintf(out, cap, "one of %s", words);
		return;
	case KT_MTU:
		snprintf(out, cap, "256, 512, 1024, 2048, 4096%s", or_auto);
		return;
	case KT_STRING:
		snprintf(out, cap, "a text%s", or_none);
		return;
	case KT_ADDR:
		snprintf(out, cap, "an address and port (127.0.0.1:9000, [::1]:9000, *:9000)%s", or_none);
		return;
	case KT_NETS:
		snprintf(out, cap, "a list of addresses or blocks (10.0.0.0/8, fd00::/8)%s%s",
			 k->words ? ", and the word " : "", k->words ? k->words[0] : "");
		return;
	case KT_SPECIAL:
		join_words(k, words, sizeof words);
		snprintf(out, cap, "a list of any of %s", words);
		return;
	case KT_DOMAINS:
		snprintf(out, cap, "a list of up to %d domain names", CONF_DOMAINS_MAX);
		return;
	case KT_UUIDS:
		snprintf(out, cap, "a list of up to %d UUIDs of disks", CONF_DISKS_MAX);
		return;
	case KT_DEVICES:
		snprintf(out, cap, "auto, none, or a list of device names, addresses or GIDs");
		return;
	case KT_CORES:
		snprintf(out, cap, "auto, a number of threads from 1 to %d, or a list of CPU numbers",
			 CONF_CORES_MAX);
		return;
	case KT_LEVELS:
		for (int i = 0; i < LOG_MODULES_NR; i++)
			n += (size_t)snprintf(words + n, sizeof words - n, "%s%s", i ? ", " : "",
					      log_module_name[i]);
		snprintf(out, cap, "a map of modules (%s) to levels (error to debug)", words);
		return;
	case KT_MAPS:
		snprintf(out, cap, "a list of maps, each %s", k->list->what);
		return;
	}
}

static const char *
key_class(const struct conf_key *k)
{
	return k->flags & KEY_TEST ? "test" : k->flags & KEY_TUNING ? "tuning" : "basic";
}

static void
print_row(const char *prefix, const struct conf_key *k, bool reload, FILE *out)
{
	char expected[256];

	key_expected(k, expected, sizeof expected);
	fprintf(out, "%s%s\t%s\t%s\t%s\t%s\t%s\n", prefix, k->name, expected,
		k->def                    ? k->def
		: k->flags & KEY_REQUIRED ? "required"
					  : "none",
		reload ? "reload" : "restart", k->help, key_class(k));
}

void
conf_print_table(FILE *out)
{
	for (int i = 0; i < conf_key_nr; i++) {
		const struct conf_key *k = &conf_keys[i];
		char prefix[64];

		print_row("", k, k->flags & KEY_RELOAD, out);
		if (k->type != KT_MAPS)
			continue;
		snprintf(prefix, sizeof prefix, "%s[].", k->name);
		for (int j = 0; j < k->list->key_nr; j++)
			print_row(prefix, &k->list->keys[j], k->list->keys[j].flags & KEY_RELOAD, out);
	}
}

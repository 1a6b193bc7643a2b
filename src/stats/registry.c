/*
 * Every metric's name, type, labels and help, in one table; and what bounds the labels that stats/ fills in
 * itself. Base units, `_total` for counters, `_seconds` and `_bytes` where they apply.
 */
#include "stats/stats_int.h"

const struct stats_desc stats_desc[M_NR] = {
	[M_BUILD_INFO] = { "gantry_build_info", ST_GAUGE, "version", "Always 1; the label is the version." },
	[M_REQUESTS] = { "gantry_requests_total", ST_COUNTER, "dialect operation code transport",
			 "Requests that ended, by HTTP status; none: the client had gone." },
	[M_REQUEST_DURATION] = { "gantry_request_duration_seconds", ST_HISTOGRAM, "operation transport",
				 "Time from a request's header to its reply." },
	[M_FIRST_BYTE] = { "gantry_request_first_byte_seconds", ST_HISTOGRAM, "operation transport",
			   "Time from a request's header to its first payload byte at the client, or to its "
			   "reply." },
	[M_PHASE_DURATION] = { "gantry_request_phase_seconds", ST_HISTOGRAM, "phase transport",
			       "Time that a request spent in each phase." },
	[M_REQUESTS_IN_FLIGHT] = { "gantry_requests_in_flight", ST_GAUGE, "core",
				   "Requests that have not ended, drained ones included." },
	[M_TRANSFER_BYTES] = { "gantry_transfer_bytes_total", ST_COUNTER, "direction transport",
			       "Payload that moved: push is to the client, pull from it." },
	[M_DECLINES] = { "gantry_declines_total", ST_COUNTER, "reason",
			 "Requests whose token was not used, and why." },
	[M_CONNECTIONS] = { "gantry_connections", ST_GAUGE, "core", "Open client connections." },
	[M_ACCEPTED] = { "gantry_connections_accepted_total", ST_COUNTER, "", "Client connections taken." },
	[M_HTTP_REFUSED] = { "gantry_http_refused_total", ST_COUNTER, "",
			     "Requests refused before any dialect saw them." },
	[M_SUMS_IGNORED] = { "gantry_empty_checksums_ignored_total", ST_COUNTER, "",
			     "Checksums of the empty string that came with an RDMA window." },
	[M_QUEUE_FULL] = { "gantry_queue_full_total", ST_COUNTER, "",
			   "Requests answered 503 because a queue was full." },
	[M_DEADLINE_PASSED] = { "gantry_deadlines_passed_total", ST_COUNTER, "",
				"Requests whose deadline passed." },
	[M_CLIENT_GONE] = { "gantry_clients_gone_total", ST_COUNTER, "", "Requests whose client went away." },
	[M_RETRIED] = { "gantry_pulls_retried_total", ST_COUNTER, "",
			"Pulls tried once more on a fresh channel." },
	[M_EXPIRED] = { "gantry_lifecycle_expired_objects_total", ST_COUNTER, "",
			"Objects deleted by lifecycle rules." },
	[M_UPLOAD_EXPIRED] = { "gantry_lifecycle_aborted_uploads_total", ST_COUNTER, "",
			       "Uploads ended by lifecycle rules or limits.upload_expire." },
	[M_LIFE_WALKS] = { "gantry_lifecycle_walks_total", ST_COUNTER, "",
			   "Walks over all buckets that came to their end." },
	[M_BUFFERS] = { "gantry_buffers", ST_GAUGE, "class state", "Payload buffers." },
	[M_BUFFERS_HIGH] = { "gantry_buffers_used_max", ST_GAUGE, "class",
			     "Most payload buffers in use at once since the start." },
	[M_REQUESTS_HIGH] = { "gantry_requests_in_flight_max", ST_GAUGE, "core",
			      "Most requests at once since the start." },
	[M_QUEUED] = { "gantry_requests_queued", ST_GAUGE, "core",
		       "Requests that wait for a buffer, a channel or an address handle." },
	[M_QUEUED_HIGH] = { "gantry_requests_queued_max", ST_GAUGE, "core",
			    "Most requests that waited at once since the start." },
	[M_CORE_TURNED] = { "gantry_core_stalled_seconds", ST_GAUGE, "core",
			    "Time since the core's loop last turned; 0 while it sleeps." },
	[M_RAIL_UP] = { "gantry_rail_up", ST_GAUGE, "rail", "1 while the rail can be used." },
	[M_RDMA_COMPLETIONS] = { "gantry_rdma_completions_total", ST_COUNTER, "rail status",
				 "Work completions." },
	[M_RDMA_BYTES] = { "gantry_rdma_bytes_total", ST_COUNTER, "rail op",
			   "Bytes moved by RDMA: write serves GET, read serves PUT." },
	[M_RDMA_OPERATIONS] = { "gantry_rdma_operations_total", ST_COUNTER, "rail op",
				"RDMA work requests that ended well." },
	[M_DCI] = { "gantry_dci", ST_GAUGE, "rail state", "DC initiators." },
	[M_DCI_RESETS] = { "gantry_dci_resets_total", ST_COUNTER, "rail",
			   "DC initiators reset after an error." },
	[M_DCI_RECREATED] = { "gantry_dci_recreated_total", ST_COUNTER, "rail",
			      "DC initiators destroyed and made anew, because a completion stayed away." },
	[M_RDMA_REOPENS] = { "gantry_rdma_reopens_total", ST_COUNTER, "rail",
			     "Times the rail's device was opened anew, because its context had died." },
	[M_AH_LOOKUPS] = { "gantry_address_handle_lookups_total", ST_COUNTER, "rail result",
			   "Address handles asked for." },
	[M_STORE_SIZE] = { "gantry_store_size_bytes", ST_GAUGE, "disk", "Size of a disk's store." },
	[M_STORE_FREE] = { "gantry_store_free_bytes", ST_GAUGE, "disk", "Space free for objects." },
	[M_STORE_LOG_SIZE] = { "gantry_store_log_size_bytes", ST_GAUGE, "disk", "Size of the log." },
	[M_STORE_LOG_USED] = { "gantry_store_log_used_bytes", ST_GAUGE, "disk",
			       "Log that may not be overwritten yet." },
	[M_STORE_INDEX] = { "gantry_store_index_bytes", ST_GAUGE, "disk", "Memory of the index." },
	[M_STORE_OBJECTS] = { "gantry_store_objects", ST_GAUGE, "disk", "Objects." },
	[M_STORE_COMMITS] = { "gantry_store_commits_total", ST_COUNTER, "disk", "Log blocks committed." },
	[M_STORE_RECORDS] = { "gantry_store_records_total", ST_COUNTER, "disk", "Records committed." },
	[M_STORE_FLUSHES] = { "gantry_store_flushes_total", ST_COUNTER, "disk", "Flushes of the disk." },
	[M_STORE_SNAPSHOTS] = { "gantry_store_snapshots_total", ST_COUNTER, "disk",
				"Snapshots of the index." },
	[M_STORE_IO_BYTES] = { "gantry_store_io_bytes_total", ST_COUNTER, "disk op",
			       "Bytes read from and written to the disk." },
	[M_STORE_OPERATIONS] = { "gantry_store_operations_total", ST_COUNTER, "disk op",
				 "Reads from and writes to the disk." },
	[M_STORE_LATENCY] = { "gantry_store_io_seconds", ST_HISTOGRAM, "disk op",
			      "Time that a read, a write (up to 1 MiB) or a flush took." },
	[M_STORE_ERRORS] = { "gantry_store_errors_total", ST_COUNTER, "disk kind",
			     "Operations that the disk failed (io), and content that did not match its CRC "
			     "(crc)." },
	[M_STORE_UP] = { "gantry_store_up", ST_GAUGE, "disk",
			 "1 while the disk works; 0 once it failed (read-only)." },
	[M_SCRUB_RUNNING] = { "gantry_scrub_running", ST_GAUGE, "",
			      "1 while a walk that reads every object is under way, paused or not." },
	[M_SCRUB_WALKS] = { "gantry_scrub_walks_total", ST_COUNTER, "",
			    "Walks that read every object and came to their end." },
	[M_SCRUB_OBJECTS] = { "gantry_scrub_objects_total", ST_COUNTER, "", "Objects that walks have read." },
	[M_SCRUB_BYTES] = { "gantry_scrub_bytes_total", ST_COUNTER, "", "Bytes that walks have read." },
	[M_SCRUB_ERRORS] = { "gantry_scrub_errors_total", ST_COUNTER, "kind",
			     "Objects that a walk found damaged (crc), or that the disk would not read (io); "
			     "those that stay so count in every walk." },
	[M_SCRUB_DAMAGED] = { "gantry_scrub_damaged_objects", ST_GAUGE, "",
			      "Objects that the last whole walk found bad, or the one under way if more." },
	[M_SCRUB_FINISHED] = { "gantry_scrub_last_finished_timestamp_seconds", ST_GAUGE, "",
			       "When a walk last came to its end, in seconds since 1970; 0: none since the "
			       "start." },
	[M_LOG_LINES] = { "gantry_log_lines_total", ST_COUNTER, "level", "Lines logged." },
	[M_LOG_HELD] = { "gantry_log_lines_held_total", ST_COUNTER, "",
			 "Lines held back because too many came from one place." },
	[M_DRAINING] = { "gantry_draining", ST_GAUGE, "", "1 while new requests are refused." },
	[M_CONFIG_RELOAD_FAILURES] = { "gantry_reload_failures_total", ST_COUNTER, "",
				       "Reloads whose configuration could not be used." },
	[M_CONFIG_RELOADED] = { "gantry_config_last_reload_success_timestamp_seconds", ST_GAUGE, "",
				"When the configuration in use was taken, in seconds since 1970." },
	[M_CONFIG_RESTART_NEEDED] = { "gantry_config_restart_needed", ST_GAUGE, "",
				      "Keys that were changed and take effect only with a restart." },
	[M_PROCESS_CPU] = { "process_cpu_seconds_total", ST_COUNTER, "", "User and system time." },
	[M_PROCESS_RESIDENT] = { "process_resident_memory_bytes", ST_GAUGE, "", "Resident memory." },
	[M_PROCESS_VIRTUAL] = { "process_virtual_memory_bytes", ST_GAUGE, "", "Virtual memory." },
	[M_PROCESS_FDS] = { "process_open_fds", ST_GAUGE, "", "Open file descriptors." },
	[M_PROCESS_FDS_MAX] = { "process_max_fds", ST_GAUGE, "", "Most file descriptors that may be open." },
	[M_PROCESS_START] = { "process_start_time_seconds", ST_GAUGE, "", "Start, in seconds since 1970." },
};

/* What we answer.  The first is every other status, the last a reply that nobody was left to take. */
const char *const stats_code_text[STATS_CODES_NR] = {
	"other", "100", "200", "204", "206", "304", "400", "403", "404", "405", "408", "409",
	"411",   "412", "413", "414", "416", "417", "431", "500", "501", "503", "507", "none",
};

int
stats_code_slot(int http_code)
{
	static const short codes[STATS_CODES_NR] = { -1,  100, 200, 204, 206, 304, 400, 403,
						     404, 405, 408, 409, 411, 412, 413, 414,
						     416, 417, 431, 500, 501, 503, 507, 0 };

	for (int i = 1; i < STATS_CODES_NR; i++) {
		if (codes[i] == http_code)
			return i;
	}
	return 0;
}

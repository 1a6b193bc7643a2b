/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: journal fields under systemd, plain lines on a terminal, JSON on request. Any thread may call
 * these functions.
 *
 * Leaf code does not log above debug; the function that decides about an error logs it once. A line is cut at
 * 4.5 KiB. log_limited() keeps a client from filling the journal: at most ten lines a second per call site,
 * with the number of dropped lines.
 *
 * Each module (LOG_MODULE) may have a level of its own, and uses the common one otherwise. Events for which
 * an operator may want an alert are logged with log_event(): the class has a MESSAGE_ID in the journal
 * (systemd/gantry.catalog, docs/events.md) and a name in JSON.
 */
#ifndef GANTRY_BASE_LOG_H
#define GANTRY_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTE, LOG_INFO, LOG_DEBUG, LOG_LEVEL_NR };
enum log_format { LOG_AUTO, LOG_PLAIN, LOG_JOURNAL, LOG_JSON };
extern const char *const log_level_name[LOG_LEVEL_NR];

/* Starts the log of the process. Called before the second thread of the process starts. Only log_set_level()
 * may be called before log_init(). */
void log_init(enum log_format format, enum log_level level);
/* Passes all log lines to fn, without line end and level name; for libraries. fn NULL: lines go to the output
 * of log_init() again. Called while no other thread logs. */
typedef void log_sink_fn(enum log_level level, const char *text);
void log_set_sink(log_sink_fn *fn);
/* Starts a thread that sends the log lines from now on, so that no caller waits for the reader of the log.
 * Lines wait in memory, at most 1 MiB of them. Lines that do not fit are dropped and counted, and a log line
 * reports their number. Returns 0; -errno: the thread was not started, and callers continue to send lines
 * themselves. The thread has the signal mask of the caller. */
int log_queue_start(void);
/* Waits until all waiting lines have been sent, for at most max_ns. Any thread may call this function. */
void log_flush(uint64_t max_ns);
/* Sends all waiting lines, for at most max_ns, and ends the thread of log_queue_start(). If the reader of the
 * log does not read, the thread remains and lines are dropped. */
void log_queue_stop(uint64_t max_ns);
/* Writes text to standard output, through the queue of log lines. */
void log_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

struct log_dropped {
	uint64_t lines; /* number of lines dropped since the start */
	/* number of dropped lines that no log line has reported yet, because the reader does not read */
	uint64_t waiting;
	/* number of unreported lines that were warnings, errors or lines of the access log */
	uint64_t audit_waiting;
	/* time, in ns since 1970, of the first dropped line that is not reported yet; 0: all are reported */
	uint64_t since_wall_ns;
};
/* Returns the numbers of lines for which the queue had no room. Any thread may call this function. */
void log_get_dropped(struct log_dropped *ret);
/* Sets the common level; -1: no line is logged. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* Parses the name of a level, "error" to "debug". Returns 0 or -EINVAL. */
int log_level_parse(const char *text, enum log_level *ret_level);

/* ---- modules ---- */

#define LOG_MODULES_NR 12
#define LOG_LEVEL_COMMON (-1)
/* Names of all modules, which are the valid values of LOG_MODULE. */
extern const char *const log_module_name[LOG_MODULES_NR];
/* Returns the number of the module with this name; -ENOENT: no module has the name. */
int log_module_find(const char *name);
/* Sets the level of a module: an enum log_level, or LOG_LEVEL_COMMON. */
void log_set_module_level(int module, int level);
/* Returns the level of a module as set by log_set_module_level(): an enum log_level, or LOG_LEVEL_COMMON. */
int log_get_module_level(int module);

/* ---- classes of events ---- */

enum log_event {
	LOG_EV_NONE,
	LOG_EV_READY,          /* the daemon serves */
	LOG_EV_STOPPED,        /* the daemon ended normally */
	LOG_EV_DRAIN,          /* the daemon begins to drain, or serves again */
	LOG_EV_RELOADED,       /* a new configuration is in use */
	LOG_EV_RELOAD_FAILED,  /* a new configuration was refused; the old one stays in use */
	LOG_EV_RESTART_NEEDED, /* the new configuration changes keys that need a restart */
	LOG_EV_START_FAILED,   /* the daemon cannot start; the line has the reason */
	LOG_EV_DISK_FAILED,    /* a disk is read-only until a restart */
	LOG_EV_DAMAGED,        /* the scrub found a damaged object, or damaged metadata of a disk */
	LOG_EV_SCRUB,          /* a scan of the scrub ended */
	LOG_EV_RAIL_DOWN,      /* a rail cannot be used */
	LOG_EV_RAIL_UP,        /* a rail can be used again */
	LOG_EV_REOPENED,       /* a device with a dead context was re-opened */
	LOG_EV_CORE_STUCK,     /* the event loop of a core does not run */
	LOG_EV_CERTIFICATE,    /* a certificate has expired or will expire soon */
	LOG_EV_CONTROL,        /* an operator's command was carried out */
	LOG_EV_TRACE,          /* one step of a traced request */
	LOG_EV_ACCESS,         /* a request ended */
	LOG_EV_NR
};
struct log_event_desc {
	const char *name; /* name of the event, such as "reload_failed" */
	const char *id;   /* MESSAGE_ID of the event, 32 hex digits; it never changes */
	const char *what; /* description of the event in one sentence, for the documentation */
};
extern const struct log_event_desc log_events[LOG_EV_NR];

/* Returns the number of lines logged at a level since the start. */
uint64_t log_lines(enum log_level level);
/* Returns the number of lines dropped by log_limited() since the start. */
uint64_t log_lines_held(void);

struct log_site {
	_Atomic uint64_t window_s;
	_Atomic uint32_t in_window, held;
};

/* Highest level of any module. A call to log at a higher level costs only one load. */
extern _Atomic int log_max_;
bool log_enabled(enum log_level level, const char *module);

void log_write(enum log_level level, const char *module, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Writes a line about an event. request: id of the request that the line is about; NULL: none. */
void log_write_event(enum log_event ev, enum log_level level, const char *module, const char *request,
		     const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* A searchable value of a log line. In JSON the value is a separate member, in the journal a field (GANTRY_
 * and the name in capitals), elsewhere NAME=VALUE at the beginning of the text. Values are printable ASCII
 * without blanks, quotes and backslashes. */
struct log_field {
	const char *name, *value;
};
#define LOG_FIELDS_MAX 4
/* Writes a line about an event with fields, at most LOG_FIELDS_MAX of them. */
void log_write_fields(enum log_event ev, enum log_level level, const char *module, const char *request,
		      const struct log_field *fields, int field_nr, const char *fmt, ...)
	__attribute__((format(printf, 7, 8)));
bool log_allowed(struct log_site *site, uint32_t *ret_held);

#define log_on(level)                                                                                        \
	((int)(level) <= atomic_load_explicit(&log_max_, memory_order_relaxed) &&                            \
	 log_enabled((level), LOG_MODULE))
#define log_at(level, ...)                                                                                   \
	do {                                                                                                 \
		if (log_on(level))                                                                           \
			log_write(level, LOG_MODULE, __VA_ARGS__);                                           \
	} while (0)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_note(...) log_at(LOG_NOTE, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_event(ev, level, ...)                                                                            \
	do {                                                                                                 \
		if (log_on(level))                                                                           \
			log_write_event(ev, level, LOG_MODULE, NULL, __VA_ARGS__);                           \
	} while (0)
/* Logs a line at a limited rate: at most ten lines a second from one call site. Used for every line that a
 * client can cause. */
#define log_limited(level, ...)                                                                              \
	do {                                                                                                 \
		static struct log_site log_site_;                                                            \
		uint32_t log_held_;                                                                          \
		if (log_on(level) && log_allowed(&log_site_, &log_held_)) {                                  \
			if (log_held_)                                                                       \
				log_write(level, LOG_MODULE, "(%u similar lines held back)", log_held_);     \
			log_write(level, LOG_MODULE, __VA_ARGS__);                                           \
		}                                                                                            \
	} while (0)

/* A file may define LOG_MODULE, such as "store", before it includes this header. */
#ifndef LOG_MODULE
#define LOG_MODULE "gantryd"
#endif

#endif

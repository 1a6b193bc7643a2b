/*
 * The log: journal fields under systemd, plain lines on a terminal, JSON on request.  Any thread.
 *
 * Leaf code does not log above debug; the place that decides logs once.  A line is cut at 1 KiB.
 * log_limited() keeps a client from filling the journal: at most ten lines a second per call site, and it
 * says how many were held back.
 */
#ifndef GANTRY_BASE_LOG_H
#define GANTRY_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTE, LOG_INFO, LOG_DEBUG, LOG_LEVEL_NR };
enum log_format { LOG_AUTO, LOG_PLAIN, LOG_JOURNAL, LOG_JSON };

/* Process-wide; before the first thread starts, except log_set_level(). */
void log_init(enum log_format format, enum log_level level);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* "error" ... "debug" to the level; -EINVAL. */
int log_level_parse(const char *text, enum log_level *ret_level);
int log_format_parse(const char *text, enum log_format *ret_format);

struct log_site {
	_Atomic uint64_t window_s;
	_Atomic uint32_t in_window, held;
};

void log_write(enum log_level level, const char *module, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool log_allowed(struct log_site *site, uint32_t *ret_held);

#define log_at(level, ...)                                                                                   \
	do {                                                                                                 \
		if ((level) <= log_get_level())                                                              \
			log_write(level, LOG_MODULE, __VA_ARGS__);                                           \
	} while (0)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_note(...) log_at(LOG_NOTE, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
/* For anything that a client can cause. */
#define log_limited(level, ...)                                                                              \
	do {                                                                                                 \
		static struct log_site log_site_;                                                            \
		uint32_t log_held_;                                                                          \
		if ((level) <= log_get_level() && log_allowed(&log_site_, &log_held_)) {                     \
			if (log_held_)                                                                       \
				log_write(level, LOG_MODULE, "(%u similar lines held back)", log_held_);     \
			log_write(level, LOG_MODULE, __VA_ARGS__);                                           \
		}                                                                                            \
	} while (0)

/* A file may say `#define LOG_MODULE "store"` before it includes this. */
#ifndef LOG_MODULE
#define LOG_MODULE "gantryd"
#endif

#endif

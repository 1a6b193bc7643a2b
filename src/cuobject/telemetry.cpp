/* SPDX-License-Identifier: Apache-2.0 */
#include "cuobject/telemetry.hpp"

#include "cuobject/cuobjtelem.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Nothing here has a destructor: objects of programs may be destroyed after ours were. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static std::ostream *stream;
static std::atomic<unsigned> want{ CUOBJ_LOG_PATH_ERROR };
static std::atomic<unsigned> want_ops{ ~0u };

void
telemetry_to(std::ostream *os)
{
	pthread_mutex_lock(&lock);
	stream = os;
	pthread_mutex_unlock(&lock);
}

void
telemetry_flags(unsigned flags, unsigned ops)
{
	want = flags;
	want_ops = ops;
}

bool
telemetry_wants(unsigned flag)
{
	return want & flag;
}

void
telemetry_in_child()
{
	pthread_mutex_init(&lock, nullptr);
}

/* A key is whatever a client asks for: it ends no line, and begins none. */
static void
make_one_line(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

void
telemetry_line(unsigned flag, unsigned op, const char *text)
{
	const char *level = flag == CUOBJ_LOG_PATH_ERROR  ? "error"
			    : flag == CUOBJ_LOG_PATH_INFO ? "info"
							  : "debug";
	char line[700], when[32];
	struct timespec now;
	struct tm tm;

	if (!(want & flag) || (op && !(want_ops & op)))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(line, sizeof line - 1, "%s.%06ldZ %s %ld %s", when, now.tv_nsec / 1000, level,
		 (long)syscall(SYS_gettid), text);
	make_one_line(line);
	strcat(line, "\n");
	pthread_mutex_lock(&lock);
	try {
		if (stream)
			*stream << line << std::flush;
		else
			fputs(line, stderr);
	} catch (...) {
		/* A stream that throws has said so to its owner. */
	}
	pthread_mutex_unlock(&lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress - the progress of a long job, as text for people: the amount of work that is done, of the total,
 * the rate, and the time that is left.
 *
 * On a terminal the text is one line, which is drawn again a few times a second and fits the width. Elsewhere
 * it is a line a minute, the first after a minute. A separate thread writes the text, also while the job
 * waits. The job only counts; the thread asks for the counts.
 */
#ifndef GANTRY_BASE_PROGRESS_H
#define GANTRY_BASE_PROGRESS_H

#include "base/clock.h"
#include "base/periodic.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PROGRESS_TEXT 512
#define PROGRESS_LINE_NS (200 * NS_PER_MS) /* time between two drawings of the line of a terminal */
#define PROGRESS_MINUTE_NS (60 * NS_PER_S) /* time between two lines elsewhere */
#define PROGRESS_SPAN_NS (10 * NS_PER_S)   /* the rate is that of the last one or two spans */

/* The state of a job at a time. */
struct progress_view {
	char what[200];   /* text at the end of the line, about the work; "": none */
	uint64_t done;    /* amount of work that is done, in bytes or units */
	uint64_t total;   /* amount of all work; 0: unknown */
	const char *unit; /* name of the units, such as "records"; NULL: bytes */
	const char *more; /* text after the amounts; NULL: none */
	bool is_estimate; /* the total is an estimate */
	bool is_time;     /* the amounts are times in seconds, which pass by themselves: there is no rate */
	unsigned stage;   /* number of the part of the job; with another number the rate begins again */
};

/* The rate of a job: marks of its progress, one or two spans old. */
struct progress_rate {
	bool has_marks;
	unsigned stage;
	uint64_t began_ns; /* beginning of the stage */
	uint64_t old_ns, old_done, mid_ns, mid_done;
};

/* Notes the state of a job at a time. Returns its rate, in bytes or units a second; 0: unknown. */
uint64_t progress_note(struct progress_rate *r, const struct progress_view *v, uint64_t now_ns);
/* Writes the state of a job as text, such as "1.0 GiB of 4.0 GiB (25 %), 100.0 MiB/s, 31 s left". */
void progress_text(const struct progress_view *v, const struct progress_rate *r, uint64_t rate,
		   uint64_t now_ns, char *text, size_t cap);

enum progress_form {
	PROGRESS_NONE,     /* nothing is written */
	PROGRESS_TERMINAL, /* one line that is drawn again */
	PROGRESS_MINUTES,  /* a line a minute */
};

/* A display of progress. All members are private to progress.c. */
struct progress {
	pthread_mutex_t lock;
	struct periodic thread;
	enum progress_form form;
	FILE *f;
	const char *name; /* text before a line a minute, such as "gantry: " */
	void (*look)(void *cookie, struct progress_view *ret_view);
	void *cookie;
	struct progress_rate rate;
	uint64_t shown_ns;
	bool is_drawn;
};

#define PROGRESS_INIT                                                                                        \
	{                                                                                                    \
		.lock = PTHREAD_MUTEX_INITIALIZER                                                            \
	}

/* Returns the form for a file: PROGRESS_TERMINAL for a terminal, else PROGRESS_MINUTES. */
enum progress_form progress_form_of(FILE *f);
/* Begins to write the progress to f, with all signals blocked in its thread. look() fills in a cleared view;
 * it is called by that thread. Nothing is written if no thread can be started. p: PROGRESS_INIT, or stopped. */
void progress_start(struct progress *p, enum progress_form form, FILE *f, const char *name,
		    void (*look)(void *cookie, struct progress_view *ret_view), void *cookie);
/* Ends the display, and erases the line of a terminal. Does nothing if p was not started. */
void progress_stop(struct progress *p);
/* Erases the line of a terminal, and prevents its drawing until progress_show(), so that the caller can write
 * lines to the terminal meanwhile. Any thread; p may be stopped. */
void progress_hide(struct progress *p);
void progress_show(struct progress *p);
/* Writes the progress if it is due at a time. Called by the thread of the display, and by tests. */
void progress_turn(struct progress *p, uint64_t now_ns);
/* Makes the line of a terminal: a bar if there is room, and the text, at most `columns` bytes long. */
void progress_line(const struct progress_view *v, const char *text, unsigned columns, char *line, size_t cap);

#endif

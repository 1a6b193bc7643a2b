/* SPDX-License-Identifier: Apache-2.0 */
/* Two operations that a back end has in flight at once; see diff.h. */
#include "tests/fake/diff.h"

#include "base/check.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* ---- two operations as coroutines ---- */

#define STACK_BYTES ((size_t)1 << 20)

struct fibre {
	ucontext_t ctx;
	void *stack;
	const struct diff_op *op;
	struct diff_answer *answer;
	const struct store_op *waits; /* NULL: for nothing */
	bool is_over;
};

static struct fibre fibres[2], *runs; /* runs: NULL: the loop */
static struct diff_end *of;
static ucontext_t loop;

bool
diff_two_wait(const struct store_op *op)
{
	if (!runs)
		return false;
	runs->waits = op;
	swapcontext(&runs->ctx, &loop);
	return true;
}

static void
body(void)
{
	diff_run(of, runs->op);
	runs->is_over = true;
}

static void
begin(struct fibre *f, const struct diff_op *op, struct diff_answer *answer)
{
	if (!f->stack)
		f->stack = malloc(STACK_BYTES);
	check(f->stack);
	diff_answer_clear(answer);
	f->op = op;
	f->answer = answer;
	f->waits = NULL;
	f->is_over = false;
	getcontext(&f->ctx);
	f->ctx.uc_stack.ss_sp = f->stack;
	f->ctx.uc_stack.ss_size = STACK_BYTES;
	f->ctx.uc_link = &loop;
	makecontext(&f->ctx, body, 0);
}

/* Continues an operation, unless it waits. */
static void
go_on(struct fibre *f)
{
	if (f->is_over || (f->waits && f->waits->port))
		return;
	of->answer = f->answer;
	if (of->select)
		of->select(of, f->op->process);
	runs = f;
	swapcontext(&loop, &f->ctx);
	runs = NULL;
}

/* Runs two operations; the second one begins so many turns after the first one. Returns true if the first one had not ended then. */
static bool
run_both(struct diff_end *e, const struct diff_op op[2], unsigned turns)
{
	bool overlap;

	of = e;
	begin(&fibres[0], &op[0], &e->two[0]);
	begin(&fibres[1], &op[1], &e->two[1]);
	go_on(&fibres[0]);
	for (; turns && !fibres[0].is_over; turns--) {
		diff_turn(e);
		go_on(&fibres[0]);
	}
	overlap = !fibres[0].is_over;
	for (;;) {
		go_on(&fibres[1]);
		go_on(&fibres[0]);
		if (fibres[0].is_over && fibres[1].is_over)
			return overlap;
		diff_turn(e);
	}
}

/* ---- the log ---- */

void
diff_log_add(struct diff_log *log, const struct diff_op *op, enum diff_how how)
{
	if (log->nr == log->cap) {
		log->cap = log->cap ? 2 * log->cap : 64;
		log->entry = realloc(log->entry, log->cap * sizeof *log->entry);
		check(log->entry);
	}
	log->entry[log->nr++] = (struct diff_logged){ .op = *op, .ns = diff_now(), .how = how };
}

void
diff_log_free(struct diff_log *log)
{
	free(log->entry);
	*log = (struct diff_log){ .nr = 0 };
}

/* Does an operation on the store in memory, alone or as one of two. */
static void
do_as(struct diff_end *e, const struct diff_op *op, enum diff_how how, struct diff_answer *answer)
{
	static struct diff_told before;

	if (how == DIFF_FIRST) {
		before = e->told;
		e->before = &before;
	}
	if (how == DIFF_ALONE)
		e->before = NULL;
	e->answer = answer;
	diff_run(e, op);
	if (how == DIFF_SECOND)
		e->before = NULL;
}

/* Brings the store in memory back to the end of the log. */
static void
do_again(struct diff_end *e, const struct diff_log *log)
{
	uint64_t now = diff_now();

	e->stop(e);
	memset(&e->told, 0, sizeof e->told);
	e->start(e, true);
	for (size_t i = 0; i < log->nr; i++) {
		diff_clock(log->entry[i].ns);
		diff_answer_clear(&e->own);
		do_as(e, &log->entry[i].op, log->entry[i].how, &e->own);
	}
	e->before = NULL;
	diff_clock(now);
}

/* ---- the state after two operations ---- */

#define LOOKS_MAX 16

struct looks {
	struct diff_op op[LOOKS_MAX];
	unsigned nr;
};

static void
add_look(struct looks *l, const struct diff_op *of_op, enum diff_kind kind)
{
	check(l->nr < LOOKS_MAX);
	l->op[l->nr++] = (struct diff_op){ .kind = kind,
					   .nr = of_op->nr,
					   .process = of_op->process,
					   .bucket = of_op->bucket,
					   .key = of_op->key,
					   .upload = of_op->upload,
					   .prefix = "",
					   .max = kind == OP_BUCKET_GET_ATTRS ? STORE_BUCKET_ATTRS_MAX : 100,
					   .shows_gone = true,
					   .has_use = of_op->has_use };
}

/* Chooses looks at all that the operations may have changed; the one by the process of the other one. */
static void
choose_looks(struct looks *l, const struct diff_op op[2])
{
	l->nr = 0;
	for (int i = 0; i < 2; i++) {
		struct diff_op at = op[i];

		at.process = op[!i].process;
		add_look(l, &at, OP_READ);
		add_look(l, &at, OP_UPLOAD_STAT);
		add_look(l, &at, OP_LIST_PARTS);
		if (i && op[0].bucket == op[1].bucket)
			continue;
		add_look(l, &at, OP_LIST);
		add_look(l, &at, OP_LIST_UPLOADS);
		add_look(l, &at, OP_BUCKET_GET_ATTRS);
	}
	add_look(l, &op[0], OP_LIST_BUCKETS);
	add_look(l, &op[0], OP_BUCKET_HEAD);
}

static void
look(struct diff_end *e, const struct looks *l)
{
	diff_answer_clear(&e->state);
	e->before = NULL;
	e->answer = &e->state;
	for (unsigned i = 0; i < l->nr; i++)
		diff_run(e, &l->op[i]);
}

/* ---- the order ---- */

/* A serial order of those that were done: indexes of operations. */
struct serial {
	unsigned nr, at[2];
};

static const struct serial orders[] = { { 2, { 0, 1 } }, { 2, { 1, 0 } }, { 1, { 0 } }, { 1, { 1 } }, { 0 } };

static bool
is_in(const struct serial *s, unsigned i)
{
	return (s->nr > 0 && s->at[0] == i) || (s->nr > 1 && s->at[1] == i);
}

/* Returns true if the operation may have had no effect, and no other reason than the other operation: what that holds counts for quotas. */
static bool
may_be_left_out(const struct diff_answer *a)
{
	return strstr(a->text, "=EAGAIN") || strstr(a->text, "=EDQUOT");
}

static bool
is_possible(const struct serial *s, const struct diff_end *e, bool overlap)
{
	if (s->nr == 2 && s->at[0] == 1 && !overlap)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		if (!is_in(s, i) && !may_be_left_out(&e->two[i]))
			return false;
	}
	return true;
}

/* Does the operations in this order on the store in memory. Returns true if answers and state are those of the other back end. */
static bool
explains(const struct serial *s, struct diff_end **ends, const struct diff_op op[2], const struct looks *l)
{
	struct diff_end *mem = ends[0], *e = ends[1];
	bool same = true;

	for (unsigned i = 0; i < s->nr; i++) {
		unsigned n = s->at[i];

		diff_answer_clear(&mem->two[n]);
		do_as(mem, &op[n], i ? DIFF_SECOND : DIFF_FIRST, &mem->two[n]);
		same &= diff_same(&op[n], &mem->two[n], &e->two[n]);
	}
	look(mem, l);
	return same && diff_same(&l->op[l->nr - 1], &mem->state, &e->state);
}

static void
print(const struct diff_end *e, const struct serial *s)
{
	printf("  %-7s", e->name);
	for (unsigned i = 0; i < 2; i++)
		printf("%s", is_in(s, i) ? e->two[i].text : " (left out)");
	printf("\n    then%s%s%s\n", e->state.text, e->state.wrong ? "\n\tWRONG: " : "",
	       e->state.wrong ? e->state.wrong : "");
}

static void
say_both(const struct diff_op op[2], unsigned turns, bool overlap)
{
	char what[1024];

	diff_say(&op[0], what, sizeof what);
	printf("%s\n", what);
	diff_say(&op[1], what, sizeof what);
	printf("   %s after %u turns: %s\n", overlap ? "at once," : "afterwards,", turns, what);
}

int
diff_two(struct diff_end **ends, struct diff_log *log, const struct diff_op op[2], unsigned turns,
	 bool verbose)
{
	struct diff_end *mem = ends[0], *e = ends[1];
	const unsigned nr = sizeof orders / sizeof *orders;
	struct diff_told before = e->told;
	bool is_first = true, overlap;
	struct looks l;

	diff_pass(NS_PER_US);
	choose_looks(&l, op);
	e->before = &before;
	overlap = run_both(e, op, turns);
	look(e, &l);
	if (verbose)
		say_both(op, turns, overlap);
	for (unsigned i = 0; i < nr; i++) {
		if (!is_possible(&orders[i], e, overlap))
			continue;
		if (!is_first)
			do_again(mem, log);
		is_first = false;
		if (!explains(&orders[i], ends, op, &l) || e->state.wrong) {
			if (verbose)
				print(mem, &orders[i]);
			continue;
		}
		if (verbose)
			print(mem, &orders[i]);
		for (unsigned n = 0; n < orders[i].nr; n++)
			diff_log_add(log, &op[orders[i].at[n]], n ? DIFF_SECOND : DIFF_FIRST);
		for (unsigned n = 0; n < l.nr; n++)
			diff_log_add(log, &l.op[n], DIFF_ALONE);
		return 0;
	}
	if (!verbose)
		say_both(op, turns, overlap);
	print(e, &orders[0]);
	for (unsigned i = 0; i < nr; i++) {
		if (!is_possible(&orders[i], e, overlap))
			continue;
		do_again(mem, log);
		explains(&orders[i], ends, op, &l);
		print(mem, &orders[i]);
	}
	return -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

#include "base/amount.h"
#include "base/printable.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR_MAX 30
#define BAR_MIN 10
#define COLUMNS_USUAL 80

/* ---- arithmetic and text ---- */

uint64_t
progress_note(struct progress_rate *r, const struct progress_view *v, uint64_t now_ns)
{
	if (!r->has_marks || v->stage != r->stage || v->done < r->mid_done) {
		*r = (struct progress_rate){ .has_marks = true,
					     .stage = v->stage,
					     .began_ns = now_ns,
					     .old_ns = now_ns,
					     .old_done = v->done,
					     .mid_ns = now_ns,
					     .mid_done = v->done };
		return 0;
	}
	if (now_ns - r->mid_ns >= PROGRESS_SPAN_NS) {
		r->old_ns = r->mid_ns;
		r->old_done = r->mid_done;
		r->mid_ns = now_ns;
		r->mid_done = v->done;
	}
	if (now_ns == r->old_ns)
		return 0;
	return (uint64_t)((double)(v->done - r->old_done) * 1e9 / (double)(now_ns - r->old_ns));
}

/* Writes an amount of work. */
static const char *
amount(const struct progress_view *v, uint64_t nr, char out[AMOUNT_TEXT])
{
	if (v->is_time)
		return interval_text(nr, out);
	if (!v->unit)
		return size_text(nr, out);
	snprintf(out, AMOUNT_TEXT, "%llu", (unsigned long long)nr);
	return out;
}

void
progress_text(const struct progress_view *v, const struct progress_rate *r, uint64_t rate, uint64_t now_ns,
	      char *text, size_t cap)
{
	char done[AMOUNT_TEXT], all[AMOUNT_TEXT], each[AMOUNT_TEXT], time[AMOUNT_TEXT], part[16] = "";
	uint64_t left = v->total > v->done ? v->total - v->done : 0, s = (now_ns - r->began_ns) / NS_PER_S;
	FILE *f = fmemopen(text, cap, "w");

	text[0] = 0;
	if (!f)
		return;
	fputs(amount(v, v->done, done), f);
	if (v->total) {
		/* More than all is a total that has grown, or was estimated too low. */
		snprintf(part, sizeof part, "%u",
			 left ? (unsigned)(100. * (double)v->done / (double)v->total) : 100);
		fprintf(f, " of %s%s%s%s (%s %%)", v->is_estimate ? "about " : "", amount(v, v->total, all),
			v->unit ? " " : "", v->unit ? v->unit : "", part);
	} else if (v->unit) {
		fprintf(f, " %s", v->unit);
	}
	if (v->is_time && left)
		fprintf(f, ", %s left", interval_text(left, time));
	if (v->is_time)
		rate = s = 0;
	if (rate)
		fprintf(f, ", %s/s", amount(v, rate, each));
	if (rate && left)
		fprintf(f, ", %s left", interval_text((left + rate - 1) / rate, time));
	else if (s && !rate)
		fprintf(f, ", %s so far", interval_text(s, time));
	if (v->more)
		fprintf(f, ", %s", v->more);
	/* Last, since a narrow terminal cuts it off. */
	if (v->what[0])
		fprintf(f, ": %s", v->what);
	fclose(f);
	text[cap - 1] = 0;
}

/* Cuts a text to at most len bytes, and never amid a character. */
static void
cut(char *text, size_t len)
{
	if (strlen(text) <= len)
		return;
	while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	text[len] = 0;
}

void
progress_line(const struct progress_view *v, const char *text, unsigned columns, char *line, size_t cap)
{
	static const char full[BAR_MAX + 1] = "##############################";
	size_t len = strlen(text), room = columns > len + 3 ? columns - len - 3 : 0;
	int width = room > BAR_MAX ? BAR_MAX : (int)room, part;

	if (!v->total || width < BAR_MIN) {
		snprintf(line, cap, "%s", text);
	} else {
		part = v->done < v->total ? (int)((double)v->done / (double)v->total * width) : width;
		snprintf(line, cap, "[%.*s%*s] %s", part, full, width - part, "", text);
	}
	cut(line, columns);
	printable(line, "");
}

/* ---- display ---- */

enum progress_form
progress_form_of(FILE *f)
{
	return isatty(fileno(f)) ? PROGRESS_TERMINAL : PROGRESS_MINUTES;
}

/* Returns the number of columns that a line may have: the last one stays empty, since some terminals would wrap. */
static unsigned
columns_of(FILE *f)
{
	struct winsize w;

	if (ioctl(fileno(f), TIOCGWINSZ, &w) < 0 || w.ws_col < 2)
		return COLUMNS_USUAL - 1;
	return w.ws_col - 1u;
}

static void
erase(struct progress *p)
{
	if (p->is_drawn) {
		fputs("\r\033[K", p->f);
		fflush(p->f);
	}
	p->is_drawn = false;
}

void
progress_turn(struct progress *p, uint64_t now_ns)
{
	uint64_t every = p->form == PROGRESS_TERMINAL ? PROGRESS_LINE_NS : PROGRESS_MINUTE_NS, rate;
	char text[PROGRESS_TEXT], line[PROGRESS_TEXT];
	struct progress_view v = { .what = "" };

	if (p->form == PROGRESS_NONE)
		return;
	p->look(p->cookie, &v);
	rate = progress_note(&p->rate, &v, now_ns);
	if (now_ns - p->shown_ns < every)
		return;
	p->shown_ns = now_ns;
	progress_text(&v, &p->rate, rate, now_ns, text, sizeof text);
	if (p->form == PROGRESS_MINUTES) {
		fprintf(p->f, "%s%s\n", p->name, text);
	} else {
		progress_line(&v, text, columns_of(p->f), line, sizeof line);
		fprintf(p->f, "\r%s\033[K", line);
		p->is_drawn = true;
	}
	fflush(p->f);
}

static void
turn(void *cookie)
{
	struct progress *p = cookie;

	pthread_mutex_lock(&p->lock);
	progress_turn(p, clock_ns());
	pthread_mutex_unlock(&p->lock);
}

void
progress_start(struct progress *p, enum progress_form form, FILE *f, const char *name,
	       void (*look)(void *cookie, struct progress_view *ret_view), void *cookie)
{
	pthread_mutex_lock(&p->lock);
	p->form = form;
	p->f = f;
	p->name = name;
	p->look = look;
	p->cookie = cookie;
	p->rate = (struct progress_rate){ 0 };
	p->shown_ns = clock_ns();
	if (form != PROGRESS_NONE)
		periodic_start(&p->thread, "progress", PROGRESS_LINE_NS, turn, p);
	pthread_mutex_unlock(&p->lock);
}

void
progress_stop(struct progress *p)
{
	periodic_stop(&p->thread);
	pthread_mutex_lock(&p->lock);
	erase(p);
	pthread_mutex_unlock(&p->lock);
}

void
progress_hide(struct progress *p)
{
	pthread_mutex_lock(&p->lock);
	erase(p);
}

void
progress_show(struct progress *p)
{
	pthread_mutex_unlock(&p->lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Dates of RFC 9110 section 5.6.7: written as IMF-fixdate, read in all three forms.  See dialect.h. */
#include "dialect/dialect_int.h"

#include "base/clock.h"

#include <errno.h>

#define LAST_SECOND 253402300799ull /* of the year 9999 */

static const char month_names[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
static const char *const day_names[7] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
					  "Thursday", "Friday", "Saturday" };

/* Days since 1970-01-01 of a day in the Gregorian calendar; a year begins in March, so that the leap day is
 * its last. */
static int64_t
days_from_civil(int64_t year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year, era = (y >= 0 ? y : y - 399) / 400, yoe = y - era * 400;
	int64_t doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

void
civil_from_unix(uint64_t unix_s, struct civil *ret)
{
	uint64_t days = unix_s / 86400, secs = unix_s % 86400;
	uint64_t z = days + 719468, era = z / 146097, doe = z % 146097;
	uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

	ret->day = (int)(doy - (153 * mp + 2) / 5 + 1);
	ret->month = (int)(mp < 10 ? mp + 3 : mp - 9);
	ret->year = yoe + era * 400 + (ret->month <= 2);
	ret->hour = (int)(secs / 3600);
	ret->minute = (int)(secs / 60 % 60);
	ret->second = (int)(secs % 60);
	ret->weekday = (int)((days + 4) % 7);
}

static char *
put_text(char *p, const char *text, size_t len)
{
	memcpy(p, text, len);
	return p + len;
}

static char *
put_two(char *p, unsigned v)
{
	p[0] = (char)('0' + v / 10 % 10);
	p[1] = (char)('0' + v % 10);
	return p + 2;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", by hand: every reply about an object has one. */
void
http_date_format(uint64_t unix_s, char out[30])
{
	struct civil c;
	char *p = out;

	/* The form has four digits for the year. */
	if (unix_s > LAST_SECOND)
		unix_s = LAST_SECOND;
	civil_from_unix(unix_s, &c);
	p = put_text(p, day_names[c.weekday], 3);
	p = put_text(p, ", ", 2);
	p = put_two(p, (unsigned)c.day);
	*p++ = ' ';
	p = put_text(p, month_names[c.month - 1], 3);
	*p++ = ' ';
	p = put_two(p, (unsigned)c.year / 100);
	p = put_two(p, (unsigned)c.year);
	*p++ = ' ';
	p = put_two(p, (unsigned)c.hour);
	*p++ = ':';
	p = put_two(p, (unsigned)c.minute);
	*p++ = ':';
	p = put_two(p, (unsigned)c.second);
	memcpy(p, " GMT", 5);
}

/* A text being read from its front. */
struct cursor {
	const char *p, *end;
};

static bool
take_text(struct cursor *c, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(c->end - c->p) < n || memcmp(c->p, text, n) != 0)
		return false;
	c->p += n;
	return true;
}

/* Exactly n digits. */
static bool
take_digits(struct cursor *c, int n, int *ret_value)
{
	int v = 0;

	if (c->end - c->p < n)
		return false;
	for (int i = 0; i < n; i++) {
		unsigned d = (unsigned char)c->p[i] - (unsigned)'0';

		if (d > 9)
			return false;
		v = v * 10 + (int)d;
	}
	c->p += n;
	*ret_value = v;
	return true;
}

static bool
take_month(struct cursor *c, int *ret_month)
{
	for (int i = 0; i < 12; i++) {
		if (take_text(c, month_names[i])) {
			*ret_month = i + 1;
			return true;
		}
	}
	return false;
}

static bool
take_time(struct cursor *c, int *h, int *m, int *s)
{
	return take_digits(c, 2, h) && take_text(c, ":") && take_digits(c, 2, m) && take_text(c, ":") &&
	       take_digits(c, 2, s);
}

/* Two digits mean the last such year that is at most 50 years ahead. */
static int
full_year(int yy)
{
	struct civil now;
	int year;

	civil_from_unix(clock_wall_ns() / NS_PER_S, &now);
	year = (int)now.year / 100 * 100 + yy;
	if (year > (int)now.year + 50)
		year -= 100;
	else if (year + 100 <= (int)now.year + 50)
		year += 100;
	return year;
}

struct fields_of_date {
	int year, month, day, hour, minute, second;
};

/* "Sun, 06 Nov 1994 08:49:37 GMT"; c stands after the weekday. */
static bool
take_imf(struct cursor *c, struct fields_of_date *d)
{
	return take_text(c, ", ") && take_digits(c, 2, &d->day) && take_text(c, " ") &&
	       take_month(c, &d->month) && take_text(c, " ") && take_digits(c, 4, &d->year) &&
	       take_text(c, " ") && take_time(c, &d->hour, &d->minute, &d->second) && take_text(c, " GMT");
}

/* "Sunday, 06-Nov-94 08:49:37 GMT" */
static bool
take_rfc850(struct cursor *c, struct fields_of_date *d)
{
	int yy;

	if (!(take_text(c, ", ") && take_digits(c, 2, &d->day) && take_text(c, "-") &&
	      take_month(c, &d->month) && take_text(c, "-") && take_digits(c, 2, &yy) && take_text(c, " ") &&
	      take_time(c, &d->hour, &d->minute, &d->second) && take_text(c, " GMT")))
		return false;
	d->year = full_year(yy);
	return true;
}

/* "Sun Nov  6 08:49:37 1994" */
static bool
take_asctime(struct cursor *c, struct fields_of_date *d)
{
	return take_text(c, " ") && take_month(c, &d->month) && take_text(c, " ") &&
	       (take_text(c, " ") ? take_digits(c, 1, &d->day) : take_digits(c, 2, &d->day)) &&
	       take_text(c, " ") && take_time(c, &d->hour, &d->minute, &d->second) && take_text(c, " ") &&
	       take_digits(c, 4, &d->year);
}

static bool
is_date(const struct fields_of_date *d)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = d->year % 4 == 0 && (d->year % 100 != 0 || d->year % 400 == 0);

	return d->day >= 1 && d->day <= days[d->month - 1] + (d->month == 2 && leap) && d->hour < 24 &&
	       d->minute < 60 && d->second <= 60;
}

/* Returns the time that is meant: nothing here is older than 1970, and a leap second after the year 9999 would have no
 * text. */
static uint64_t
in_range(int64_t s)
{
	return s < 0 ? 0 : (uint64_t)s > LAST_SECOND ? LAST_SECOND : (uint64_t)s;
}

int
http_date_parse(const char *text, size_t len, uint64_t *ret_unix_s)
{
	for (int i = 0; i < 7; i++) {
		struct cursor c = { text, text + len }, longer;
		struct fields_of_date d;
		bool ok;
		int64_t s;

		if (len < 3 || memcmp(text, day_names[i], 3) != 0)
			continue;
		longer = c;
		if (take_text(&longer, day_names[i])) {
			ok = take_rfc850(&longer, &d);
			c = longer;
		} else {
			c.p += 3;
			ok = c.p < c.end && *c.p == ',' ? take_imf(&c, &d) : take_asctime(&c, &d);
		}
		if (!ok || c.p != c.end || !is_date(&d))
			return -EINVAL;
		s = days_from_civil(d.year, d.month, d.day) * 86400 + d.hour * 3600 + d.minute * 60 +
		    d.second;
		/* The beginning of time compares as any earlier date would. */
		*ret_unix_s = in_range(s);
		return 0;
	}
	return -EINVAL;
}

int
iso_date_parse(const char *text, size_t len, uint64_t *ret_unix_s)
{
	struct cursor c = { text, text + len };
	struct fields_of_date d = { 0 };
	int digit;
	int64_t s;

	if (!(take_digits(&c, 4, &d.year) && take_text(&c, "-") && take_digits(&c, 2, &d.month) &&
	      take_text(&c, "-") && take_digits(&c, 2, &d.day)))
		return -EINVAL;
	if (c.p != c.end) {
		if (!take_text(&c, "T") || !take_time(&c, &d.hour, &d.minute, &d.second))
			return -EINVAL;
		/* Parts of a second, as many digits as there are, say nothing here. */
		if (take_text(&c, ".")) {
			if (!take_digits(&c, 1, &digit))
				return -EINVAL;
			while (take_digits(&c, 1, &digit))
				;
		}
		if (!take_text(&c, "Z") && !take_text(&c, "+00:00"))
			return -EINVAL;
	}
	if (c.p != c.end || d.month < 1 || d.month > 12 || !is_date(&d))
		return -EINVAL;
	s = days_from_civil(d.year, d.month, d.day) * 86400 + d.hour * 3600 + d.minute * 60 + d.second;
	*ret_unix_s = in_range(s);
	return 0;
}

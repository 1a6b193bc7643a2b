/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What test_random.c knows about the world: the kinds of requests, and a model of what the store may hold.
 *
 * The model keeps every version that was ever tried of each key, with the step at which its request began and
 * the one at which its outcome was known.  A GET may return a version that was not refused and that no
 * acknowledged one replaced for certain before the GET began; of what ended without a clear answer (503 after
 * the hand-over, a vanished client) either may be true for ever after.
 */
#ifndef TESTS_UNIT_REQ_SIM_H
#define TESTS_UNIT_REQ_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	SIM_SLOTS = 28,
	SIM_KEYS = 5,
	SIM_VERS = 600,
	SIM_WIN = 2500000,
	SIM_GUARD = 4096,
	SIM_SPAN = SIM_WIN + 2 * SIM_GUARD
};
#define SIM_ADDR 0x7e0000000000ull
#define SIM_SLACK_NS (6 * NS_PER_S)

/* ---- kinds ---- */

enum sim_kind {
	K_PUT,
	K_PUT_SUM,
	K_PUT_IF,
	K_PUT_DELL,
	K_PUT_SCAL,
	K_GET,
	K_GET_SCAL,
	K_BAD,
	K_GET_HTTP,
	K_PUT_BODY,
	K_PUT_IF_BODY,
	K_PUT_CHUNKED,
	K_HEAD,
	K_DELETE,
	K_BUCKET_PUT, /* from here on: buckets */
	K_BUCKET_HEAD,
	K_BUCKET_DELETE,
	K_LIST,
	K_NR
};

static enum sim_kind
kind_pick(uint64_t n)
{
	static const struct {
		enum sim_kind kind;
		unsigned share;
	} mix[] = { { K_PUT, 160 },         { K_PUT_SUM, 15 },  { K_PUT_IF, 25 },      { K_PUT_DELL, 15 },
		    { K_PUT_SCAL, 60 },     { K_GET, 240 },     { K_GET_SCAL, 80 },    { K_BAD, 30 },
		    { K_GET_HTTP, 90 },     { K_PUT_BODY, 70 }, { K_PUT_IF_BODY, 30 }, { K_PUT_CHUNKED, 50 },
		    { K_HEAD, 40 },         { K_DELETE, 45 },   { K_BUCKET_PUT, 12 },  { K_BUCKET_HEAD, 12 },
		    { K_BUCKET_DELETE, 12 } };

	for (size_t i = 0; i < sizeof mix / sizeof *mix; i++) {
		if (n < mix[i].share)
			return mix[i].kind;
		n -= mix[i].share;
	}
	return K_LIST;
}

static bool
kind_is_tokened(enum sim_kind k)
{
	return k <= K_BAD;
}

static bool
kind_is_get(enum sim_kind k)
{
	return k == K_GET || k == K_GET_SCAL || k == K_GET_HTTP;
}

static bool
kind_is_put(enum sim_kind k)
{
	return k <= K_PUT_SCAL || (k >= K_PUT_BODY && k <= K_PUT_CHUNKED);
}

static bool
kind_has_body(enum sim_kind k)
{
	return k >= K_PUT_BODY && k <= K_PUT_CHUNKED;
}

static const char *
kind_method(enum sim_kind k)
{
	if (kind_is_put(k) || k == K_BUCKET_PUT)
		return "PUT";
	if (k == K_DELETE || k == K_BUCKET_DELETE)
		return "DELETE";
	return k == K_HEAD || k == K_BUCKET_HEAD ? "HEAD" : "GET";
}

/* ---- the model ---- */

enum ver_state { V_FREE, V_LIVE, V_DONE, V_FAILED, V_UNKNOWN };

struct ver {
	enum ver_state state;
	bool absent;         /* a DELETE, or nothing there yet */
	uint64_t begin, end; /* in steps; end 0: not yet */
	size_t off, len;     /* its bytes: sim_noise[off, off + len) */
};

static unsigned char sim_noise[(1 << 20) + SIM_WIN];
static struct ver sim_vers[2][SIM_KEYS][SIM_VERS];
static uint64_t sim_step;
static unsigned sim_ver_nr;

static void
sim_init(void)
{
	uint64_t v = 88172645463325252u;

	for (size_t i = 0; i < sizeof sim_noise; i++) {
		v ^= v << 13;
		v ^= v >> 7;
		v ^= v << 17;
		sim_noise[i] = (unsigned char)(v >> 32);
	}
	memset(sim_vers, 0, sizeof sim_vers);
	for (int s = 0; s < 2; s++) {
		for (int k = 0; k < SIM_KEYS; k++)
			sim_vers[s][k][0] = (struct ver){ .state = V_DONE, .absent = true };
	}
	sim_step = 0;
}

/* Was v replaced, for certain, before `step`? */
static bool
ver_is_over(int space, int key, const struct ver *v, uint64_t step)
{
	if (v->state == V_LIVE || (v->state == V_UNKNOWN && !v->end))
		return false;
	for (int i = 0; i < SIM_VERS; i++) {
		const struct ver *w = &sim_vers[space][key][i];

		if (w->state == V_DONE && w != v && w->begin > v->end && w->end < step)
			return true;
	}
	return false;
}

/* oldest: the step at which the oldest exchange under way began. */
static void
ver_prune(uint64_t oldest)
{
	for (int s = 0; s < 2; s++) {
		for (int k = 0; k < SIM_KEYS; k++) {
			for (int i = 0; i < SIM_VERS; i++) {
				struct ver *v = &sim_vers[s][k][i];

				/* A refused one stays until its request cannot point at it any more. */
				if ((v->state == V_FAILED && v->begin < oldest) ||
				    (v->state >= V_DONE && v->state != V_FAILED &&
				     ver_is_over(s, k, v, oldest)))
					v->state = V_FREE;
			}
		}
	}
}

static struct ver *
ver_new(int space, int key, size_t len)
{
	for (int i = 0; i < SIM_VERS; i++) {
		struct ver *v = &sim_vers[space][key][i];

		if (v->state != V_FREE)
			continue;
		*v = (struct ver){ .state = V_LIVE, .off = ++sim_ver_nr * 7919u % (1u << 20), .len = len };
		return v;
	}
	fail_msg("the model is full");
	return NULL;
}

static bool
ver_could(int space, int key, uint64_t began, bool (*fits)(const struct ver *v, const void *cookie),
	  const void *cookie)
{
	for (int i = 0; i < SIM_VERS; i++) {
		const struct ver *v = &sim_vers[space][key][i];

		if (v->state != V_FREE && v->state != V_FAILED && fits(v, cookie) &&
		    !ver_is_over(space, key, v, began))
			return true;
	}
	return false;
}

struct ver_data {
	const unsigned char *data;
	size_t len;
	uint64_t from, total;
};

static bool
fits_data(const struct ver *v, const void *cookie)
{
	const struct ver_data *d = cookie;

	if (v->absent || d->from + d->len > v->len || (d->total != UINT64_MAX && v->len != d->total))
		return false;
	return memcmp(d->data, sim_noise + v->off + d->from, d->len) == 0;
}

/* total: the size that the reply told; UINT64_MAX: it told none. */
static bool
ver_could_be(int space, int key, uint64_t began, const void *data, size_t len, uint64_t from, uint64_t total)
{
	struct ver_data d = { data, len, from, total };

	return ver_could(space, key, began, fits_data, &d);
}

static bool
fits_absent(const struct ver *v, const void *cookie)
{
	return v->absent;
}

static bool
ver_could_be_absent(int space, int key, uint64_t began)
{
	return ver_could(space, key, began, fits_absent, NULL);
}

static bool
fits_size(const struct ver *v, const void *cookie)
{
	const uint64_t *size = cookie;

	return !v->absent && v->len == *size;
}

static bool
ver_could_have_size(int space, int key, uint64_t began, uint64_t size)
{
	return ver_could(space, key, began, fits_size, &size);
}

#endif

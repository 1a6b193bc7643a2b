/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels on a device, towards a client's window in another process: bytes there and back, by one piece and by
 * many, synchronously and not; what is refused, and what is said then.  Needs two devices (tests/unit/on-nic).
 */
#include "rig.h"

#include "token/token.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- bytes ---- */

static void
there_and_back(void **state)
{
	static const size_t len[] = { 1, 7, 4096, 65537, WINDOW - 3 };
	int status;

	for (size_t i = 0; i < sizeof len / sizeof *len; i++) {
		fill(f.mem, WINDOW, (unsigned)i);
		memset(f.peer.mem, 0, WINDOW);
		status = 99;
		assert_int_equal(move(GANTRY_PUSH, 3, len[i], &status), len[i]);
		assert_int_equal(status, IBV_WC_SUCCESS);
		assert_memory_equal(f.peer.mem + 3, f.mem + 3, len[i]);
		assert_int_equal(f.peer.mem[2], 0);
		assert_true(3 + len[i] == WINDOW || f.peer.mem[3 + len[i]] == 0);

		fill(f.peer.mem, WINDOW, (unsigned)i + 50);
		memset(f.mem, 0, WINDOW);
		assert_int_equal(move(GANTRY_PULL, 3, len[i], NULL), len[i]);
		assert_memory_equal(f.mem + 3, f.peer.mem + 3, len[i]);
		assert_int_equal(f.mem[2], 0);
		assert_true(3 + len[i] == WINDOW || f.mem[3 + len[i]] == 0);
	}
}

/* Pieces of two regions, out of order and of any length, are one row of bytes to the client. */
static void
many_pieces(void **state)
{
	static unsigned char other[10000];
	struct gantry_region *r;
	struct gantry_piece p[10];
	size_t at = 0;

	assert_int_equal(gantry_region_add(f.s, other, sizeof other, &r), 0);
	fill(f.mem, WINDOW, 1);
	fill(other, sizeof other, 2);
	for (int i = 0; i < 10; i++) {
		if (i % 2)
			p[i] = (struct gantry_piece){ r, other + 900 * i, 100 + (size_t)i };
		else
			p[i] = piece((size_t)(9 - i) * 70000, 1 + 6000 * (size_t)i);
	}
	memset(f.peer.mem, 0, WINDOW);
	for (int i = 0; i < 10; i++)
		at += p[i].len;
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, p, 10, remote(5), f.token, 0, NULL), at);
	at = 5;
	for (int i = 0; i < 10; i++) {
		assert_memory_equal(f.peer.mem + at, p[i].mem, p[i].len);
		at += p[i].len;
	}
	fill(f.peer.mem, WINDOW, 3);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PULL, p, 10, remote(5), f.token, 0, NULL), at - 5);
	at = 5;
	for (int i = 0; i < 10; i++) {
		assert_memory_equal(f.peer.mem + at, p[i].mem, p[i].len);
		at += p[i].len;
	}
	assert_int_equal(gantry_region_del(r), 0);
	/* One more than max_sge. */
	struct gantry_piece eleven[11];
	for (int i = 0; i < 11; i++)
		eleven[i] = piece((size_t)i, 1);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, eleven, 11, remote(0), f.token, 0, NULL),
			 -EIO);
	assert_true(said("11 pieces: 10 are possible (max_sge)"));
}

/* More pieces than a work request of the adapter has, and longer than a message of it: several work requests. */
static void
more_than_a_work_request(void **state)
{
	struct gantry_piece p[GANTRY_PIECES_MAX];

	close_server();
	defaults();
	f.p.max_sge = GANTRY_PIECES_MAX;
	open_server();
	fill(f.mem, WINDOW, 9);
	for (int i = 0; i < GANTRY_PIECES_MAX; i++)
		p[i] = piece((size_t)i * 5000, 3000);
	memset(f.peer.mem, 0, WINDOW);
	/* What it was made with is seen once it was used. */
	assert_int_equal(move(GANTRY_PUSH, 0, 1, NULL), 1);
	f.c->lane[0]->limits.max_sge = 3;
	f.c->lane[0]->message_max = 4000;
	for (int dir = GANTRY_PUSH; dir <= GANTRY_PULL; dir++) {
		assert_int_equal(gantry_channel_move(f.c, (enum gantry_dir)dir, p, GANTRY_PIECES_MAX,
						     remote(100), f.token, 0, NULL),
				 3000 * GANTRY_PIECES_MAX);
		for (int i = 0; i < GANTRY_PIECES_MAX; i++)
			assert_memory_equal(f.peer.mem + 100 + 3000 * i, p[i].mem, 3000);
		fill(f.peer.mem, WINDOW, 10);
	}
}

static void
sixteen_at_once(void **state)
{
	struct gantry_done done[20];
	unsigned seen = 0;

	fill(f.mem, WINDOW, 4);
	memset(f.peer.mem, 0, WINDOW);
	for (uintptr_t i = 0; i < 16; i++)
		assert_int_equal(start(GANTRY_PUSH, i * 65536, 65536, 100 + i), 0);
	assert_int_equal(collect(done, 16), 16);
	for (int i = 0; i < 16; i++) {
		uintptr_t h = (uintptr_t)done[i].handle;

		assert_true(h >= 100 && h < 116 && !(seen & 1u << (h - 100)));
		seen |= 1u << (h - 100);
		assert_int_equal(done[i].error, 0);
		assert_int_equal(done[i].wc_status, IBV_WC_SUCCESS);
		assert_int_equal(done[i].bytes, 65536);
	}
	assert_memory_equal(f.peer.mem, f.mem, 16 * 65536);
	assert_int_equal(gantry_channel_poll(f.c, done, 20), 0);
	/* A handle may be nothing, and several may be one. */
	assert_int_equal(start(GANTRY_PULL, 0, 1, 0), 0);
	assert_int_equal(start(GANTRY_PULL, 1, 1, 0), 0);
	assert_int_equal(collect(done, 2), 2);
	assert_null(done[0].handle);
}

/* Three times as many as the queue is deep wait in the library, and none is lost; a synchronous one among them
 * does not take their ends away. */
static void
beyond_the_queue(void **state)
{
	enum { NR = 48 };
	struct gantry_done done[NR];
	uint64_t sum = 0;

	close_server();
	defaults();
	f.p.cq_depth = 16;
	open_server();
	fill(f.mem, WINDOW, 5);
	memset(f.peer.mem, 0, WINDOW);
	for (uintptr_t i = 0; i < NR; i++)
		assert_int_equal(start(i % 3 ? GANTRY_PUSH : GANTRY_PULL, i * 4096, 4096, i + 1), 0);
	assert_true(f.c->lane[0]->outstanding <= 16);
	assert_int_equal(move(GANTRY_PUSH, NR * 4096, 4096, NULL), 4096);
	assert_memory_equal(f.peer.mem + NR * 4096, f.mem + NR * 4096, 4096);
	assert_int_equal(collect(done, NR), NR);
	for (int i = 0; i < NR; i++) {
		assert_int_equal(done[i].error, 0);
		sum += (uintptr_t)done[i].handle;
	}
	assert_int_equal(sum, NR * (NR + 1) / 2);
	for (size_t i = 0; i < NR; i++)
		assert_memory_equal(f.peer.mem + i * 4096, f.mem + i * 4096, 4096);
}

static void
every_delay(void **state)
{
	for (int mode = GANTRY_DELAY_NONE; mode <= GANTRY_DELAY_ADAPTIVE; mode++) {
		close_server();
		defaults();
		f.p.delay_mode = (enum gantry_delay)mode;
		open_server();
		for (int i = 0; i < 20; i++) {
			struct gantry_piece p = piece(0, 200000);

			fill(f.mem, 200000, (unsigned)(mode * 20 + i));
			assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), f.token,
							     i % 2 ? GANTRY_INTERVAL : (uint32_t)i * 20000,
							     NULL),
					 200000);
			assert_memory_equal(f.peer.mem, f.mem, 200000);
		}
	}
}

/* ---- sleeping ---- */

static void
asleep(void **state)
{
	struct gantry_done done;
	struct pollfd p = { .events = POLLIN };
	uint64_t begin;

	assert_int_equal(gantry_channel_wait(f.c, -1), 0); /* nothing is under way */
	begin = clock_ns();
	p.fd = gantry_channel_fd(f.c);
	assert_true(p.fd >= 0);
	assert_int_equal(p.fd, gantry_channel_fd(f.c));
	assert_int_equal(poll(&p, 1, 0), 0);
	ctl("rule add limit=1 delay=60s"); /* until the rule goes */
	assert_int_equal(start(GANTRY_PUSH, 0, 1000, 1), 0);
	assert_int_equal(gantry_channel_wait(f.c, 20), 0);
	assert_true(clock_ns() - begin >= 20 * NS_PER_MS);
	ctl("rule clear");
	assert_int_equal(gantry_channel_wait(f.c, 60000), 1);
	assert_int_equal(gantry_channel_wait(f.c, 60000), 1); /* until it was polled */
	assert_int_equal(gantry_channel_poll(f.c, &done, 1), 1);
	/* By the descriptor. */
	for (int i = 0; i < 3; i++) {
		ctl("rule add limit=1 delay=50ms");
		assert_int_equal(start(GANTRY_PULL, 0, 1000, 2), 0);
		while (gantry_channel_wait(f.c, 0) == 0)
			assert_int_equal(poll(&p, 1, 60000), 1);
		assert_int_equal(gantry_channel_poll(f.c, &done, 1), 1);
		assert_int_equal(done.error, 0);
		assert_int_equal(gantry_channel_wait(f.c, 0), 0);
		assert_int_equal(poll(&p, 1, 0), 0);
	}
	ctl("rule clear");
}

/* ---- tokens ---- */

static void
forms_of_tokens(void **state)
{
	char text[200];
	struct gantry_piece p = piece(0, 100);

	/* A part of the window, as a client writes it that mints once. */
	snprintf(text, sizeof text, "%s:%016llx:%016llx", f.token, (unsigned long long)remote(4096), 100ull);
	fill(f.mem, 100, 8);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(4096), text, 0, NULL), 100);
	assert_memory_equal(f.peer.mem + 4096, f.mem, 100);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(4097), text, 0, NULL), -EIO);
	assert_true(said("100 bytes at 0x"));
	/* Blanks, and capitals. */
	snprintf(text, sizeof text, "  %s; ", f.token);
	for (char *q = text; *q; q++)
		*q = (char)(*q >= 'a' && *q <= 'f' ? *q - 32 : *q);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), text, 0, NULL), 100);
}

static void
refused_tokens(void **state)
{
	static const char *const bad[] = { "",
					   "x",
					   "rc:abc",
					   "ofi:abc",
					   "0",
					   "{}",
					   "0000000000000000:00000000:00000000:0000:000000:0:"
					   "00000000000000000000000000000000" };
	struct gantry_piece p = piece(0, 100);
	char text[400];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int status = 99;

		assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), bad[i], 0, &status),
				 -EIO);
		assert_int_equal(status, 99);
	}
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), NULL, 0, NULL), -EIO);
	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = 0;
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), text, 0, NULL), -EIO);
	assert_true(said("cannot be read"));
	assert_true(said("which is DC"));
	/* Nothing of a token is told: it is a capability. */
	snprintf(text, sizeof text, "%sz", f.token);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), text, 0, NULL), -EIO);
	pthread_mutex_lock(&f.lock);
	assert_null(strstr(f.lines, f.token + 60));
	pthread_mutex_unlock(&f.lock);
}

/* claim TM72: windows end where they end, also at the last byte that there is. */
static void
windows(void **state)
{
	struct token top = f.peer.tok;
	char text[TOKEN_DC_LEN + 1];
	struct gantry_piece p = piece(0, 4096);

	assert_int_equal(move(GANTRY_PUSH, WINDOW - 1, 1, NULL), 1);
	assert_int_equal(
		gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(WINDOW - 4095), f.token, 0, NULL), -EIO);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0) - 1, f.token, 0, NULL), -EIO);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(WINDOW), f.token, 0, NULL),
			 -EIO);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, UINT64_MAX, f.token, 0, NULL), -EIO);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, 0, f.token, 0, NULL), -EIO);
	assert_true(said("the remote address is 0"));
	top.addr = UINT64_MAX - 4095;
	top.size = 4096;
	assert_int_equal(token_format(&top, text), 0);
	p.len = 4097;
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, top.addr, text, 0, NULL), -EIO);
	assert_true(said("4097 bytes at 0xfffffffffffff000 leave the token's window"));
}

/* An address of the other family than the server's is none that it serves, also where the port has both. */
static void
families(void **state)
{
	struct token six = f.peer.tok;
	char text[TOKEN_DC_LEN + 1];
	struct gantry_piece p = piece(0, 10);
	static const uint8_t gid[16] = { 0xfd, 0, 0x67, 0x61, [15] = 1 };

	memcpy(six.gid, gid, 16);
	assert_int_equal(token_format(&six, text), 0);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), text, 0, NULL), 10);
	close_server();
	defaults();
	f.p.address = "127.0.0.1";
	open_server();
	p = piece(0, 10);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), text, 0, NULL),
			 -EAFNOSUPPORT);
	assert_true(said("fd00:6761::1, and the server's address is of the other family"));
	assert_int_equal(move(GANTRY_PUSH, 0, 10, NULL), 10);
	close_server();
	f.p.address = "fd00:6761::1";
	open_server();
	p = piece(0, 10);
	assert_int_equal(gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), text, 0, NULL), 10);
	assert_int_equal(move(GANTRY_PUSH, 0, 10, NULL), -EAFNOSUPPORT);
}

static void
not_allowed(void **state)
{
	close_server();
	defaults();
	f.p.allow = "10.0.0.0/8";
	open_server();
	assert_int_equal(move(GANTRY_PUSH, 0, 10, NULL), -EIO);
	assert_true(said("a token names 127.0.0.1, which is not allowed (allow)"));
	close_server();
	f.p.allow = "10.0.0.0/8 loopback";
	open_server();
	assert_int_equal(move(GANTRY_PUSH, 0, 10, NULL), 10);
}

/* The channel keeps the last eight targets; a ninth takes the place of the one that was not used for longest, and
 * all of them go on while more are under way. */
static void
more_than_eight_targets(void **state)
{
	enum { NR = 12 };
	struct gantry_done done[NR];
	struct token tok = f.peer.tok;
	char text[NR][TOKEN_DC_LEN + 1];
	int held = 0;

	/* Addresses are one's own whatever LID stands beside them: on Ethernet nobody looks at it. */
	for (int i = 0; i < NR; i++) {
		tok.lid = (uint16_t)i;
		assert_int_equal(token_format(&tok, text[i]), 0);
	}
	fill(f.mem, WINDOW, 6);
	for (int round = 0; round < 3; round++) {
		for (uintptr_t i = 0; i < NR; i++) {
			struct gantry_piece p = piece(i * 4096, 4096);

			assert_int_equal(gantry_channel_start(f.c, GANTRY_PUSH, &p, 1, remote(i * 4096),
							      text[i], (void *)i),
					 0);
		}
		assert_int_equal(collect(done, NR), NR);
		for (int i = 0; i < NR; i++)
			assert_int_equal(done[i].error, 0);
	}
	assert_memory_equal(f.peer.mem, f.mem, NR * 4096);
	for (int i = 0; i < HELD_NR; i++) {
		held += f.c->held[i].is_used;
		assert_int_equal(f.c->held[i].ops, 0);
	}
	assert_int_equal(held, HELD_NR);
}

/* ---- arguments ---- */

static void
arguments(void **state)
{
	struct gantry_piece p[2] = { piece(0, 10), piece(0, 10) };
	struct gantry_done done;
	struct gantry_server *second;
	struct gantry_region *big, *none;
	struct gantry_piece huge[2];
	char *mem;

#define MOVE(pieces, n) gantry_channel_move(f.c, GANTRY_PUSH, pieces, n, remote(0), f.token, 0, NULL)
	assert_int_equal(MOVE(NULL, 1), -EIO);
	assert_int_equal(MOVE(p, 0), -EIO);
	assert_int_equal(MOVE(p, -1), -EIO);
	assert_int_equal(gantry_channel_move(f.c, (enum gantry_dir)2, p, 1, remote(0), f.token, 0, NULL),
			 -EIO);
	p[1].region = NULL;
	assert_int_equal(MOVE(p, 2), -EIO);
	p[1] = piece(0, 0);
	assert_int_equal(MOVE(p, 2), -EIO);
	p[1] = piece(WINDOW - 9, 10);
	assert_int_equal(MOVE(p, 2), -EIO);
	assert_true(said("leaves its region"));
	p[1].mem = f.mem - 1;
	assert_int_equal(MOVE(p, 2), -EIO);
	p[1] = piece(0, SIZE_MAX);
	assert_int_equal(MOVE(p, 2), -EIO);
	assert_int_equal(gantry_channel_start(f.c, GANTRY_PULL, p, 2, remote(0), f.token, &done), -EIO);
	assert_int_equal(gantry_channel_poll(f.c, NULL, 1), -EINVAL);
	assert_int_equal(gantry_channel_poll(f.c, &done, -1), -EINVAL);
	assert_int_equal(gantry_channel_poll(f.c, &done, 0), 0);
	/* A region of another server is none of this one. */
	assert_int_equal(gantry_server_open(&f.p, &second), 0);
	assert_int_equal(gantry_region_add(second, f.mem, WINDOW, &none), 0);
	p[0].region = none;
	assert_int_equal(MOVE(p, 1), -EIO);
	assert_true(said("no region of this server"));
	assert_int_equal(gantry_region_del(none), 0);
	gantry_server_close(second);
	/* A gibibyte is all, in one piece or in several. */
	mem = malloc(((size_t)1 << 30) + 1);
	assert_non_null(mem);
	assert_int_equal(gantry_region_add(f.s, mem, ((size_t)1 << 30) + 1, &big), 0);
	huge[0] = (struct gantry_piece){ big, mem, ((size_t)1 << 30) + 1 };
	assert_int_equal(MOVE(huge, 1), -EIO);
	huge[0].len = huge[1].len = ((size_t)1 << 29) + 1;
	huge[1].region = big;
	huge[1].mem = mem;
	assert_int_equal(MOVE(huge, 2), -EIO);
	assert_true(said("more than 1073741824 bytes"));
	assert_int_equal(gantry_region_del(big), 0);
	free(mem);
	/* Of all this nothing is left. */
	assert_int_equal(move(GANTRY_PUSH, 0, 10, NULL), 10);
	assert_int_equal(gantry_region_del(NULL), 0);
	assert_int_equal(gantry_channel_free(NULL), 0);
	gantry_server_close(NULL);
}

static void
memory(void **state)
{
	struct gantry_region *r, *twice;
	struct gantry_done done;
	void *mem = gantry_host_alloc(5000);

	assert_non_null(mem);
	assert_int_equal((uintptr_t)mem % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
	assert_null(gantry_host_alloc(0));
	assert_int_equal(gantry_region_add(f.s, NULL, 10, &r), -EINVAL);
	assert_int_equal(gantry_region_add(f.s, mem, 0, &r), -EINVAL);
	assert_int_equal(gantry_region_add(f.s, mem, SIZE_MAX, &r), -EINVAL);
	assert_true(gantry_region_add(f.s, (void *)4096, 65536, &r) < 0);
	assert_true(said("65536 bytes at 0x1000 cannot be registered"));
	assert_int_equal(gantry_region_add(f.s, mem, 5000, &r), 0);
	assert_int_equal(gantry_region_add(f.s, (char *)mem + 1, 999, &twice), 0);
	assert_int_equal(gantry_region_del(twice), 0);
	/* One that is used stays, until its end was polled. */
	assert_int_equal(gantry_channel_start(f.c, GANTRY_PULL, &(struct gantry_piece){ r, mem, 5000 }, 1,
					      remote(0), f.token, &done),
			 0);
	while (gantry_channel_wait(f.c, -1) != 1)
		;
	assert_int_equal(gantry_channel_poll(f.c, &done, 1), 1);
	assert_int_equal(gantry_region_del(r), 0);
	ctl("rule add limit=1 delay=300ms");
	assert_int_equal(start(GANTRY_PULL, 0, 5000, 1), 0);
	assert_int_equal(gantry_region_del(f.r), -EBUSY);
	assert_true(said("1 operations in it are not over"));
	assert_int_equal(collect(&done, 1), 1);
	assert_int_equal(move(GANTRY_PUSH, 0, 5000, NULL), 5000);
	free(mem);
	ctl("rule clear");
}

static void
channels(void **state)
{
	struct gantry_channel *c[3];
	struct nic_trace trace;

	close_server();
	defaults();
	f.p.channels = 3;
	open_server();
	assert_int_equal(gantry_channel_new(f.s, &c[1]), 0);
	assert_int_equal(gantry_channel_new(f.s, &c[2]), 0);
	assert_int_equal(gantry_channel_new(f.s, &c[0]), -ENOSPC);
	assert_true(said("all 3 are out"));
	assert_int_equal(gantry_channel_free(c[1]), 0);
	assert_int_equal(gantry_channel_new(f.s, &c[1]), 0);
	/* One with work on the wire may be freed: its memory is nobody's afterwards. */
	nic_trace_on(&trace);
	ctl("rule add limit=1 delay=3600s");
	assert_int_equal(gantry_channel_start(c[1], GANTRY_PULL, &(struct gantry_piece){ f.r, f.mem, 65536 },
					      1, remote(0), f.token, NULL),
			 0);
	wait_on_wire(&trace, 1);
	assert_int_equal(gantry_channel_free(c[1]), 0);
	fill(f.mem, 65536, 77);
	fill(f.peer.mem, 65536, 78);
	ctl("rule clear"); /* without the delay its bytes would come now */
	assert_int_equal(nic_trace_count(&trace, true), 1);
	assert_int_equal(nic_trace_count(&trace, false), 0);
	assert_true(is_filled(f.mem, 65536, 77));
	nic_trace_off(&trace);
	/* c[2] goes with the server. */
}

/* ---- two threads ---- */

static _Atomic int caught;
static _Atomic bool stop;

static void *
use_it(void *arg)
{
	uintptr_t nr = (uintptr_t)arg;

	while (!atomic_load(&stop)) {
		struct gantry_piece p = piece(nr * 65536, 65536);
		struct gantry_done done;
		ssize_t r =
			gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(nr * 65536), f.token, 0, NULL);

		if (r == -EIO)
			caught++;
		else if (r != 65536)
			abort();
		if (gantry_channel_poll(f.c, &done, 1) == -EIO)
			caught++;
	}
	return NULL;
}

/* Whoever comes second is told, and nothing is harmed. */
static void
two_threads_on_one(void **state)
{
	pthread_t t[3];

	fill(f.mem, WINDOW, 11);
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, use_it, (void *)i), 0);
	wait_until(caught >= 5)
		usleep(1000);
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert_true(said("is used by two threads at once"));
	assert_int_equal(move(GANTRY_PUSH, 0, 65536, NULL), 65536);
	assert_memory_equal(f.peer.mem, f.mem, 65536);
}

/* ---- opening ---- */

static void
opening(void **state)
{
	struct gantry_server *s;
	char port[96];

	defaults();
	f.p.address = "10.9.8.7";
	assert_int_equal(gantry_server_open(&f.p, &s), -ENODEV);
	assert_ptr_equal(strstr(gantry_server_open_error(), "address: 10.9.8.7 "),
			 gantry_server_open_error());
	assert_true(said("no session: "));
	f.p.address = "300.1.2.3";
	assert_int_equal(gantry_server_open(&f.p, &s), -ENODEV);
	f.p.address = "mlx5_9";
	assert_int_equal(gantry_server_open(&f.p, &s), -ENODEV);
	assert_string_equal(gantry_server_open_error(), "address: mlx5_9: no such device");
	defaults();
	f.p.channels = 0;
	assert_int_equal(gantry_server_open(&f.p, &s), -EINVAL);
	assert_true(said("channels is 0"));
	defaults();
	f.p.cq_depth = 1 << 22;
	assert_int_equal(gantry_server_open(&f.p, &s), -EINVAL);
	assert_true(said("cq_depth is 4194304"));
	assert_int_equal(gantry_server_open(NULL, &s), 0);
	assert_string_equal(gantry_server_open_error(), "");
	assert_true(gantry_server_is_alive(s));
	assert_int_equal(gantry_server_port(s, 0, port, sizeof port), 0);
	assert_string_equal(port, "mlx5_0:1 127.0.0.1");
	assert_int_equal(gantry_server_port(s, 1, port, sizeof port), 0);
	assert_string_equal(port, "mlx5_1:1 127.0.0.2");
	assert_int_equal(gantry_server_port(s, 2, port, sizeof port), -ENOENT);
	assert_int_equal(gantry_server_port(s, -1, port, sizeof port), -ENOENT);
	gantry_server_close(s);
	assert_string_equal(gantry_server_version(), GANTRY_VERSION);
	assert_non_null(strstr(gantry_status_text(IBV_WC_REM_ACCESS_ERR), "remote access error"));
}

/* A kernel that needs it is told before anything is registered. */
static void
forks_are_prepared(void **state)
{
	struct gantry_server *s;

	defaults();
	setenv("SOFTNIC_FORK", "late", 1);
	assert_int_equal(gantry_server_open(&f.p, &s), -ENODEV);
	assert_non_null(strstr(gantry_server_open_error(), "ibv_fork_init"));
	setenv("SOFTNIC_FORK", "init", 1);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
	assert_int_equal(gantry_server_open(&f.p, &s), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_ENABLED);
	gantry_server_close(s);
	unsetenv("SOFTNIC_FORK");
}

/* In a child all of it is dead, and nothing is taken from the parent; it may have its own. */
static void
in_a_child(void **state)
{
	struct gantry_piece p = piece(0, 100);
	struct gantry_channel *c;
	struct gantry_region *r;
	struct gantry_server *s;
	struct gantry_done done;
	int status, bad = 0;
	char port[96];
	pid_t pid;

	assert_int_equal(move(GANTRY_PUSH, 0, 4096, NULL), 4096);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(60);
		bad += gantry_server_is_alive(f.s) != 0;
		bad += gantry_server_port(f.s, 0, port, sizeof port) != -ENOENT;
		bad += gantry_region_add(f.s, f.mem, 10, &r) != -ENODEV;
		bad += gantry_channel_new(f.s, &c) != -ENODEV;
		bad += gantry_channel_move(f.c, GANTRY_PUSH, &p, 1, remote(0), f.token, 0, NULL) != -ENODEV;
		bad += gantry_channel_start(f.c, GANTRY_PUSH, &p, 1, remote(0), f.token, NULL) != -ENODEV;
		bad += gantry_channel_poll(f.c, &done, 1) != -ENODEV;
		bad += gantry_channel_wait(f.c, -1) != -ENODEV || gantry_channel_fd(f.c) != -ENODEV;
		gantry_server_set_log_level(f.s, GANTRY_SERVER_LOG_DEBUG);
		bad += gantry_channel_free(f.c) != 0 || gantry_region_del(f.r) != 0;
		gantry_server_close(f.s);
#ifndef __SANITIZE_THREAD__ /* which knows no new threads in such a child */
		bad += gantry_server_open(&f.p, &s) != 0 || !gantry_server_is_alive(s);
		gantry_server_close(s);
#else
		(void)s;
#endif
		_exit(bad);
	}
	assert_true(waitpid(pid, &status, 0) == pid);
	assert_int_equal(status, 0);
	assert_int_equal(move(GANTRY_PUSH, 0, 4096, NULL), 4096);
}

/* What is above the level is not said, and what a program hears is in one place. */
static void
levels(void **state)
{
	struct gantry_region *r;

	assert_int_equal(gantry_region_add(f.s, f.mem, 10, &r), 0);
	assert_true(said("I region of 10 bytes"));
	gantry_server_set_log_level(f.s, GANTRY_SERVER_LOG_ERROR);
	forget();
	assert_int_equal(gantry_region_del(r), 0);
	pthread_mutex_lock(&f.lock);
	assert_int_equal(f.len, 0);
	pthread_mutex_unlock(&f.lock);
	gantry_server_set_log_level(f.s, GANTRY_SERVER_LOG_DEBUG);
	assert_int_equal(gantry_channel_free(f.c), 0);
	assert_int_equal(gantry_channel_new(f.s, &f.c), 0);
	assert_true(said("D channel 0 freed"));
	assert_true(said("D channel 1 made"));
}

int
main(int argc, char **argv)
{
#define WITH(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening),
		cmocka_unit_test(forks_are_prepared),
		WITH(in_a_child),
		WITH(there_and_back),
		WITH(many_pieces),
		WITH(more_than_a_work_request),
		WITH(sixteen_at_once),
		WITH(beyond_the_queue),
		WITH(every_delay),
		WITH(asleep),
		WITH(forms_of_tokens),
		WITH(refused_tokens),
		WITH(windows),
		WITH(families),
		WITH(not_allowed),
		WITH(more_than_eight_targets),
		WITH(arguments),
		WITH(memory),
		WITH(channels),
		WITH(two_threads_on_one),
		WITH(levels),
	};

	peer_main(argc, argv);
	if (!getenv("PORTCTL")) {
		printf("no software NIC: run it by tests/system/server.sh\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

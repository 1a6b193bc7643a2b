/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No byte may land after ibv_dereg_mr() has returned, whatever happens to the initiators.  This process is
 * the target: about every millisecond it deregisters, clears the buffer, waits a moment and looks for a byte
 * that came late.  Three initiators, processes of their own, write all the time with the newest token and are
 * killed at random.
 *
 *     t_stress SECONDS          0 late writes, or it fails
 *     t_stress SECONDS expect   the other way round: the protection is switched off
 * (SOFTNIC_TEST_NO_HAZARD=1), so late writes must be found, else the test finds nothing at all SEED= replays
 * the kills.
 */
#include "sn_test.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 1 << 20, WRITERS = 3 };

/* Shared with the initiators: the token of the moment, guarded by an even and odd counter. */
struct board {
	_Atomic uint32_t seq;
	struct hw_token tok;
};

static struct board *board;
static int board_fd;

static void
map_board(int fd)
{
	board_fd = fd;
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(board != MAP_FAILED);
}

static bool
read_token(struct hw_token *tok)
{
	uint32_t seq = atomic_load(&board->seq);

	memcpy(tok, &board->tok, sizeof(*tok));

	return seq % 2 == 0 && seq &&
	       atomic_fetch_add(&board->seq, 0) == seq; /* an RMW: not before the copy */
}

static void
publish(const struct hw_target *t)
{
	atomic_fetch_add(&board->seq, 1);
	sn_target_token(t, &board->tok);
	atomic_fetch_add(&board->seq, 1);
}

/* An initiator: writes 0xff for ever, over one queue pair, resetting it after each error. */
static void
writer(int fd)
{
	struct hw_port dev;
	struct hw_dci dci;
	struct hw_token tok;
	uint8_t *buf = malloc(LEN);
	struct ibv_mr *mr;
	unsigned n = 0;

	map_board(fd);
	sn_open(&dev, "mlx5_0");
	memset(buf, 0xff, LEN);
	mr = ibv_reg_mr(dev.pd, buf, LEN, IBV_ACCESS_LOCAL_WRITE);
	must(mr);
	sn_dci_init(&dci, &dev, NULL);
	while (getppid() != 1) {
		if (!read_token(&tok))
			continue;
		if (n == 0)
			sn_dci_to(&dci, &tok);
		sn_xfer(&dci, false, &tok, mr, buf, LEN >> (n++ % 4));
	}
	exit(0);
}

static pid_t
spawn(void)
{
	pid_t pid = fork();
	char fd[16];

	must(pid >= 0);
	if (pid == 0) {
		snprintf(fd, sizeof(fd), "%d", board_fd);
		execl("/proc/self/exe", "stress-writer", "--writer", fd, (char *)NULL);
		_exit(127);
	}

	return pid;
}

static long
late_bytes(const uint8_t *buf)
{
	long n = 0;

	for (size_t i = 0; i < LEN; i++)
		n += buf[i] != 0;

	return n;
}

int
main(int argc, char **argv)
{
	const unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const char *env = getenv("SEED");
	unsigned seed = env ? (unsigned)atol(env) : (unsigned)sn_now_ms(), kills = 0, rounds = 0, written = 0,
		 late = 0;
	bool expect = argc > 2 && strcmp(argv[2], "expect") == 0;
	uint64_t end, next_kill = 0;
	pid_t pids[WRITERS];
	struct hw_port dev;
	struct hw_target t;

	if (argc == 3 && strcmp(argv[1], "--writer") == 0)
		writer(atoi(argv[2]));
	printf("SEED=%u\n", seed);
	int fd = memfd_create("board", 0);

	must(fd >= 0 && ftruncate(fd, sizeof(struct board)) == 0);
	map_board(fd);
	sn_open(&dev, "mlx5_0");
	sn_target_init(&t, &dev, LEN, all, all);
	publish(&t);
	for (int i = 0; i < WRITERS; i++)
		pids[i] = spawn();
	end = sn_now_ms() + (uint64_t)(argc > 1 ? atof(argv[1]) * 1000 : 3000);
	/* Longer where the machine has other work, until there was something to see. */
	while ((sn_now_ms() < end && !(expect && late >= 20)) ||
	       ((expect ? late == 0 : written <= 20) && sn_now_ms() < end + 2 * SN_PATIENCE_MS)) {
		if (sn_now_ms() >= next_kill) {
			int victim = (int)(rand_r(&seed) % WRITERS);

			kill(pids[victim], SIGKILL);
			must(waitpid(pids[victim], NULL, 0) == pids[victim]);
			pids[victim] = spawn();
			kills++;
			next_kill = sn_now_ms() + 15 + rand_r(&seed) % 30;
		}
		sn_nap_ms(1);
		must(ibv_dereg_mr(t.mr) == 0);
		written += t.buf[0] != 0;
		memset(t.buf, 0, LEN);
		usleep(200 + rand_r(&seed) % 200);
		late += late_bytes(t.buf) != 0;
		memset(t.buf, 0, LEN);
		t.mr = ibv_reg_mr(dev.pd, t.buf, LEN, all);
		must(t.mr);
		publish(&t);
		rounds++;
	}
	for (int i = 0; i < WRITERS; i++) {
		kill(pids[i], SIGKILL);
		must(waitpid(pids[i], NULL, 0) == pids[i]);
	}
	printf("%u registrations, %u of them written to, %u initiators killed, %u late writes\n", rounds,
	       written, kills, late);
	sn_target_fini(&t);
	sn_close(&dev);
	ok(written > 20 || expect, "the initiators did write");
	ok(expect ? late > 0 : late == 0, "%u late writes with the protection %s", late,
	   expect ? "off" : "on");

	return sn_summary("stress");
}

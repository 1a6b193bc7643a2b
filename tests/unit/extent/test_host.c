/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host block, seen from outside: who has a store leaves word of it; a start on another host waits for two
 * beats, and is refused when one comes; format by force and repair do the same; nothing that happens to the
 * block keeps a store from starting; and who finds that another has taken the disk writes no more.
 */
#include "extent/disk/file.h"
#include "extent/engine.h"
#include "fixture.h"
#include "base/age_clock.h"
#include "old.h"
#include "tests/fake/fault_ring.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- while a start waits, time is ours ---- */

static uint64_t fake_ns, slept_ns;
static bool is_fake;
static void (*on_sleep)(void);

int
nanosleep(const struct timespec *ts, struct timespec *left)
{
	if (!is_fake)
		return (int)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, ts, left);
	fake_ns += (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;
	slept_ns += (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;
	if (on_sleep)
		on_sleep();
	return 0;
}

static void
fake_time(bool on, void (*fn)(void))
{
	fake_ns = clock_ns();
	slept_ns = 0;
	is_fake = on;
	on_sleep = fn;
	clock_fake(on ? &fake_ns : NULL);
}

/* ---- the block ---- */

static void
block_path(char path[256])
{
	snprintf(path, 256, "%s/host", dir);
}

static int
block_read(struct host_block *b)
{
	uint8_t buf[HOST_BYTES] = { 0 };
	char path[256];
	int fd;

	block_path(path);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -errno;
	assert_int_equal(read(fd, buf, sizeof buf), sizeof buf);
	close(fd);
	return host_decode(buf, sizeof buf, b);
}

static void
block_write(const struct host_block *b)
{
	static _Alignas(4096) uint8_t buf[HOST_BYTES];
	char path[256];
	int fd;

	host_encode(buf, b);
	block_path(path);
	fd = open(path, O_WRONLY | O_CREAT | O_DIRECT, 0640);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, buf, sizeof buf, 0), sizeof buf);
	close(fd);
}

static struct host_block theirs;

/* Another host has it, and has not closed it. */
static void
make_theirs(void)
{
	assert_int_equal(block_read(&theirs), 0);
	snprintf(theirs.id.name, sizeof theirs.id.name, "elsewhere");
	theirs.id.machine[0] ^= 1;
	theirs.id.boot[0] ^= 1;
	theirs.instance[0] ^= 1;
	theirs.beat = 17;
	theirs.closed = false;
	block_write(&theirs);
}

static void
their_beat(void)
{
	if (slept_ns % HOST_BEAT_NS == 4 * NS_PER_S) {
		theirs.beat++;
		block_write(&theirs);
	}
}

static void
their_close(void)
{
	theirs.beat++;
	theirs.closed = true;
	block_write(&theirs);
}

/* The superblocks, of which every start that goes on writes one. */
static uint64_t
super_sum(void)
{
	static uint8_t buf[FMT_SUPER_BYTES];
	uint64_t sum = 0;
	char path[256];
	int fd;

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, super_file[i]);
		fd = open(path, O_RDONLY);
		assert_true(fd >= 0 && read(fd, buf, sizeof buf) == (ssize_t)sizeof buf);
		close(fd);
		sum = crc64_nvme(sum, buf, sizeof buf);
	}
	return sum;
}

static char said[8192];

static void
say(void *cookie, const char *line)
{
	size_t n = strlen(said);

	snprintf(said + n, sizeof said - n, "%s\n", line);
}

/* A start with the clock in our hand, that ends well; how long it waited. */
static uint64_t
start_waits(void (*fn)(void))
{
	uint64_t waited;
	int r;

	fake_time(true, fn);
	r = store_start(&conf, &st, err, sizeof err);
	waited = slept_ns;
	if (r < 0)
		fail_msg("%d %s", r, err);
	store_stop(st);
	st = NULL;
	fake_time(false, NULL);
	return waited;
}

/* ---- tests ---- */

static void
test_life(void **state)
{
	struct host_block a, b;
	struct host_id here;

	file_host_id(&here);
	assert_int_equal(block_read(&a), 0);
	assert_true(a.closed);
	open_store();
	assert_int_equal(block_read(&b), 0);
	assert_false(b.closed);
	assert_memory_not_equal(a.instance, b.instance, 16);
	assert_memory_equal(a.disk_uuid, b.disk_uuid, 16);
	assert_memory_equal(&b.id, &here, sizeof here);
	close_store();
	assert_int_equal(block_read(&a), 0);
	assert_true(a.closed);
	assert_memory_equal(a.instance, b.instance, 16);
	assert_true(a.log_seq >= b.log_seq && a.log_seq > 0);
}

/* A heartbeat has the time, by which the next start sees that the clock has jumped: claim TM92. */
static void
test_time(void **state)
{
	const uint64_t two_days = 2 * 86400 * NS_PER_S;
	uint64_t before = clock_wall_ns();
	struct host_block b;
	struct age_jump jump;

	age_clock_reset();
	open_store();
	close_store();
	assert_int_equal(block_read(&b), 0);
	assert_in_range(b.wall_ns, before, clock_wall_ns());
	age_clock_reset();
	open_store();
	assert_false(age_clock_jumped(&jump));
	close_store();

	b.wall_ns -= two_days;
	block_write(&b);
	age_clock_reset();
	open_store();
	assert_true(age_clock_jumped(&jump));
	assert_in_range(jump.to_ns - jump.from_ns, two_days, two_days + 3600 * NS_PER_S);
	close_store();
	/* A restart within the hour does not make the new time a known one. */
	assert_int_equal(block_read(&b), 0);
	assert_in_range(b.wall_ns, before - two_days, clock_wall_ns() - two_days + 3600 * NS_PER_S);
	age_clock_reset();
	open_store();
	assert_true(age_clock_jumped(&jump));
	close_store();
	/* The block of an earlier version has no time. */
	b.wall_ns = 0;
	block_write(&b);
	age_clock_reset();
	open_store();
	assert_false(age_clock_jumped(&jump));
	close_store();
}

static void
test_no_sign(void **state)
{
	make_theirs();
	assert_true(start_waits(NULL) >= 2 * HOST_BEAT_NS);
	/* Closed, there is nothing to wait for. */
	make_theirs();
	assert_int_equal(start_waits(their_close), NS_PER_S);
	make_theirs();
	their_close();
	assert_int_equal(start_waits(NULL), 0);
}

static void
test_in_use(void **state)
{
	uint64_t before;

	make_theirs();
	before = super_sum();
	fake_time(true, their_beat);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -EBUSY);
	printf("%s\n", err);
	assert_non_null(strstr(err, dir));
	assert_non_null(strstr(err, "in use by host 'elsewhere'"));
	assert_true(slept_ns <= HOST_BEAT_NS);
	said[0] = 0;
	assert_int_equal(store_fsck(&conf, true, say, NULL), -EBUSY);
	assert_non_null(strstr(said, "in use by host 'elsewhere'"));
	assert_int_equal(store_format(&conf, true, err, sizeof err), -EBUSY);
	assert_non_null(strstr(err, "in use by host 'elsewhere'"));
	/* A check changes nothing, and waits for nobody. */
	slept_ns = 0;
	said[0] = 0;
	assert_int_equal(store_fsck(&conf, false, say, NULL), 0);
	assert_int_equal(slept_ns, 0);
	assert_non_null(strstr(said, "host 'elsewhere'"));
	fake_time(false, NULL);
	assert_true(super_sum() == before);
}

static void
test_same_machine(void **state)
{
	struct host_block b;
	struct host_id here;

	file_host_id(&here);
	if (!here.machine[0] && !here.machine[1])
		skip(); /* it does not say which machine it is */
	/* Another boot of it. */
	assert_int_equal(block_read(&b), 0);
	b.closed = false;
	b.beat += 5;
	b.id.boot[3] ^= 1;
	block_write(&b);
	assert_int_equal(start_waits(NULL), 0);
	/* The same boot under another name, where it says which boot it is. */
	assert_int_equal(block_read(&b), 0);
	b.closed = false;
	snprintf(b.id.name, sizeof b.id.name, "renamed");
	block_write(&b);
	if (here.boot[0] || here.boot[1])
		assert_int_equal(start_waits(NULL), 0);
	/* A clone has a name of its own. */
	b.id.boot[3] ^= 1;
	b.closed = false;
	block_write(&b);
	assert_true(start_waits(NULL) >= 2 * HOST_BEAT_NS);
}

/* A block of this machine and boot, of that process. */
static void
make_process(uint64_t pid, uint64_t start, uint64_t pid_ns)
{
	assert_int_equal(block_read(&theirs), 0);
	file_host_id(&theirs.id);
	theirs.id.pid = pid;
	theirs.id.start = start;
	theirs.id.pid_ns = pid_ns;
	theirs.instance[0] ^= 1;
	theirs.closed = false;
	block_write(&theirs);
}

static uint64_t
start_of(pid_t pid)
{
	char path[64], text[1024];
	unsigned long long start = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof text, f));
	fclose(f);
	/* The 22nd field; the second is the name, in parentheses. */
	assert_int_equal(sscanf(strrchr(text, ')') + 1,
				" %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
				"%*s %llu",
				&start),
			 1);
	return start;
}

/* The process that wrote the block decides in the same boot: the locks may be those of another path. */
static void
test_process(void **state)
{
	struct host_id here;
	uint64_t before, start;
	siginfo_t info;
	pid_t child;

	file_host_id(&here);
	if (!here.pid_ns || !here.boot[0])
		skip(); /* no /proc */
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	start = start_of(child);
	/* It lives: no wait. */
	make_process((uint64_t)child, start, here.pid_ns);
	before = super_sum();
	fake_time(true, NULL);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -EBUSY);
	assert_int_equal(slept_ns, 0);
	fake_time(false, NULL);
	assert_non_null(strstr(err, "in use by host"));
	assert_true(super_sum() == before);
	/* Another one has its id now. */
	make_process((uint64_t)child, start - 1, here.pid_ns);
	assert_int_equal(start_waits(NULL), 0);
	/* Not visible, not known: the usual wait, and a beat in it. */
	make_process((uint64_t)child, start, here.pid_ns + 1);
	assert_true(start_waits(NULL) >= 2 * HOST_BEAT_NS);
	make_process(0, 0, 0);
	assert_true(start_waits(NULL) >= 2 * HOST_BEAT_NS);
	make_process(0, 0, 0);
	fake_time(true, their_beat);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -EBUSY);
	fake_time(false, NULL);
	/* Dead, and its parent has not asked for it; then gone. */
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	make_process((uint64_t)child, start, here.pid_ns);
	assert_true(start_waits(NULL) >= 2 * HOST_BEAT_NS);
	waitpid(child, NULL, 0);
	make_process((uint64_t)child, start, here.pid_ns);
	assert_int_equal(start_waits(NULL), 0);
}

static void
damage(uint64_t off, int bit)
{
	uint8_t byte;
	char path[256];
	int fd;

	block_path(path);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0 && pread(fd, &byte, 1, (off_t)off) == 1);
	byte ^= (uint8_t)(1 << bit);
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)off), 1);
	close(fd);
}

static bool unreadable;

static int
hook(const struct fault_io *io)
{
	return unreadable && io->kind == FAULT_READ && strcmp(io->name, "host") == 0 ? -EIO : 0;
}

static void
test_damaged(void **state)
{
	struct host_block b;
	char path[256];

	block_path(path);
	for (int i = 0; i < 12; i++) {
		make_theirs();
		damage((uint64_t)i * 13, i % 8);
		assert_int_equal(block_read(&b), -EBADMSG);
		said[0] = 0;
		assert_int_equal(store_fsck(&conf, false, say, NULL), 0);
		assert_non_null(strstr(said, "host block is damaged"));
		assert_int_equal(start_waits(NULL), 0);
		assert_int_equal(block_read(&b), 0);
	}
	/* Cut short, empty, gone. */
	assert_int_equal(truncate(path, 1000), 0);
	assert_int_equal(start_waits(NULL), 0);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(start_waits(NULL), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(start_waits(NULL), 0);
	assert_int_equal(block_read(&b), 0);
	assert_true(b.closed);
	/* A bad sector, as long as it is one. */
	make_theirs();
	unreadable = true;
	assert_int_equal(start_waits(NULL), 0);
	unreadable = false;
}

/* The machine was cloned while it ran, say: the same name and id, another instance. */
static void
test_taken_over(void **state)
{
	struct vol *vol;
	struct ring *r;

	open_store();
	vol = extent_store(st)->vol;
	assert_int_equal(ring_new(&(struct ring_params){ .entries = 8 }, &r), 0);
	helper_stop(&vol->helper); /* what it does is done here */
	assert_true(disk_beat(&vol->disk, r) > 0);
	vol->disk.host.due_ns = 0;
	assert_true(disk_beat(&vol->disk, r) <= HOST_BEAT_NS);
	assert_int_equal(block_read(&theirs), 0);
	assert_int_equal(theirs.beat, 2);
	theirs.instance[5] ^= 1;
	theirs.beat = 1;
	block_write(&theirs);
	assert_int_equal(put_simple(&l, "b", "before", 100, 1), 0);
	vol->disk.host.due_ns = 0;
	assert_true(disk_beat(&vol->disk, r) == UINT64_MAX);
	assert_true(put_simple(&l, "b", "behind", 100, 1) < 0);
	assert_int_equal(obj_check(&l, "b", "before", 100, 1), 0);
	printf("%s\n", disk_info().reason);
	assert_non_null(strstr(disk_info().reason, "taken over by host '"));
	ring_free(r);
	close_store();
	/* What the other one wrote is there still. */
	assert_int_equal(block_read(&theirs), 0);
	assert_int_equal(theirs.beat, 1);
	assert_false(theirs.closed);
}

static int fail_with;

static int
fail_hook(const struct fault_io *io)
{
	return fail_with && io->kind == FAULT_WRITE && strcmp(io->name, "host") == 0 ? fail_with : 0;
}

/* A beat that cannot be written ends the disk; one that the kernel had no memory for comes a little later. */
static void
test_beat_fails(void **state)
{
	struct host_block b;
	struct vol *vol;
	struct ring *r;

	open_store();
	vol = extent_store(st)->vol;
	assert_int_equal(ring_new(&(struct ring_params){ .entries = 8 }, &r), 0);
	helper_stop(&vol->helper);
	fault_ring_hook = fail_hook;
	fail_with = -ENOMEM;
	vol->disk.host.due_ns = 0;
	assert_true(disk_beat(&vol->disk, r) < HOST_BEAT_NS / 2);
	assert_int_equal(disk_info().state, UNIT_OK);
	fail_with = 0;
	vol->disk.host.due_ns = 0;
	disk_beat(&vol->disk, r);
	assert_int_equal(block_read(&b), 0);
	assert_int_equal(b.beat, 2);
	fail_with = -EIO;
	vol->disk.host.due_ns = 0;
	assert_true(disk_beat(&vol->disk, r) == UINT64_MAX);
	assert_int_equal(disk_info().state, UNIT_FAILED);
	assert_non_null(strstr(disk_info().reason, "host block"));
	fail_with = 0;
	fault_ring_hook = hook;
	ring_free(r);
	close_store();
}

/* Somebody takes the disk while a start reads the log. */
static void
test_two_starts(void **state)
{
	struct host h = { .fd = -1 };
	char path[256];
	struct ring *r;

	make_theirs();
	theirs.closed = true;
	block_write(&theirs);
	block_path(path);
	h.fd = open(path, O_RDWR | O_DIRECT);
	assert_true(h.fd >= 0);
	assert_int_equal(ring_new(&(struct ring_params){ .entries = 8 }, &r), 0);
	assert_int_equal(host_wait(&h, r, dir, err, sizeof err), 0);
	theirs.closed = false;
	theirs.instance[7] ^= 1;
	block_write(&theirs);
	assert_int_equal(host_claim(&h, r, theirs.disk_uuid, 1, dir, err, sizeof err), -EBUSY);
	assert_non_null(strstr(err, "in use by host 'elsewhere'"));
	assert_int_equal(host_beat(&h, r, 1), 0);
	assert_int_equal(host_close(&h, r, 1), 0);
	ring_free(r);
	close(h.fd);
}

static struct host_block in_step; /* as the first write of a superblock found the block */
static int looks, take_at, supers_written;

static int
step_hook(const struct fault_io *io)
{
	if (io->kind == FAULT_READ && strcmp(io->name, "host") == 0 && ++looks == take_at)
		block_write(&theirs);
	if (io->kind == FAULT_WRITE && strncmp(io->name, "super", 5) == 0 && supers_written++ == 0)
		assert_int_equal(block_read(&in_step), 0);
	return 0;
}

/* While the step to this format goes on the disk is the one's who makes it, and behind it nobody's; who took it between
 * the last look and the first write keeps it. */
static void
test_upgrade(void **state)
{
	struct host_block after;
	char path[256];

	fault_ring_hook = step_hook;
	looks = take_at = supers_written = 0;
	make_old(OLD_VERSION);
	/* Nor has an old store the file. */
	block_path(path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), 0);
	assert_true(supers_written > 0 && in_step.beat > 0 && !in_step.closed);
	assert_int_equal(block_read(&after), 0);
	assert_true(after.closed && memcmp(after.instance, in_step.instance, 16) == 0);

	make_old(OLD_VERSION);
	make_theirs();
	assert_int_equal(unlink(path), 0);
	block_write(&after);
	looks = supers_written = 0;
	take_at = 3; /* at opening, for the wait, for the claim */
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), -EBUSY);
	assert_non_null(strstr(said, "in use by host 'elsewhere'"));
	assert_int_equal(supers_written, 0);
	assert_int_equal(block_read(&after), 0);
	assert_int_equal(after.beat, theirs.beat);
	their_close();
	take_at = 0;
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), 0);
	assert_int_equal(start_waits(NULL), 0);
}

static int
setup(void **state)
{
	fault_ring_hook = hook;
	if (make_store(96 * MIB) != 0)
		return -1;
	close_store();
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, remove_store)
		T(test_life),    T(test_no_sign),    T(test_in_use),     T(test_same_machine),
		T(test_damaged), T(test_taken_over), T(test_beat_fails), T(test_two_starts),
		T(test_upgrade), T(test_process),    T(test_time),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_host", tests, NULL, NULL);
}

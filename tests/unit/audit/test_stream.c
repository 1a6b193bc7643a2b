/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim TM95: the file of the stream: bounded, rotated, with nothing lost while memory has room, and the number of what is
 * lost told in it; a file that takes no bytes delays nobody.
 */
#include "audit/audit.h"

#include "base/clock.h"
#include "base/log.h"
#include "tests/fake/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define LONG_NS (60 * NS_PER_S)

static char dir[] = "/tmp/test_stream.XXXXXX";
static char path[128];

static void
begin(const char *file, uint64_t size, int keep, bool reads)
{
	assert_int_equal(audit_set(&(struct audit_conf){
				 .path = file, .size_bytes = size, .keep = keep, .reads = reads }),
			 0);
}

static void
put(enum audit_kind kind, const char *key)
{
	audit_put(&(struct audit_event){ .kind = kind, .op = "Test", .key = { key, strlen(key) } });
}

static char *
content(const char *name)
{
	FILE *f = fopen(name, "r");
	char *text = calloc(1, 4 << 20);

	assert_non_null(f);
	fread(text, 1, (4 << 20) - 1, f);
	fclose(f);
	return text;
}

static int
count(const char *text, const char *word)
{
	int n = 0;

	for (const char *p = text; (p = strstr(p, word)); p += strlen(word))
		n++;
	return n;
}

/* Returns the sum of the numbers of dropped records that a text reports. */
static uint64_t
told(const char *text)
{
	static const char name[] = "\"dropped\":";
	uint64_t sum = 0;

	for (const char *p = text; (p = strstr(p, name));)
		sum += strtoull(p += sizeof name - 1, NULL, 10);
	return sum;
}

/* Begin and end are in it, and reads only if they were asked for; nothing is taken before or after. */
static void
test_kinds(void **state)
{
	struct stat st;
	char *text;

	put(AUDIT_CHANGE, "early");
	assert_false(audit_wants(AUDIT_CHANGE));
	begin(path, 1 << 20, 3, false);
	assert_true(audit_wants(AUDIT_CHANGE) && audit_wants(AUDIT_REFUSAL) && !audit_wants(AUDIT_OTHER));
	put(AUDIT_CHANGE, "one");
	put(AUDIT_OTHER, "read");
	begin(path, 1 << 20, 3, true);
	put(AUDIT_OTHER, "two");
	audit_stop(LONG_NS);
	put(AUDIT_CHANGE, "late");
	text = content(path);
	assert_int_equal(count(text, "\n"), 4);
	assert_int_equal(count(text, "\"Start\"") + count(text, "\"one\"") + count(text, "\"two\"") +
				 count(text, "\"Stop\""),
			 4);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	free(text);
	unlink(path);
}

static void
test_rotation(void **state)
{
	char key[1000], name[160];
	int lines = 0;

	memset(key, 'k', sizeof key - 1);
	key[sizeof key - 1] = 0;
	begin(path, 64 << 10, 2, false);
	for (int i = 0; i < 600; i++)
		put(AUDIT_CHANGE, key);
	audit_stop(LONG_NS);
	for (int i = 0; i <= 2; i++) {
		struct stat st;
		char *text;

		snprintf(name, sizeof name, i ? "%s.%d" : "%s", path, i);
		assert_int_equal(stat(name, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_true(st.st_size <= 64 << 10 && (i == 0 || st.st_size > 60 << 10));
		text = content(name);
		assert_int_equal(text[0], '{');
		assert_int_equal(text[strlen(text) - 1], '\n');
		lines += count(text, "\n");
		free(text);
		unlink(name);
	}
	assert_true(lines > 110 && lines < 190);
	snprintf(name, sizeof name, "%s.3", path);
	assert_int_equal(access(name, F_OK), -1);
}

static void
put_text(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
assert_content(const char *name, const char *want)
{
	char *text = content(name);

	assert_string_equal(text, want);
	free(text);
}

/* The file cannot be renamed, as one that is mounted: the attempts remove one old file, and no more. */
static void
test_held(void **state)
{
	char key[1000], name[4][160];
	struct audit_info info;

	if (geteuid() != 0)
		skip();
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	memset(key, 'k', sizeof key - 1);
	key[sizeof key - 1] = 0;
	for (int i = 1; i <= 3; i++) {
		snprintf(name[i], sizeof name[i], "%s.%d", path, i);
		put_text(name[i], (const char *[]){ "one", "two", "three" }[i - 1]);
	}
	put_text(path, "");
	assert_int_equal(mount(path, path, NULL, MS_BIND, NULL), 0);
	begin(path, 64 << 10, 3, false);
	for (int i = 0; i < 100; i++)
		put(AUDIT_CHANGE, key);
	/* Five attempts and more. */
	wait_until((audit_get_info(&info), info.waits_ns >= 600 * NS_PER_MS))
		usleep(10000);
	assert_int_equal(info.error, -EBUSY);
	assert_int_equal(access(name[1], F_OK), -1);
	assert_content(name[2], "one");
	assert_content(name[3], "two");
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	audit_stop(LONG_NS);
	assert_int_equal(access(name[1], F_OK), 0);
	assert_content(name[2], "one");
	assert_content(name[3], "two");
	unlink(path);
	for (int i = 1; i <= 3; i++)
		unlink(name[i]);
}

/* Others have removed the file: what comes later is in a new one.  Then the directory is gone: what comes waits until there is one. */
static void
test_removed(void **state)
{
	char other[160];
	char *text;

	begin(path, 1 << 20, 2, false);
	put(AUDIT_CHANGE, "one");
	audit_stop(LONG_NS);
	begin(path, 1 << 20, 2, false);
	unlink(path);
	put(AUDIT_CHANGE, "two");
	audit_stop(LONG_NS);
	text = content(path);
	assert_int_equal(count(text, "\"two\""), 1);
	free(text);
	unlink(path);
	snprintf(other, sizeof other, "%s/absent/file", dir);
	begin(other, 1 << 20, 2, false);
	put(AUDIT_CHANGE, "three");
	audit_stop(NS_PER_MS);
	begin(path, 1 << 20, 2, false);
	audit_stop(LONG_NS);
	text = content(path);
	assert_int_equal(count(text, "\"three\""), 1);
	assert_int_equal(count(text, "dropped"), 0);
	free(text);
	unlink(path);
}

/* A disk without room, then one with some. */
static void
test_full(void **state)
{
	struct audit_info info, before;
	char key[1000];
	char *text;
	uint64_t lost;

	audit_get_info(&before);
	memset(key, 'k', sizeof key - 1);
	key[sizeof key - 1] = 0;
	begin("/dev/full", 1 << 20, 2, false);
	for (int i = 0; i < 1500; i++)
		put(AUDIT_CHANGE, key);
	audit_get_info(&info);
	lost = info.dropped - before.dropped;
	assert_true(info.is_on && lost > 0 && info.unreported == lost);
	audit_stop(NS_PER_MS);
	audit_get_info(&info);
	assert_int_equal(info.error, -ENOSPC);
	assert_int_equal(info.records, before.records);
	begin(path, 16 << 20, 2, false);
	audit_stop(LONG_NS);
	audit_get_info(&info);
	assert_int_equal(info.unreported, 0);
	assert_int_equal(info.error, 0);
	text = content(path);
	assert_int_equal(told(text), info.dropped - before.dropped);
	assert_int_equal(count(text, "kkk\""), 1500 - (int)lost);
	free(text);
	unlink(path);
}

struct drain {
	int fd;
	char text[4 << 20];
};

static void *
drain_main(void *arg)
{
	struct drain *d = arg;
	size_t at = 0;
	ssize_t n;

	while ((n = read(d->fd, d->text + at, sizeof d->text - at - 1)) > 0)
		at += (size_t)n;
	return NULL;
}

/* A reader that does not read: 3 MiB are put at once, changes find room where reads find none any more. */
static void
test_stalled(void **state)
{
	static struct drain d;
	struct audit_info info, before;
	char key[1000];
	pthread_t thread;
	uint64_t lost;
	int changes;

	memset(&d, 0, sizeof d);
	audit_get_info(&before);
	memset(key, 'k', sizeof key - 1);
	key[sizeof key - 1] = 0;
	assert_int_equal(mkfifo(path, 0600), 0);
	d.fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(d.fd >= 0);
	fcntl(d.fd, F_SETFL, 0);
	begin(path, 1 << 20, 2, true);
	for (int i = 0; i < 3000; i++)
		put(AUDIT_OTHER, key);
	audit_get_info(&info);
	lost = info.dropped - before.dropped;
	assert_true(lost > 1500);
	for (int i = 0; i < 100; i++)
		put(AUDIT_CHANGE, "change");
	audit_get_info(&info);
	assert_int_equal(info.dropped - before.dropped, lost);
	/* The pipe has room for less than waits here. */
	while (info.waits_ns == 0)
		audit_get_info(&info);
	assert_int_equal(pthread_create(&thread, NULL, drain_main, &d), 0);
	audit_stop(LONG_NS);
	pthread_join(thread, NULL);
	changes = count(d.text, "\"change\"");
	assert_int_equal(changes, 100);
	assert_int_equal(told(d.text), lost);
	assert_int_equal(count(d.text, "kkk\""), 3000 - (int)lost);
	audit_get_info(&info);
	assert_int_equal(info.unreported, 0);
	assert_int_equal(info.waits_ns, 0);
	close(d.fd);
	unlink(path);
}

/* A hundred refusals a second; the next second tells how many more there were.  Changes are not counted. */
static void
test_refusals(void **state)
{
	static uint64_t now_ns = 1000 * NS_PER_S;
	struct audit_info before, info;
	char *text;

	clock_fake(&now_ns);
	audit_get_info(&before);
	begin(path, 16 << 20, 2, false);
	for (int i = 0; i < 250; i++)
		put(AUDIT_REFUSAL, "no");
	put(AUDIT_CHANGE, "yes");
	audit_stop(LONG_NS);
	now_ns += NS_PER_S;
	begin(path, 16 << 20, 2, false);
	put(AUDIT_REFUSAL, "later");
	audit_stop(LONG_NS);
	clock_fake(NULL);
	audit_get_info(&info);
	assert_int_equal(info.held - before.held, 150);
	assert_int_equal(info.dropped, before.dropped);
	text = content(path);
	assert_int_equal(count(text, "\"no\""), 100);
	assert_int_equal(count(text, "\"yes\""), 1);
	assert_int_equal(count(text, "\"later\",\"held_back\":150"), 1);
	free(text);
	unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),    cmocka_unit_test(test_rotation),
		cmocka_unit_test(test_held),     cmocka_unit_test(test_removed),
		cmocka_unit_test(test_full),     cmocka_unit_test(test_stalled),
		cmocka_unit_test(test_refusals),
	};
	int rc;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/audit.jsonl", dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return rc;
}

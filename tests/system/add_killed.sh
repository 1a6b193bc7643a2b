#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `gantry disk add` is cut short by a kill just before the record of the store is written, and just after: the next start, whose configuration does not name
# the new disk, serves all objects, with the disk or without it, and the disk can be added again where it did not become a member. The daemon dies at
# rename() of the record, by a library that is loaded first.
DISK_SIZE=128MiB DISKS=2
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
A=$T/admin.sock
mkdir "$T/state"
export GANTRY_STORE_STATE_DIR=$T/state T
cat >"$T/kill.c" <<-'C'
	#define _GNU_SOURCE
	#include <dlfcn.h>
	#include <signal.h>
	#include <stdlib.h>
	#include <stdio.h>
	#include <string.h>
	#include <unistd.h>
	static int is_on(const char *when)
	{
		char path[4096];
		snprintf(path, sizeof path, "%s/kill-%s", getenv("T"), when);
		return access(path, F_OK) == 0;
	}
	int rename(const char *from, const char *to)
	{
		int (*next)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"), r;
		if (strstr(to, "/store-") && is_on("before"))
			kill(getpid(), SIGKILL);
		r = next(from, to);
		if (strstr(to, "/store-") && is_on("after"))
			kill(getpid(), SIGKILL);
		return r;
	}
C
cc -shared -fPIC -o "$T/kill.so" "$T/kill.c" -ldl || fail "the library cannot be built"
whole() { curl_s3 '/bkt/o[1-20]' | md5; }
is_down() { ! kill -0 "$DAEMON_PID" 2>/dev/null; }
start_daemon
seq 1000 >"$T/body"
curl_s3 '/bkt/o[1-20]' -T "$T/body" || fail "PUT"
WHOLE=$(whole)
stop_daemon
for when in before after; do
	DAEMON_WRAP="env LD_PRELOAD=$T/kill.so" daemon_run
	: >"$T/kill-$when"
	gantry --admin "$A" disk add "$T/new-$when" --size 128MiB >"$T/said" 2>&1 && fail "the daemon was not killed $when the record"
	wait_for 60 is_down
	rm "$T/kill-$when"
	kill_daemon
	daemon_run
	assert_eq "$(whole)" "$WHOLE" "objects after a kill $when the record"
	if ! curl_admin /disks | jq -r '.[].path' | grep -qxF "$T/new-$when"; then
		gantry --admin "$A" disk add "$T/new-$when" --size 128MiB --force >"$T/said" 2>&1 || fail "it cannot be added again: $(<"$T/said")"
	fi
	kill_daemon
	daemon_run
	curl_admin /disks | jq -r '.[].path' | grep -qxF "$T/new-$when" || fail "the disk is not a member in the end"
	assert_eq "$(whole)" "$WHOLE"
	settle
	stop_daemon
done

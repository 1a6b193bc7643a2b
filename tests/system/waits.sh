#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# wait_for of lib.sh, and until() of waits.py: a wait that ends late fails if the processors were idle, and passes if they had work, if it is short, or if the call
# names a longer usual time. The times of the processors come from a file of this test, so the load of the machine does not matter.
. "$(dirname "$0")/lib.sh"
export PROC_STAT=$T/stat
# stat IDLE BUSY IOWAIT: the ticks from now on
stat_is() { echo "cpu $2 0 0 $1 $3 0 0 0 0 0" >"$T/stat"; }
# late: succeeds at its third call, after SECONDS were set forward by 20; the times of the processors are then those of $1.
late() {
	calls=$((calls + 1))
	[ $calls -ge 3 ] || return 1
	SECONDS=$((SECONDS + ${jump:-20}))
	# shellcheck disable=SC2086
	stat_is $after
}
# try: exit status of a wait in a shell of its own, what it said in $T/said
try() {
	(
		# The directory stays: only the outer shell removes it.
		trap - EXIT
		calls=0
		stat_is 1000 1000 1000
		wait_for 60 late
	) >"$T/said" 2>&1 {_err}>&1
}
# The same of until().
try_python() {
	stat_is 1000 1000 1000
	PYTHONPATH=$ROOT/tests/system PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 - "${jump:-20}" "$after" >"$T/said" 2>&1 <<-'END'
		import os, sys, time, waits
		passed, calls, real = 0, 0, time.monotonic
		time.monotonic = lambda: real() + passed
		def late():
		    global passed, calls
		    calls += 1
		    if calls == 3:
		        passed = int(sys.argv[1])
		        idle, busy, disk = sys.argv[2].split()
		        with open(os.environ["PROC_STAT"], "w") as stat:
		            stat.write("cpu %s 0 0 %s %s 0 0 0 0 0\n" % (busy, idle, disk))
		    return calls == 3
		waits.until("late", late)
	END
}

for try in try try_python; do
	after='3000 1100 1000' jump=20 # 2000 idle of 2100
	! $try || fail "a late wait on an idle machine passed"
	grep -q 'it took 2[0-9] s with idle processors.*a lost wake-up? late' "$T/said" || fail "what it said: $(<"$T/said")"
	after='2500 2500 1000' # half of it
	$try || fail "a late wait on a busy machine: $(<"$T/said")"
	after='1500 1000 3000' # the disk
	$try || fail "a late wait for the disk: $(<"$T/said")"
	after='3000 1100 1000' jump=5
	$try || fail "a short wait: $(<"$T/said")"
	jump=20
	WAIT_USUAL=40 $try || fail "a wait that names a longer usual time: $(<"$T/said")"
done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fault rules, lost and reset devices and the trace of the software NIC, in thread and in inline mode; then the test of everything
# at once (t_chaos) while rules and traces come and go.  BUILD names the build, SECS= the seconds of each chaos.
. "$(dirname "$0")/fabric.sh"
ctl=$BUILD/softnicctl
rc=0

# None of these rules takes a completion away or adds one, so t_chaos must find all as usual.
churn() {
	n=0
	while kill -0 "$1" 2>/dev/null; do
		for words in 'delay=3ms prob=0.3' 'hold=1ms every=3' 'scramble=65536 prob=0.2' 'status=RETRY_EXC every=9' \
			'torn=50 every=5' 'corrupt=1000 prob=0.1' 'op=write scramble=4096 pause=200us every=7'; do
			# shellcheck disable=SC2086
			"$ctl" rule add $words >/dev/null || return 1
		done
		n=$((n + 1))
		"$ctl" trace on "$SOFTNIC_DIR/trace.$((n % 2))" 20000 || return 1
		sleep 0.1
		"$ctl" trace show "$SOFTNIC_DIR/trace.$((n % 2))" >/dev/null 2>&1 || [ $? = 1 ] || return 1
		"$ctl" rule clear || return 1
		"$ctl" trace off || return 1
		sleep 0.02
	done
	"$ctl" trace show "$SOFTNIC_DIR/trace.$((n % 2))" >/dev/null || [ $? = 1 ] # the last one may be empty, or too full
}

for mode in thread inline; do
	for t in t_fault t_device t_reset t_trace; do
		echo "== $t, SOFTNIC_EXEC=$mode"
		SOFTNIC_EXEC=$mode scripts/with-softnic "$BUILD/softnic-tests/$t" || rc=1
	done
	echo "== t_chaos with rules and traces, SOFTNIC_EXEC=$mode"
	SOFTNIC_EXEC=$mode scripts/with-softnic "$BUILD/softnic-tests/t_chaos" "${SECS:-1}" &
	churn $! || { echo "churn failed"; rc=1; }
	wait $! || rc=1
done
exit $rc

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The interface of cuObject (make check-cuobject): its tests in tests/cuobject/, those of libgantry-server, the programs among them also
# with the sanitizers.
# T=words runs what has one of them in its name.
set -u
cd "$(dirname "$0")/../.." || exit 2
. scripts/test-env
pass=0 failed=0
one() { # NAME VARIANT COMMAND
	local log=build/$2/log/cuobject.$1.log start=$SECONDS
	[ -z "${T:-}" ] || grep -qE "${T// /|}" <<<"$1" || return 0
	mkdir -p "build/$2/log"
	if BUILD=build/$2 VARIANT=$2 timeout -k 10 300 "$3" >"$log" 2>&1 </dev/null; then
		echo "ok    cuobject/$1 $2 ($((SECONDS - start)) s)"
		pass=$((pass + 1))
	else
		echo "FAIL  cuobject/$1 $2: exit $?; the last of its output:"
		tail -n 40 "$log" | sed 's/^/      /'
		failed=$((failed + 1))
	fi
}
one basics release tests/system/cuobject.sh
for t in tests/cuobject/*.sh; do
	[ "$t" = tests/cuobject/run.sh ] || one "$(basename "$t" .sh)" release "$t"
done
# libgantry-server, which its C++ shape is over.
one server_repair release tests/server/repair.sh
for v in asan tsan; do
	one basics "$v" tests/system/cuobject.sh
	one facts "$v" tests/cuobject/facts.sh
	one server "$v" tests/cuobject/server.sh
	one gantry_server "$v" tests/system/server.sh
	one server_repair "$v" tests/server/repair.sh
done
echo "$pass passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the manual pages show under EXAMPLES does what they say.  Text is taken from the pages as it stands there and changed only so:
#   10.0.0.9:9000, 10.0.0.5  the listener of this test, and 127.0.0.1
#   /dev/NAME                a file in this test's directory, with a size where the page leaves it to the device
#   /tmp/                    this test's directory
#   gantryd                  is told by -c which file to read, and with --check-config does no more than judge it
#   gantry bench             does not warm up, for a second before each of six rounds
#   gantry key               is told by --conf which daemon's keys are meant
# Left out, because a machine of its own is needed: runuser and systemctl of gantryd(8), which tests/vm runs.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$T" || exit 1

# examples PAGE: its blocks and lines as a reader sees them, a line of dashes behind each block
examples() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$ROOT/man/$1" | awk '
		/^\.Bd/ { block = 1; next }
		/^\.Ed/ { block = 0; print "----"; next }
		block { print; next }
		sub(/^\.Dl /, "") { print; print "----" }' | sed 's/\\e/\\/g; s/\\&//g'
}

# ---- gantryd.yaml(5): each block is a whole configuration, which is judged, formatted and served
examples gantryd.yaml.5 >yaml
[ -s yaml ] || fail "gantryd.yaml(5) has no example"
csplit -sz -f conf. --suppress-matched yaml '/^----$/' '{*}'
for f in conf.*; do
	sed -E "s#10\.0\.0\.5:[0-9]+#127.0.0.1:0#; s#127\.0\.0\.1:9001#127.0.0.1:0#; s#\{ path: /dev/(\w+) \}#{ path: $T/\1, size: 256MiB }#" "$f" >gantryd.yaml
	! grep -q '/dev/' gantryd.yaml || fail "a device is left in $(<gantryd.yaml)"
	NICS=2 nic "$BUILD/gantryd" -c gantryd.yaml --check-config >out 2>&1 || fail "gantryd.yaml(5): $(cat out gantryd.yaml)"
	for d in $(grep -oE "path: $T/\w+" gantryd.yaml | cut -d' ' -f2); do mkdir "$d"; done
	NICS=2 nic "$BUILD/gantryd" -c gantryd.yaml --format >out 2>&1 || fail "gantryd.yaml(5), --format: $(cat out gantryd.yaml)"
	NICS=2 daemon_run -o memory.buffers=64MiB -o memory.http_buffers=8MiB
	assert_eq "$(curl_admin /livez -o /dev/null -w '%{http_code}')" 200
	stop_daemon
done

# ---- gantryd(8)
examples gantryd.8 | grep '^gantryd ' >lines
[ -s lines ] || fail "gantryd(8) has no example"
while read -r _ words; do
	# shellcheck disable=SC2086
	nic "$BUILD/gantryd" -c gantryd.yaml $words --check-config >out 2>&1 || fail "gantryd $words: $(<out)"
done <lines

# ---- gantry(1): in the order of the page, against a daemon
BUCKETS='images backup bkt'
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
start_daemon
mkdir bin work
printf '#!/bin/sh\nexec "%s" -d 1 "%s" "$@"\n' "$ROOT/scripts/with-softnic" "$BUILD/gantry" >bin/gantry
chmod +x bin/gantry
bytes pattern:3 3000000 >work/disk.img
examples gantry.1 | grep -v '^----$' | sed "s#10\.0\.0\.9:9000#$S3#g; s#/tmp/#$T/#g; s#^gantry bench #gantry bench --warm-up 0 #; s#^gantry key #gantry --conf $T/gantryd.yaml key #" >lines
[ "$(wc -l <lines)" -ge 3 ] || fail "gantry(1) has lost its examples"
while read -r line; do
	(cd work && PATH=$T/bin:$PATH bash -euo pipefail -c "$line") </dev/null >out 2>&1 || fail "gantry(1): $line: $(<out)"
done <lines
assert_same disk.img work/disk.img
curl_s3 /images/disk.img | cmp - disk.img || fail "gantry(1): the object"
curl_s3 /backup/disk.img | cmp - disk.img || fail "gantry(1): mput"

# ---- libgantry(3): the block is the body of a function
{
	printf '#include <err.h>\n#include <gantry.h>\nint main(void)\n{\nstatic char buf[65536];\nsize_t len = sizeof buf;\n'
	examples libgantry.3 | grep -v '^----$' | sed "s#10\.0\.0\.9:9000#$S3#"
	printf 'return res.path == GANTRY_PATH_RDMA ? 0 : 2;\n}\n'
} >example.c
gcc -std=c17 -Wall -Werror -I"$ROOT/src/client" -o example example.c "$BUILD/libgantry.so" "-Wl,-rpath,$BUILD" >out 2>&1 ||
	fail "libgantry(3): $(<out)"
nic ./example >out 2>&1 || fail "libgantry(3): exit $?: $(<out)"
assert_eq "$(curl_s3 /bkt/key | wc -c)" 65536

# ---- softnicctl(8): rules and ports
examples softnicctl.8 | sed ':a; /\\$/ { N; s/\\\n//; ba }' | grep -E '^softnicctl (port|rule add) ' >lines
[ "$(wc -l <lines)" -ge 3 ] || fail "softnicctl(8) has lost its examples"
printf '#!/bin/sh\nexec "%s" -d 1 "%s" "$@"\n' "$ROOT/scripts/with-softnic" "$BUILD/softnicctl" >bin/softnicctl
chmod +x bin/softnicctl
while read -r line; do
	PATH=$T/bin:$PATH bash -euo pipefail -c "$line" </dev/null >out 2>&1 || fail "softnicctl(8): $line: $(<out)"
done <lines
stop_daemon

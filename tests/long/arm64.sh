#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tree for arm64, which is what hosts with GPUs are more and more: everything is built by Debian's cross compiler against the packages of
# that architecture, and what needs no more of a kernel than qemu-user gives is run: the unit tests of the modules below, among them every
# path of the checksums, and the simulation of the store.  Not run, because qemu-user has no io_uring and no O_DIRECT alignments to tell:
# the tests that open a store on a real file system, and programs.  As root, with the network, like the packages' tests (tests/vm/chroot.sh).
set -u
cd "$(dirname "$0")/../.." || exit 2
NAME=arm64
. tests/vm/chroot.sh
modules='base auth conf dialect s3doc stats token ring rdma'
to=build/arm64
scripts/deps arm64 || exit 1

# The packages' files, unpacked and not installed; anew once a month.
sysroot() {
	local root=$CACHE/arm64-$SUITE dev
	SYSROOT=$root
	mkdir -p "$CACHE"
	exec 9>"$CACHE/arm64.lock"
	flock 9
	dev=$(scripts/deps --names build test | tr ' ' '\n' | grep -e '-dev$' | paste -sd,)
	if [ "$(cat "$root/.made" 2>/dev/null)" = "$dev" ] && [ -n "$(find "$root/.made" -mtime -30)" ]; then return; fi
	_mirror
	rm -rf "$root" "$root.tmp"
	mmdebstrap --variant=extract --architectures=arm64 --mode=root --include="$dev" "$SUITE" "$root.tmp" "$MIRROR" \
		>"$CACHE/mmdebstrap.log" 2>&1 || die "mmdebstrap: $(tail -n 3 "$CACHE/mmdebstrap.log")"
	echo "$dev" >"$root.tmp/.made"
	mv "$root.tmp" "$root"
}
sysroot

export PKG_CONFIG_SYSROOT_DIR=$SYSROOT
export PKG_CONFIG_LIBDIR=$SYSROOT/usr/lib/aarch64-linux-gnu/pkgconfig:$SYSROOT/usr/share/pkgconfig
make --no-print-directory -s -j2 CC="aarch64-linux-gnu-gcc --sysroot=$SYSROOT" AR=aarch64-linux-gnu-ar O="$to" all testbins bench-bin ||
	die "the tree does not build for arm64"
for f in gantryd gantry libgantry.so.0 unit/base/test_crc64; do
	file=$(LC_ALL=C readelf -h "$to/$f" | sed -n 's/ *Machine: *//p')
	[ "$file" = AArch64 ] || die "$f is for '$file'"
done

export QEMU_LD_PREFIX=$SYSROOT BUILD=$to
ran=0 failed=0
run() {
	ran=$((ran + 1))
	timeout 600 qemu-aarch64 "$@" >"$to/test.log" 2>&1 && return
	failed=$((failed + 1))
	echo "$NAME: FAIL: $*"
	tail -n 30 "$to/test.log"
}
for m in $modules; do
	for t in tests/unit/"$m"/test_*.c; do
		t=${t#tests/unit/} t=${t%.c}
		grep -qx "$t" tests/unit/on-nic || run "$to/unit/$t"
	done
done
run "$to/unit/base/test_crc64"
grep -q '^chosen: pmull$' "$to/test.log" || die "the checksum does not use the CPU's carry-less product: $(grep chosen "$to/test.log")"
run "$to/sim/sim" --histories 300
[ "$("$(command -v qemu-aarch64)" "$to/gantryd" --version | head -n 1)" = "gantryd $(cat VERSION)" ] || die "gantryd --version"
[ $ran -gt 40 ] || die "only $ran tests"
echo "$ran programs on arm64, $failed failed"
[ $failed = 0 ]

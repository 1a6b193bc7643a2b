#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make install DESTDIR=: what is installed works from there; a program compiles against the library by pkg-config.
. "$(dirname "$0")/lib.sh"
case $BUILD in */release) ;; *) skip "only the release build is installed" ;; esac
installed() { make -C "$ROOT" -s "$1" "DESTDIR=$T/$2" PREFIX=/usr >"$T/out" 2>&1 || { cat "$T/out"; fail "make $1"; }; }
installed install root
R=$T/root
"$R/usr/sbin/gantryd" --version | grep -q "$(<"$ROOT/VERSION")" || fail "gantryd"
LD_LIBRARY_PATH=$R/usr/lib "$R/usr/bin/gantry" --version | grep -q "$(<"$ROOT/VERSION")" || fail "gantry"
for f in etc/gantry/gantryd.yaml usr/include/gantry.h usr/lib/libgantry.so.0 usr/lib/systemd/system/gantryd.service \
	usr/lib/systemd/system/gantryd.socket usr/lib/sysusers.d/gantry.conf usr/lib/tmpfiles.d/gantry.conf \
	usr/share/man/man8/gantryd.8 usr/share/man/man1/gantry.1 usr/share/man/man5/gantryd.yaml.5 usr/share/man/man3/libgantry.3; do
	[ -s "$R/$f" ] || fail "$f is not installed"
done
# The software NIC is test equipment: it has a target of its own, and no program finds it but through with-softnic.
[ -z "$(find "$R" -name '*softnic*' -o -name 'libibverbs*')" ] || fail "the software NIC was installed"
"$R/usr/sbin/gantryd" -c "$R/etc/gantry/gantryd.yaml" --check-config -o cores=1 >/dev/null || fail "the installed example is not good"
cat >"$T/p.c" <<'END'
#include <gantry.h>
#include <stdio.h>
int main(void) { printf("%s\n", gantry_version()); return 0; }
END
flags=$(PKG_CONFIG_PATH=$R/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$R pkg-config --cflags --libs libgantry) || fail "pkg-config"
# shellcheck disable=SC2086
gcc -o "$T/p" "$T/p.c" $flags -L"$R/usr/lib" || fail "compiling against libgantry"
assert_eq "$(LD_LIBRARY_PATH=$R/usr/lib "$T/p")" "$(<"$ROOT/VERSION")"
installed install-softnic soft
N=$T/soft
sed "s|^installed=|&$N|" "$N/usr/bin/with-softnic" >"$T/with-softnic"
assert_match "$(BUILD='' SOFTNIC_DIR=$T/nicdir sh "$T/with-softnic" "$R/usr/sbin/gantryd" --list-devices)" mlx5_0

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# libgantry as others meet it: the header in C and C++, pkg-config, the shared library and its exports.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build/release}
T=$(mktemp -d "${TMPDIR:-/tmp}/gantry-header.XXXXXX")
trap 'rm -rf "$T"' EXIT
fail() { echo "client_header: FAIL: $*" >&2; exit 1; }

# A staged installation of the library alone.
mkdir -p "$T/include" "$T/lib/pkgconfig"
cp src/client/gantry.h "$T/include/"
cp "$BUILD/libgantry.so.0" "$T/lib/" || fail "libgantry.so.0"
ln -s libgantry.so.0 "$T/lib/libgantry.so"
sed -e "s|@PREFIX@|$T|;s|@LIBDIR@|$T/lib|;s|@VERSION@|$(<VERSION)|" src/client/libgantry.pc.in >"$T/lib/pkgconfig/libgantry.pc"
cat >"$T/use.c" <<'END'
#include <gantry.h>
#include <stdio.h>
int
main(void)
{
	struct gantry_options o = { sizeof o };
	struct gantry_result res = { sizeof res };
	struct gantry *g;

	o.config_file = "";
	if (gantry_open(&o, &g) != 0)
		return 1;
	if (gantry_put(g, "http://127.0.0.1:1/x", "abc", 3, NULL, &res) == 0)
		return 1;
	printf("%s %s\n", gantry_version(), res.message);
	gantry_close(g);
	return 0;
}
END
san=''
case $BUILD in *asan*) san=-fsanitize=address,undefined ;; *tsan*) san=-fsanitize=thread ;; esac
flags=$(PKG_CONFIG_PATH=$T/lib/pkgconfig pkg-config --cflags --libs libgantry) || fail pkg-config
for lang in "gcc -std=c99 -pedantic" "gcc -std=c17" "g++ -x c++ -std=c++11 -pedantic"; do
	command -v "${lang%% *}" >/dev/null || { echo "no ${lang%% *}"; continue; }
	# shellcheck disable=SC2086
	$lang -Wall -Wextra -Werror -Wno-missing-field-initializers "$T/use.c" -x none $san -o "$T/use" $flags "-Wl,-rpath,$T/lib" ||
		fail "$lang"
	"$T/use" | grep -q "^$(<VERSION) " || fail "the program of $lang"
done
readelf -d "$BUILD/libgantry.so" | grep -q 'SONAME.*libgantry\.so\.0' || fail soname
bad=$(nm -D --defined-only "$BUILD/libgantry.so" | awk '{ print $3 }' | grep -v '^gantry_\|^GANTRY_0\|san_\|^_\(edata\|end\|_bss_start\)')
[ -z "$bad" ] || fail "exports $bad"

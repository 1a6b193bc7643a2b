#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is installed: a folder of its own that nothing finds but through with-gantry-cuobject, from which programs are built with the link
# lines, pkg-config names and dlopen() names that they have (facts 8 and 10), beside files of the other one's names.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
NICS=1
export CUFILE_ENV_PATH_JSON='' CUOBJ_ENV_PATH_JSON=''
P=$T/prefix
(cd "$ROOT" && make -s install-client install-lib install-dev install-server install-server-dev install-cuobject install-cuobject-dev install-softnic PREFIX="$P" LIBDIR="$P/lib" VARIANT="${VARIANT:-release}") \
	>"$T/out" 2>&1 || fail "make install: $(cat "$T/out")"
assert_eq "$(cd "$P" && find lib/gantry/cuobject include/gantry -type f -o -type l | grep -v '\.h$' | sort | tr '\n' ' ')" \
	"lib/gantry/cuobject/libcufile.a lib/gantry/cuobject/libcuobjclient.so lib/gantry/cuobject/libcuobjclient.so.1 $(
		)lib/gantry/cuobject/libcuobjserver.so lib/gantry/cuobject/libcuobjserver.so.1 $(
		for v in client-13.1 client-13.2 client-13.3 server; do echo "lib/gantry/cuobject/pkgconfig/cuobj$v.pc"; done | tr '\n' ' ')"
with=$P/bin/with-gantry-cuobject
start_daemon
export LD_LIBRARY_PATH="$P/lib"
cd "$T" || exit 1
cp "$ROOT/tests/cuobject/round_trip.cpp" "$ROOT/tests/cuobject/play.hpp" "$ROOT/tests/cuobject/names.cpp" .
built() { # HOW COMMAND...
	local how=$1
	shift
	"$with" "$@" >out 2>&1 || fail "$how: $(cat out)"
	SOFTNIC_DIR=$SOFTNIC_DIR "$with" -s ./program "$S3" >out 2>&1 || fail "$how, run: $(cat out)"
	rm -f program
}
built "fact 10: -lcuobjclient -lcufile" g++ -o program round_trip.cpp -lcuobjclient -lcufile -lpthread
for v in 13.1 13.2 13.3; do
	flags=$("$with" pkg-config --cflags --libs "cuobjclient-$v") || fail "pkg-config cuobjclient-$v"
	# shellcheck disable=SC2086
	built "fact 10: pkg-config cuobjclient-$v" g++ -o program round_trip.cpp $flags
done
# Without the wrapper, by the name that is Gantry's own.
flags=$(PKG_CONFIG_PATH=$P/lib/pkgconfig pkg-config --cflags --libs gantry-cuobjclient) || fail "pkg-config gantry-cuobjclient"
# shellcheck disable=SC2086
g++ -o program round_trip.cpp $flags -Wl,-rpath-link,"$P/lib" >out 2>&1 || fail "gantry-cuobjclient: $(cat out)"
# The server's: api_server says what is set and got, and opens no device.
cp "$ROOT/tests/cuobject/api_server.cpp" .
for flags in "-lcuobjserver" "-lcuobjserver -lcuobjclient -lcufile" "$("$with" pkg-config --cflags --libs cuobjserver)"; do
	# shellcheck disable=SC2086
	"$with" g++ -o program api_server.cpp $flags >out 2>&1 || fail "server, $flags: $(cat out)"
	"$with" -s ./program >out 2>&1 || fail "server, $flags, run: $(cat out)"
done
flags=$(PKG_CONFIG_PATH=$P/lib/pkgconfig pkg-config --cflags --libs gantry-cuobjserver) || fail "pkg-config gantry-cuobjserver"
# shellcheck disable=SC2086
g++ -o program api_server.cpp $flags -Wl,-rpath-link,"$P/lib" >out 2>&1 || fail "gantry-cuobjserver: $(cat out)"
! ldconfig -p | grep -q libcuobjserver || fail "libcuobjserver is found without the wrapper"
g++ -o program names.cpp -ldl
for name in libcuobjclient.so libcuobjclient.so.1 "$P/lib/gantry/cuobject/libcuobjclient.so.1"; do
	"$with" -s ./program "$name" >out 2>&1 || fail "fact 8: dlopen $name: $(cat out)"
done
# Nothing finds it otherwise; another library of that name is found as before, and -p puts ours in front of it.
! ./program libcuobjclient.so.1 >out 2>&1 || fail "libcuobjclient.so.1 is found without the wrapper"
mkdir other
echo 'void nothing(void) { }' | gcc -shared -Wl,-soname,libcuobjclient.so.1 -o other/libcuobjclient.so.1 -x c -
! "$with" -s ./program "$T/other/libcuobjclient.so.1" >out 2>&1 || fail "another library is ours"
# `gantry doctor` says which one a program would get.
doctor() { BUILD='' "$@" "$P/bin/gantry" doctor >out 2>&1 || true; grep cuObject out; }
assert_eq "$(doctor "$with" | grep -o "Gantry's .*")" "Gantry's libcuobjclient.so.1: $P/lib/gantry/cuobject/libcuobjclient.so.1" "doctor"
assert_eq "$(doctor env LD_LIBRARY_PATH="$T/other:$BUILD/softnic:$P/lib" | grep -o "not Gantry's: [^;]*")" \
	"not Gantry's: $T/other/libcuobjclient.so.1" "doctor, another library"
doctor env | grep -q 'no libcuobjclient.so.1 in' || fail "doctor, no library: $(cat out)"
"$with" g++ -o program round_trip.cpp -lcuobjclient -lpthread -Wl,--disable-new-dtags,-rpath,"$T/other" >out 2>&1 || fail "rpath: $(cat out)"
! "$with" -s ./program "$S3" >out 2>&1 || fail "a folder that the program names comes after the wrapper's"
"$with" -p -s ./program "$S3" >out 2>&1 || fail "-p: $(cat out)"
assert_alive

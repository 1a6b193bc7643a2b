#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The headers: each alone, all together and twice, in C++11 to C++20, by both compilers where there are two; with and without cuda.h and
# cufile.h (fact 9); the release that a program asks for.
set -u
cd "$(dirname "$0")/../.." || exit 2
T=$(mktemp -d "${TMPDIR:-/tmp}/gantry-headers.XXXXXX")
trap 'rm -rf "$T"' EXIT
fail() { echo "headers: FAIL: $*" >&2; exit 1; }
mkdir "$T/cuda" "$T/cufile"
echo 'typedef struct CUctx_st *CUcontext;' >"$T/cuda/cuda.h"
echo 'typedef struct cufileRDMAInfo { int version; int desc_len; const char *desc_str; } cufileRDMAInfo_t;' >"$T/cufile/cufile.h"
cp "$T/cuda/cuda.h" "$T/cufile/"
headers=$(cd src/cuobject && echo *.h)
one() { # COMPILER STANDARD TEXT [FLAG...]
	local cxx=$1 std=$2 text=$3
	shift 3
	"$cxx" "-std=$std" -Wall -Wextra -Werror -fsyntax-only "$@" -Isrc/cuobject -x c++ - <<<"$text" >"$T/out" 2>&1 ||
		fail "$cxx -std=$std $*: $text: $(cat "$T/out")"
}
all=''
for h in $headers; do all+="#include <$h>"$'\n'; done
use='int main() { CUObjOps_t o = {}; cuObjClient c(o); cufileRDMAInfo_t i = {1, 82, ""}; cuObjServer s; cuObjRDMATunable t;
	return c.isConnected() + i.version + s.isConnected() + t.getNumDcis(); }'
for cxx in g++ clang++; do
	command -v "$cxx" >/dev/null || continue
	for std in c++11 c++14 c++17 c++20; do
		for h in $headers; do one "$cxx" "$std" "#include <$h>"; done
		one "$cxx" "$std" "$all$all$use"
		one "$cxx" "$std" "$all$use" -fno-exceptions
		one "$cxx" "$std" "${all}CUcontext context; $use" -I"$T/cuda"
		one "$cxx" "$std" "${all}CUcontext context; $use" -I"$T/cufile"
	done
done
one g++ c++11 '#include <cuobjclient.h>
static_assert(CUOBJ_CLIENT_MAJOR_VERSION == 1 && CUOBJ_CLIENT_MINOR_VERSION == 3, "");' -DGANTRY_CUOBJ_LEVEL=13
one g++ c++11 '#include <cuobjclient.h>
static_assert(CUOBJ_CLIENT_MAJOR_VERSION == 2 && CUOBJ_CLIENT_MINOR_VERSION == 0, "");' -DGANTRY_CUOBJ_LEVEL=20
one g++ c++11 '#include <cuobjserver.h>
static_assert(CUOBJ_SERVER_MAJOR_VERSION == 1 && CUOBJ_SERVER_MINOR_VERSION == 2, "");' -DGANTRY_CUOBJ_LEVEL=12

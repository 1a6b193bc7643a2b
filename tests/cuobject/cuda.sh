#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Memory of a GPU in cuObject's shape, with a stand-in of CUDA's driver: no instruction of the CPU touches it, or the program ends.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
NICS=2
export CUFILE_ENV_PATH_JSON='' CUOBJ_ENV_PATH_JSON=''
mkdir "$T/cuda"
gcc -std=gnu17 -D_GNU_SOURCE -shared -fPIC -Wall -Wextra -Werror -Wl,-soname,libcuda.so.1 -o "$T/cuda/libcuda.so.1" "$ROOT/tests/gpu/cuda_standin.c" >"$T/out" 2>&1 || fail "cuda_standin.c: $(cat "$T/out")"
start_daemon
nic "$ROOT/scripts/with-gantry-cuobject" env "LD_LIBRARY_PATH=$BUILD/cuobject:$BUILD:$BUILD/softnic:$T/cuda" "$BUILD/cuobject-tests/cuda" "$S3" ||
	fail "exit $?"
nic "$ROOT/scripts/with-gantry-cuobject" env "LD_LIBRARY_PATH=$BUILD/cuobject:$BUILD:$BUILD/softnic:$T/cuda" GANTRY_STAGE=1048576 SOFTNIC_RETRY_US=20000 \
	"$BUILD/cuobject-tests/cuda_staged" "$S3" || fail "staged: exit $?"
assert_alive

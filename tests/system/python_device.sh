#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python module with memory of a GPU: what each interface of an array says (python_layout.py), and transfers against the real daemon
# with a stand-in of the driver (cuda_standin.c) whose memory no CPU can touch (python_device.py): by RDMA as a dma-buf; where none can
# be registered, staged; over HTTP.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("numpy"))' || fail "no python3-numpy: scripts/deps test"
unset "${!AWS_@}"
export PYTHONPATH=$ROOT/python PYTHONDONTWRITEBYTECODE=1 GANTRY_LIBRARY=$BUILD/libgantry.so.0 PYTHONWARNINGS=error
/usr/bin/python3 "$ROOT/tests/system/python_layout.py" >"$T/out" 2>&1 || fail "python_layout.py: $(<"$T/out")"
mkdir "$T/cuda"
cp "$BUILD/tests/gpu/libcuda.so.1" "$T/cuda" || fail "no stand-in: make toolbins"
DISK_SIZE=1536MiB start_daemon
export URL_S3 STAND_IN=$T/cuda/libcuda.so.1
# Large buffers of Python come and go: freed memory is kept, since fresh pages, which the kernel clears, were a third of the CPU time.
tunables=glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296:glibc.malloc.hugetlb=1
device() { nic env GLIBC_TUNABLES=$tunables "${@:2}" /usr/bin/python3 "$ROOT/tests/system/python_device.py" "$1" || fail "python_device.py $1"; }
device rdma CUDA_STANDIN=map=1
device rdma-staged CUDA_STANDIN=export=801
device http
no_requests || fail "requests are left"
assert_alive

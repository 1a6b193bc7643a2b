#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory of a device that only its driver can move (t_cuda), in thread and in inline mode, without SOFTNIC_CUDA, and registered by its
# address alone; and that nothing else changes with SOFTNIC_CUDA=1 (t_xfer).  The driver is the stand-in of tests/gpu, or with CUDA=real
# the machine's.  BUILD names the build.
. "$(dirname "$0")/fabric.sh"
rc=0
if [ "${CUDA:-}" != real ]; then
	mkdir "$SOFTNIC_DIR/cuda"
	cp "$BUILD/tests/gpu/libcuda.so.1" "$SOFTNIC_DIR/cuda"
	export LD_LIBRARY_PATH="$SOFTNIC_DIR/cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
t=$BUILD/softnic-tests/t_cuda
for mode in thread inline; do
	export SOFTNIC_EXEC=$mode
	echo "== t_cuda, SOFTNIC_EXEC=$mode"
	SOFTNIC_CUDA=1 scripts/with-softnic "$t" || rc=1
	SOFTNIC_CUDA=1 scripts/with-softnic "$BUILD/softnic-tests/t_xfer" || rc=1
done
scripts/with-softnic "$t" --off || rc=1
SOFTNIC_CUDA=1 SOFTNIC_PEER_MEM=1 scripts/with-softnic "$t" --peer || rc=1
echo '== t_cuda, SOFTNIC_PIN=frames'
SOFTNIC_CUDA=1 SOFTNIC_PIN=frames scripts/with-softnic "$t" || rc=1
exit $rc

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package, installed from the tree by pip without the network: docs/python.md as it stands there, and PyTorch
# (python_torch.py).
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
unset "${!AWS_@}"
/usr/bin/python3 -c 'import torch' 2>/dev/null || fail "no python3-torch: scripts/deps torch"
cp -r "$ROOT/python" "$T/source"
/usr/bin/python3 -m venv --system-site-packages "$T/venv" >"$T/pip" 2>&1 || fail "venv: $(cat "$T/pip")"
"$T/venv/bin/pip" install --no-build-isolation --no-index "$T/source" >"$T/pip" 2>&1 || fail "pip: $(cat "$T/pip")"
site=$("$T/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
assert_eq "$("$T/venv/bin/python" -c 'import gantry, importlib.metadata as m; print(gantry.__file__, m.version("gantry"))')" \
	"$site/gantry/__init__.py $(cat "$ROOT/VERSION")"
[ -e "$site/gantry/py.typed" ] || fail "the types are not installed"

# A listener for signed requests besides, on a software NIC: the page is followed there, word for word.
echo "- { access_key: AKIACLIENTTEST, secret_key: client/Secret+0123456789 }" >"$T/keys.yaml"
chmod 0600 "$T/keys.yaml"
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }' MORE="auth: { credentials_file: \"$T/keys.yaml\" }" DISK_SIZE=2GiB
start_daemon
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
export URL_S3 T GANTRY_LIBRARY=$BUILD/libgantry.so.0 PYTHONDONTWRITEBYTECODE=1

# What each section prints, in its order; none of it says "http".
declare -A says=(
	["Put and get"]="*put by rdma*Hello, world by rdma*world*12 of 12 bytes, ETag *"
	["Buffers"]="*registered*rdma*rdma*rdma*\[1. 2. 3.\]*"
	["Memory of a GPU"]="*put by rdma*True 0*True by {'rdma'}*"
	["Files"]="*bytes by rdma*4999950000*"
	["PyTorch"]="*bytes by rdma*4000008 bytes by rdma*True 7*"
	["Lists, copies, buckets"]="*greeting 12*weights/ ...*\['old/weights/0', 'old/weights/1', 'old/weights/2'\]*'from-python'*"
)
mapfile -t sections < <("$ROOT/scripts/recipe" -p "$ROOT/docs/python.md" --list)
assert_eq "${#sections[@]}" ${#says[@]} "sections of docs/python.md"
for section in "${sections[@]}"; do
	"$ROOT/scripts/recipe" -p "$ROOT/docs/python.md" "$section" "$T/home" "HOST:9000=$SIGNED" ACCESS_KEY=AKIACLIENTTEST \
		SECRET_KEY=client/Secret+0123456789 || fail "docs/python.md has no section $section"
	(cd "$T/home" && PATH=$T/venv/bin:$PATH HOME=$T/home nic bash -eu recipe.sh) >"$T/said" 2>&1 || fail "$section: $(cat "$T/said")"
	said=$(tr '\n' ' ' <"$T/said")
	# shellcheck disable=SC2053
	[[ $said == ${says[$section]} && $said != *http* ]] || fail "$section says: $said"
done

nic "$T/venv/bin/python" "$ROOT/tests/clients/python_torch.py" || fail "python_torch.py"
# Tensors on a GPU: a stand-in of its driver.
gcc -std=gnu17 -D_GNU_SOURCE -shared -fPIC -Wl,-soname,libcuda.so.1 -Wall -Wextra -Werror -o "$T/libcuda.so.1" \
	"$ROOT/tests/gpu/cuda_standin.c" -lpthread >"$T/out" 2>&1 || fail "cuda_standin.c: $(cat "$T/out")"
nic env CUDA_STANDIN=map=1 STAND_IN="$T/libcuda.so.1" PYTHONPATH="$ROOT/tests/system" "$T/venv/bin/python" "$ROOT/tests/clients/python_torch_device.py" ||
	fail "python_torch_device.py"
no_requests || fail "requests are left"
assert_alive

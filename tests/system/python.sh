#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python module over libgantry against the real daemon, with Debian's Python and numpy (python_client.py): by RDMA and over HTTP,
# whatever has the buffer protocol, errors, threads, the interpreter lock, fork, the end of the program.  What it says of structs and
# calls is what the header says (python_abi.py).
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("numpy"))' || fail "no python3-numpy: scripts/deps test"
unset "${!AWS_@}"
export PYTHONPATH=$ROOT/python PYTHONDONTWRITEBYTECODE=1 GANTRY_LIBRARY=$BUILD/libgantry.so.0 PYTHONWARNINGS=error
/usr/bin/python3 "$ROOT/tests/system/python_abi.py" "$ROOT/src/client/gantry.h" >"$T/abi" || fail "the module and gantry.h differ: $(<"$T/abi")"
assert_eq "$(/usr/bin/python3 -c 'import gantry; print(gantry.__version__, gantry.library_version())')" "$(<"$ROOT/VERSION") $(<"$ROOT/VERSION")"
# A library that is not there, or is another one, is said as such.
assert_match "$(GANTRY_LIBRARY=$T/none.so /usr/bin/python3 -c 'import gantry; gantry.Client()' 2>&1)" "ImportError: $T/none.so: .*: install libgantry0"
assert_match "$(GANTRY_LIBRARY=libcurl.so.4 /usr/bin/python3 -c 'import gantry; gantry.Client()' 2>&1)" "ImportError: libcurl.so.4 is no libgantry that fits"

echo "- { access_key: AKIAPYTHON, secret_key: python/Secret }" >"$T/keys.yaml"
chmod 0600 "$T/keys.yaml"
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }' MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
start_daemon
URL_SIGNED=http://$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
export URL_S3 URL_SCAL URL_SIGNED T
nic /usr/bin/python3 "$ROOT/tests/system/python_client.py" || fail "python_client.py"
no_requests || fail "requests are left"
assert_alive

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Clients of a server whose certificate is signed by an authority that the system does not know: --ca, AWS_CA_BUNDLE, and ca_file of Python. A
# certificate that is not signed by the file's is refused, and a file that cannot be read is named before anything is sent.
NO_NIC=1
. "$(dirname "$0")/lib.sh"
authority() { # NAME
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "/CN=authority $1" \
		-addext basicConstraints=critical,CA:TRUE -keyout "$T/$1.key" -out "$T/$1.crt" 2>"$T/openssl" || fail "$(<"$T/openssl")"
}
authority ours
authority other
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=server -keyout "$T/server.key" -out "$T/server.csr" 2>"$T/openssl" &&
	openssl x509 -req -in "$T/server.csr" -CA "$T/ours.crt" -CAkey "$T/ours.key" -CAcreateserial -days 30 \
		-extfile <(echo subjectAltName=IP:127.0.0.1) -out "$T/server.crt" 2>"$T/openssl" || fail "$(<"$T/openssl")"
chmod 0600 "$T/server.key"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true }
  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/server.crt\", tls_key: \"$T/server.key\" }"
start_daemon
url=https://$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")/bkt
bytes pattern:1 3000000 >"$T/in"
unset AWS_CA_BUNDLE
ask() { rm -f "$T/out"; "$BUILD/gantry" --no-rdma "$@" >"$T/said" 2>&1; }
refused() { # TEXT WORD...: it fails and says so
	! ask "${@:2}" || fail "$*: it was done"
	grep -q "$1" "$T/said" || fail "$*: $(<"$T/said")"
}

refused certificate put "$T/in" "$url/o"
refused certificate --ca "$T/other.crt" put "$T/in" "$url/o"
ask --ca "$T/ours.crt" put "$T/in" "$url/o" || fail "--ca: $(<"$T/said")"
AWS_CA_BUNDLE=$T/ours.crt ask get "$url/o" "$T/out" || fail "AWS_CA_BUNDLE: $(<"$T/said")"
assert_same "$T/out" "$T/in" "AWS_CA_BUNDLE"
AWS_CA_BUNDLE=$T/ours.crt refused certificate --ca "$T/other.crt" get "$url/o" "$T/out"
AWS_CA_BUNDLE=$T/other.crt ask --ca "$T/ours.crt" get "$url/o" "$T/out" || fail "--ca goes before AWS_CA_BUNDLE: $(<"$T/said")"
refused "certificates: $T/none.crt: No such file" --ca "$T/none.crt" get "$url/o" "$T/out"
: >"$T/empty.crt"
refused "certificates: $T/empty.crt: the file is empty" --ca "$T/empty.crt" get "$url/o" "$T/out"
AWS_CA_BUNDLE=$T/none.crt refused "AWS_CA_BUNDLE: $T/none.crt: No such file" get "$url/o" "$T/out"
echo "no certificate" >"$T/text.crt"
refused "$T/text.crt\|certificate" --ca "$T/text.crt" get "$url/o" "$T/out"

# Python, which has the library's own words.
GANTRY_LIBRARY=$BUILD/libgantry.so.0 PYTHONPATH=$ROOT/python PYTHONDONTWRITEBYTECODE=1 AWS_CA_BUNDLE='' /usr/bin/python3 - "$url" "$T/in" "$T/ours.crt" "$T/other.crt" <<-'END' || fail "Python"
	import os, sys
	import gantry
	url, path, ours, other = sys.argv[1:]
	data = open(path, "rb").read()
	with gantry.Client(url, rdma=False, ca_file=ours) as c:
	    got = bytearray(len(data))
	    c.get_into("o", got)
	    assert got == data
	os.environ["AWS_CA_BUNDLE"] = ours
	with gantry.Client(url, rdma=False) as c:
	    c.get_into("o", got)
	for ca in (other, "/nonexistent/ca"):
	    try:
	        with gantry.Client(url, rdma=False, ca_file=ca) as c:
	            c.get_into("o", got)
	    except Exception as e:
	        assert "certificate" in str(e), e
	    else:
	        raise SystemExit(f"{ca} was taken")
END

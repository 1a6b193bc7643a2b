# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Helpers of the client tests: the daemon with signed requests only, and every packaged client's settings.  They call Debian's
# programs by their full paths: PATH may have others.
#   QUICK=1   what make check has time for: small files
#   BIG       bytes of the large files (100 MiB, or 12 MiB when quick)
# shellcheck source=tests/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"
QUICK=${QUICK:-}
BIG=$((100 << 20))
[ -z "$QUICK" ] || BIG=$((12 << 20))
DISK_SIZE=${DISK_SIZE:-2GiB}

need() { [ -x "$1" ] || fail "no $1: scripts/deps clients"; }

# Starts the daemon.  S3 is then a listener for signed requests alone, URL_TLS (with TLS=1) the same over HTTPS, whose
# certificate is in $T/tls.crt.
clients_daemon() {
	echo "- { access_key: AKIACLIENTTEST, secret_key: client/Secret+0123456789 }" >"$T/keys.yaml"
	chmod 0600 "$T/keys.yaml"
	LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
	if [ -n "${TLS:-}" ]; then
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost \
			-addext subjectAltName=IP:127.0.0.1 -keyout "$T/tls.key" -out "$T/tls.crt" 2>"$T/openssl.log" ||
			fail "openssl: $(cat "$T/openssl.log")"
		chmod 0600 "$T/tls.key"
		LISTEN=$LISTEN$'\n'"  - { address: \"127.0.0.1:0\", dialect: s3, tls_certificate: \"$T/tls.crt\", tls_key: \"$T/tls.key\" }"
	fi
	MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
	BUCKETS='' NO_NIC=1 RDMA='{ devices: none }'
	start_daemon
	if [ -n "${TLS:-}" ]; then
		URL_TLS=https://$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
		S3=$(sed 's/ s3=[^ ]* admin=.*//; s/.* s3=//' "$T/ready")
	else
		S3=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
	fi
	URL_S3=http://$S3
	unset "${!AWS_@}" HTTP_PROXY HTTPS_PROXY http_proxy https_proxy ALL_PROXY all_proxy
	export NO_PROXY='*' HOME=$T LC_ALL=C.UTF-8
	export AWS_ACCESS_KEY_ID=AKIACLIENTTEST AWS_SECRET_ACCESS_KEY=client/Secret+0123456789 AWS_DEFAULT_REGION=us-east-1
	export AWS_EC2_METADATA_DISABLED=true AWS_MAX_ATTEMPTS=1 URL_S3 S3 QUICK BIG T
}

# Files with names that clients get wrong: blanks, quotes, percent signs, plus, unicode, dots, very long.
odd_files() { # DIR
	local name i=0
	mkdir -p "$1/sub dir/deeper" "$1/ünï"
	for name in plain.txt 'with blank' 'plus+and%25percent' 'amp&eq=x' "quote'single" 'semi;comma,colon:' 'ünï/cödé ☃.bin' \
		'sub dir/deeper/file' '.hidden' 'tilde~(paren)[bracket]{brace}' '日本語' "$(printf 'long%.0s' $(seq 50))"; do
		i=$((i + 1))
		bytes pattern:$i $((i * i * 517)) >"$1/$name"
	done
	: >"$1/empty"
}

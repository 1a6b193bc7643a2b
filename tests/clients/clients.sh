# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Helpers of the client tests: the daemon with signed requests only, and every packaged client's settings.  They call Debian's
# programs by their full paths: PATH may have others.
#   QUICK=1   what make check has time for: small files
#   BIG       bytes of the large files (100 MiB, or 12 MiB when quick)
# shellcheck source=tests/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"
QUICK=${QUICK:-} SIGV2=${SIGV2:-}
BIG=$((100 << 20))
[ -z "$QUICK" ] || BIG=$((12 << 20))
DISK_SIZE=${DISK_SIZE:-2GiB}

# What npm is told on this machine, a line each, for environments that have nothing else of it.  Before clients_daemon, which sets HOME.
npm_settings() {
	env | grep -i '^npm_config_'
	printf 'npm_config_%s\n' "userconfig=$(npm config get userconfig)" "cache=$(npm config get cache)"
}

need() { [ -x "$1" ] || fail "no $1: scripts/deps clients"; }

# Starts the daemon.  S3 is then a listener for signed requests alone, URL_TLS (with TLS=1) the same over HTTPS, whose
# certificate is in $T/tls.crt.  WITH_NIC=1: it has a software NIC.  GRANTS='[...]': of
# the access key, which may do everything without.  SIGV2=presigned: URLs and forms that are signed by version 2 are taken.
clients_daemon() {
	echo "- { access_key: AKIACLIENTTEST, secret_key: client/Secret+0123456789${GRANTS:+, grants: $GRANTS} }" >"$T/keys.yaml"
	chmod 0600 "$T/keys.yaml"
	LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
	if [ -n "${TLS:-}" ]; then
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost \
			-addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout "$T/tls.key" -out "$T/tls.crt" 2>"$T/openssl.log" ||
			fail "openssl: $(cat "$T/openssl.log")"
		chmod 0600 "$T/tls.key"
		LISTEN=$LISTEN$'\n'"  - { address: \"127.0.0.1:0\", dialect: s3, tls_certificate: \"$T/tls.crt\", tls_key: \"$T/tls.key\" }"
	fi
	MORE="auth: { credentials_file: \"$T/keys.yaml\"${SIGV2:+, sigv2: $SIGV2} }"
	BUCKETS=''
	[ -n "${WITH_NIC:-}" ] || NO_NIC=1 RDMA='{ devices: none }'
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
	export AWS_EC2_METADATA_DISABLED=true AWS_MAX_ATTEMPTS=1 URL_S3 S3 QUICK BIG T SIGV2
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

# Follows a section of docs/recipes.md to the letter, in $T/home, which is HOME then; words are more placeholders (WORD=VALUE).  What was
# said is in $T/followed.  Nothing of this machine's settings reaches the programs, and of its PATH only Debian's and ours.  ENVIRONMENT=(A=B) adds
# to their environment, FOLLOW=(runuser -u nobody --) puts words in front of the shell.
follow() { # SECTION [WORD=VALUE...]
	followed "$@" || { tail -n 60 "$T/followed"; fail "the recipe '$1' as it stands in docs/recipes.md"; }
}
followed() {
	local home=$T/home group rc
	mkdir -p "$home"
	"$ROOT/scripts/recipe" "$1" "$home" "${@:2}" "HOST:9000=$S3" "ACCESS_KEY=$AWS_ACCESS_KEY_ID" "SECRET_KEY=$AWS_SECRET_ACCESS_KEY" ||
		fail "the page has no such recipe: $1"
	set -m
	(
		cd "$home" || exit 1
		PATH=/usr/sbin:/usr/bin:/sbin:/bin:$BUILD
		exec env -i PATH="$PATH" HOME="$home" LC_ALL=C.UTF-8 NO_PROXY='*' AWS_EC2_METADATA_DISABLED=true "${ENVIRONMENT[@]}" \
			"${FOLLOW[@]}" bash -eux recipe.sh
	) >"$T/followed" 2>&1 &
	group=$!
	set +m
	wait $group
	rc=$?
	# What a recipe that failed has left running.
	kill -KILL -- -$group 2>/dev/null
	return $rc
}

# The same with a wrong secret: it fails, and says the text that the page quotes.
refused() { # TEXT SECTION [WORD=VALUE...]
	! AWS_SECRET_ACCESS_KEY=wrong followed "${@:2}" || fail "$2 took a wrong secret"
	grep -qF "$1" "$T/followed" || fail "$2 with a wrong secret does not say \"$1\": $(tail -n 20 "$T/followed")"
	awk -v s="## $2" '/^## / { on = $0 == s } on' "$ROOT/docs/recipes.md" | tr '\n' ' ' | sed 's/   */ /g' | grep -qF "$1" ||
		fail "docs/recipes.md, $2, does not have \"$1\""
}

# What the recipes copy: a file of several parts and a tree with names that clients get wrong.
recipe_files() {
	mkdir -p "$T/home"
	bytes pattern:5 $((BIG / 5 + 54321)) >"$T/home/big"
	odd_files "$T/home/tree"
}

# An object as curl sees it, for what another client has stored; words for curl.
signed_curl() { curl -sS --fail --aws-sigv4 aws:amz:us-east-1:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" "${@:2}" "$URL_S3/$1"; }

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where the tests of the packages have a Debian system from (tests/vm/chroot.sh): the sources of this machine's apt in both of their forms,
# or a word about what is missing; no host of ours.
. "$(dirname "$0")/lib.sh"
command -v apt-get >/dev/null || skip "no apt here"
mkdir -p "$T/parts" "$T/lists/partial"
export APT_CONFIG=$T/apt.conf
conf() { printf '%s\n' "Dir::Etc::sourcelist \"$T/list\";" "Dir::Etc::sourceparts \"$T/parts\";" "Dir::State::lists \"$T/lists\";" "$@" >"$APT_CONFIG"; }
# mirror: what chroot.sh takes, and the proxy; sources are in $T/list and $T/parts.
mirror() {
	env -u http_proxy -u GANTRY_MIRROR "$@" bash -c 'NAME=test . "$0/tests/vm/chroot.sh"; NAME=test; _mirror; echo "$MIRROR ${http_proxy:-none}"' "$ROOT" 2>"$T/err"
}
conf
: >"$T/list"
cat >"$T/parts/a.sources" <<-END
	Types: deb
	URIs: http://security.test/debian-security
	Suites: bookworm-security
	Components: main

	Types: deb deb-src
	# a comment
	URIs: http://one.test/pub/archive/
	Suites: bookworm-updates bookworm
	Components: main contrib
END
assert_eq "$(mirror)" "http://one.test/pub/archive/ none" "deb822"
assert_eq "$(mirror GANTRY_MIRROR=http://other.test/d)" "http://other.test/d none" "GANTRY_MIRROR"
rm "$T"/parts/*
echo "deb [arch=amd64 trusted=yes] https://two.test/debian bookworm main" >"$T/list"
conf 'Acquire::http::Proxy "http://proxy.test:3128";'
assert_eq "$(mirror)" "https://two.test/debian/ http://proxy.test:3128" "one line"
conf 'Acquire::http::Proxy "DIRECT";'
printf '%s\n' "deb http://newer.test/debian trixie main" "deb http://right.test/x bookworm main" "deb http://right.test/security bookworm-security main" >"$T/list"
assert_eq "$(mirror)" "http://right.test/x/ none" "the suite goes first"
sed -i /bookworm/d "$T/list"
assert_eq "$(mirror)" "http://newer.test/debian/ none" "the archive of another Debian"
# Nothing that would do: said, with what to do.
printf '%s\n' "deb http://x.test/ubuntu noble main" "deb http://x.test/debian-security trixie-security main" "deb file:/srv/debian bookworm main" >"$T/list"
out=$(mirror) && fail "taken: $out"
assert_match "$(<"$T/err")" 'apt here has no source of Debian.*GANTRY_MIRROR=URL'
! grep -rnE 'https?://[a-z0-9.-]*(debian|ubuntu)\.(org|com|net)' "$ROOT/scripts" "$ROOT/tests" --include='*' | grep -v '/tests/system/mirror.sh:' ||
	fail "the host of a mirror is in a script"

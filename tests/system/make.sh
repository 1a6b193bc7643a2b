#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a user hands to make: CPPFLAGS, CFLAGS and LDFLAGS are added to ours and come last, from the command line and from the environment;
# CC is the user's.  Nothing is built here: make says what it would do (-n).
. "$(dirname "$0")/lib.sh"
cd "$ROOT" || fail "no $ROOT"

# commands WORD...: what make, with these words (assignments first), would run for an object and for the daemon.
commands() {
	env -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u CC -u CPPFLAGS -u CFLAGS -u LDFLAGS -u VARIANT -u O "$@" >"$T/out" 2>&1 || { cat "$T/out"; fail "$*"; }
	compile=$(grep -m 1 -E ' -c -o [^ ]*/src/base/log\.o src/base/log\.c$' "$T/out") || { cat "$T/out"; fail "no compiler in $*"; }
	link=$(grep -m 1 -E ' -o [^ ]*/gantryd ' "$T/out") || { cat "$T/out"; fail "no link in $*"; }
}
would='make -n --no-print-directory -W src/base/log.c'
goal() { echo "build/$1/src/base/log.o build/$1/gantryd"; }
# in_order TEXT WORD...: each word, once, in this order.
in_order() {
	local text=$1 what=$2 rest w
	shift 2
	rest=" $text "
	for w in "$@"; do
		[[ $rest == *" $w "* ]] || fail "$what: $w is missing, or not in order, in: $text"
		rest=" ${rest#*" $w "}"
		[[ $rest != *" $w "* ]] || fail "$what: $w is there twice: $text"
	done
}
ours=(-Isrc -MMD -std=c17 -O2 -Wall)

# shellcheck disable=SC2046
commands $would $(goal release)
in_order "$compile" "no words" gcc "${ours[@]}"
in_order "$link" "no words" gcc -o

user=('CPPFLAGS=-DX_CPP -UY_CPP' 'CFLAGS=-O0 -DX_C' 'LDFLAGS=-Wl,-z,now -Wl,-z,relro')
has_all() {
	in_order "$compile" "$1" gcc -Isrc -DX_CPP -UY_CPP -std=c17 -Wall -O0 -DX_C -c
	in_order "$compile" "$1" "${ours[@]}" -O0
	in_order "$link" "$1" gcc -Wl,-z,now -Wl,-z,relro -o
}
# shellcheck disable=SC2046
commands $would "${user[@]}" $(goal release)
has_all "on the command line"
# shellcheck disable=SC2046
commands "${user[@]}" $would $(goal release)
has_all "in the environment"

# A variant keeps its own; a make below a make is given what the user gave, and nothing of another variant.
printf 'include Makefile\n.PHONY: below\nbelow:\n\t+@$(MAKE) %s VARIANT=asan %s\n' "${would#make }" "$(goal asan)" >"$T/below.mk"
for how in "env:${user[1]}" "make:${user[1]}"; do
	if [ "${how%%:*}" = env ]; then commands "${how#*:}" make -f "$T/below.mk" below; else commands make -f "$T/below.mk" "${how#*:}" below; fi
	in_order "$compile" "asan below a make, $how" gcc -Isrc -O1 -fsanitize=address,undefined -Wall -O0 -DX_C
	[[ " $compile " != *" -O2 "* ]] || fail "release flags in asan: $compile"
	in_order "$link" "asan below a make, $how" gcc -fsanitize=address,undefined -o
done

# shellcheck disable=SC2046
commands $would CC=some-cc $(goal release)
in_order "$compile" "CC on the command line" some-cc -std=c17
in_order "$link" "CC on the command line" some-cc -o
# shellcheck disable=SC2046
commands CC=some-cc $would $(goal release)
in_order "$compile" "CC in the environment" some-cc -std=c17

# One unit program, and the unit tests of one word: nothing else is built for them, and nothing is installed.
would() { env -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES make -n --no-print-directory "$@" 2>&1; }
out=$(would VARIANT=asan t/base/test_span)
[[ $out == *"scripts/run-unit --variant asan base/test_span"* ]] || fail "make t/base/test_span: $out"
[[ $out != *" -c -o "*/src/conf/* ]] || fail "make t/base/test_span builds what is not below base: $out"
out=$(would t/rdma/test_open)
assert_match "$out" 'scripts/run-unit --variant release rdma/test_open'
out=$(would O="$T/none" check-unit T=token)
assert_match "$out" "$T/none/unit/token/test_token "
[[ $out != *"$T/none/unit/base/"* && $out != *"$T/none/fuzz/"* ]] || fail "make check-unit T=token builds more: $out"
[ -z "$(grep scripts/deps <<<"$out" | grep -v -- --check)" ] || fail "make check-unit installs: $out"
variant=$(basename "$BUILD")
scripts/run-unit --variant "$variant" base/test_span >"$T/out" 2>&1 || { cat "$T/out"; fail "run-unit base/test_span"; }
grep -q 'PASSED' "$T/out" || fail "run-unit says nothing: $(<"$T/out")"
! scripts/run-unit --variant "$variant" base/nothing >"$T/out" 2>&1 || fail "run-unit of a test that is not there"

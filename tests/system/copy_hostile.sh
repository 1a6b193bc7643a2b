#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry cp, sync and mget from a server whose keys are meant to leave the directory, and whose lists are none: each bad name is refused
# by a sentence of its own, the others come, nothing is written outside, and nothing is deleted after a list that is not whole.
# claim TM69
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
NO_NIC=1
cd "$T" || exit 1
export XDG_STATE_HOME=$T/state
/usr/bin/python3 "$ROOT/tests/system/copy_hostile.py" "$T/port" &
wait_for 60 test -s port
U=http://127.0.0.1:$(<port)
rc_of() { "$@" >say 2>&1; echo $?; }

fill() {
	rm -rf there outside
	mkdir there outside there/dir
	ln -s "$T/outside" there/link
	ln -s "$T/outside/target" there/linked
}
# What is refused, and by which words.
told() { grep -qaF -- "$1" say || fail "nothing was told of $1: $(<say)"; }
judge() {
	told "/../escape: the name has '..'"
	told "//absolute: the name begins with '/'"
	told "sub/../../escape: the name has '..'"
	told "there/..: the name has '..'"
	told "there/.: the name has '.' in it"
	told "a/./b: the name has '.' in it"
	told "a//b: the name has two '/'"
	told "n%00ul: the name has a NUL"
	told "dir: there is a directory of that name"
	told "link/through: a directory of the name is a symbolic link"
	told "linked: there is a symbolic link of that name"
	told ".gantry-0123456789abcdef.part: names that begin with '.gantry-'"
	told "x/.gantry-1: names that begin with '.gantry-'"
	told "full/: the name ends in '/'"
	told "a part of the name is longer"
	[ -d there/file ] && told "file: there is a directory" || told "file/below: a directory of the name is a file here"
}
sound() {
	assert_eq "$(<there/ok)" ok
	assert_eq "$(<there/sub/ok)" sub/ok
	assert_eq "$(<there/dir/below)" dir/below
	assert_eq "$(<there/-rf)" -rf
	assert_eq "$(cat 'there/\..\back')" '\..\back'
	[ -d there/mark ] || fail "what stands for a directory is none"
	assert_eq "$(find outside | wc -l)" 1 "something was written outside"
	[ ! -e escape ] && [ ! -e ../escape ] && [ ! -e /absolute ] || fail "something was written outside"
	[ -L there/linked ] && [ -L there/link ] || fail "a link was replaced"
	assert_eq "$(find there -name '.gantry-*' | wc -l)" 0 "unfinished files"
}

# More is wrong than is told without --json.
for verb in "cp -r" sync; do
	fill
	# shellcheck disable=SC2086
	assert_eq "$(rc_of gantry --json $verb $U/names there)" 1 "$verb"
	sed -i 's/.*"file":"\([^"]*\)".*"message":"\([^"]*\)".*/there\/\1: \2/' say
	judge
	sound
done
# A terminal gets nothing that it would obey.
fill
gantry cp -r "$U/names" there >say 2>&1
! LC_ALL=C grep -qa $'\x01' say || fail "a control character was passed on"

# mget is told names by a list.
fill
printf '%s\n' ok sub/ok ../escape /absolute link/through linked >list
assert_eq "$(rc_of gantry -C there mget list "$U/names")" 1
told "../escape: the name has '..'"
told "link/through: a directory of the name is a symbolic link"
told "linked: there is a symbolic link"
assert_eq "$(<there/sub/ok)" sub/ok
assert_eq "$(find outside | wc -l)" 1 "mget wrote outside"

# Lists that are none: nothing is copied from them, and nothing deleted.
mkdir local
touch local/alone local/also
for bucket in broken refuses endless outside; do
	assert_eq "$(rc_of gantry sync --delete --yes "$U/$bucket/x" local)" 1 "from $bucket"
	assert_eq "$(find local -type f | wc -l)" 2 "sync deleted after a list that was not whole ($bucket)"
	assert_eq "$(rc_of gantry sync --delete --yes local "$U/$bucket/x")" 1 "to $bucket"
	assert_eq "$(rc_of gantry rm -ry "$U/$bucket/x")" 1 "rm -r of $bucket"
	assert_eq "$(rc_of gantry ls -r "$U/$bucket/x")" 1 "ls of $bucket"
	[ ! -e port.deleted ] || fail "deleted after a list that was not whole: $(<port.deleted)"
done
assert_match "$(<say)" "do not begin with what was asked for"
# A directory that cannot be read hides what is in it.
mkdir -p dark/closed
touch dark/a dark/closed/b
if [ "$(id -u)" = 0 ]; then shut='setpriv --reuid=65534 --clear-groups'; chmod 755 "$T" dark; else shut=; fi
chmod 000 dark/closed
# shellcheck disable=SC2086
assert_eq "$(rc_of $shut env XDG_STATE_HOME=/nowhere "$BUILD/gantry" --no-rdma sync --delete --yes dark "$U/good/x")" 1
told "dark/closed: Permission denied"
told "nothing is deleted: not all of the source could be listed"
[ ! -e port.deleted ] || fail "deleted what could not be seen"
chmod 755 dark/closed

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry cp, sync, ls, du, rm -r against the real daemon: every direction, both ways of travelling, what is chosen by name, what is
# only said, and what is deleted.
DISK_SIZE=512MiB
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# The second listener takes signed requests alone; every request of this test is signed.
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
printf -- '- { access_key: AKTEMP, secret_key: temp/secret+1, session_token: "to/ken+1=" }\n' >"$T/keys.yaml"
chmod 600 "$T/keys.yaml"
export AWS_ACCESS_KEY_ID=AKTEMP AWS_SECRET_ACCESS_KEY=temp/secret+1 AWS_SESSION_TOKEN=to/ken+1=
start_daemon
cd "$T" || exit 1
export XDG_STATE_HOME=$T/state
# The second listener is another server, as far as a client can tell.
OTHER=http://$(tr ' ' '\n' <"$T/ready" | sed -n 's/^s3=//p' | sed -n 2p)
B=$URL_S3/bkt
rc_of() { "$@" >say 2>&1; echo $?; }

mkdir -p in/sub/deep
bytes pattern:1 3000001 >in/a
bytes pattern:2 70000001 >in/sub/big
printf hello >"in/sub/deep/a b+%&.txt"
: >in/empty
ln -s a in/link
mkfifo in/pipe

# ---- there and back ----
assert_match "$(gantry --require-rdma cp -r in "$B/tree")" "4 files, .* 0 B by HTTP; 2 links and special files left out"
gantry -q --require-rdma cp -r "$B/tree" out || fail "cp -r from the server"
rm in/link in/pipe
diff -r in out || fail "files changed on the way"
assert_match "$(gantry --no-rdma cp -r "$B/tree/" over-http)" "0 B by RDMA, .*4 files not by RDMA|0 B by RDMA, .*3 files not by RDMA: RDMA is switched off"
diff -r in over-http || fail "files changed on the way over HTTP"
assert_eq "$(find out over-http -name '.gantry-*' | wc -l)" 0 "unfinished files"
assert_eq "$(find state -type f | wc -l)" 0 "unfinished uploads"
assert_eq "$(curl_s3 '/bkt?uploads' | grep -c '<Upload>')" 0 "unfinished uploads of the server"
# Large ones went in parts.
assert_match "$(header_of etag /bkt/tree/sub/big -I)" '-5"$'
# One file: into a directory, below a '/', under a new name.
assert_match "$(gantry cp in/a "$B/one/")" "^cp in/a: 2.9 MiB by RDMA"
gantry -q cp "$B/one/a" out || fail "cp into a directory"
gantry -q cp "$B/one/a" back || fail "cp to a file"
assert_same back in/a

# ---- between objects ----
assert_match "$(gantry cp "$B/one/a" "$B/two/")" "copied by the server itself"
assert_eq "$(curl_s3 /bkt/two/a | md5)" "$(md5 in/a)"
assert_match "$(gantry cp -r "$B/tree" "$B/copy")" "0 B by RDMA, 0 B by HTTP, 69.6 MiB by the server itself"
gantry mb "$OTHER/there" || fail "a bucket"
# Who does not sign sees nothing of it.
assert_eq "$(AWS_ACCESS_KEY_ID='' AWS_SECRET_ACCESS_KEY='' rc_of gantry ls "$OTHER/there")" 1
assert_match "$(<say)" AccessDenied
assert_match "$(gantry cp -r "$B/tree" "$OTHER/there/x")" "^cp: 4 files, 139.2 MiB in .*: 139.2 MiB by RDMA, 0 B by HTTP"
gantry -q cp -r "$OTHER/there/x" elsewhere && diff -r in elsewhere || fail "from server to server"
curl -sS --fail -T in/a -H 'content-type: text/x-test' "$B/typed" || fail "curl"
gantry -q cp "$B/typed" "$OTHER/there/typed" || fail "cp between servers"
assert_eq "$(header_of content-type /there/typed -I)" text/x-test

# ---- ls, du ----
assert_eq "$(gantry ls "$URL_S3" | tr '\n' ' ')" "bkt there "
assert_eq "$(gantry ls "$B/tree/" | tr '\n' ' ')" "tree/a tree/empty tree/sub/ "
assert_eq "$(gantry ls -r "$B/tree/sub")" "tree/sub/big
tree/sub/deep/a b+%&.txt"
assert_match "$(gantry ls -rl "$B/tree/sub/b")" "^20[0-9-]*T[0-9:]*Z +70000001 tree/sub/big$"
assert_match "$(gantry ls -rl --human "$B/tree/sub/b")" " 66.8 MiB tree/sub/big$"
assert_match "$(gantry ls --json "$B/tree/a")" '^\{"op":"ls","type":"object","name":"tree/a","size":3000001,"etag":'
assert_eq "$(rc_of gantry ls "$B/nothing")" 3
assert_eq "$(rc_of gantry ls "$URL_S3/none")" 3
assert_match "$(<say)" NoSuchBucket
assert_eq "$(gantry du "$B/tree/" | tr -s ' ')" " 73000007 4 tree/"
assert_eq "$(gantry du -d 2 "$B/tree/" | tr -s ' ' | head -n 2 | tr '\n' ';')" " 5 1 tree/sub/deep/; 70000006 2 tree/sub/;"
assert_match "$(gantry du --human "$B/tree/")" "69.6 MiB +4 tree/"
assert_eq "$(gantry du --json "$B/tree/")" '{"op":"du","bytes":73000007,"objects":4,"prefix":"tree/"}'

# ---- sync ----
same() { gantry sync "$@" | grep -o '[0-9]* files\|[0-9]* were the same\|[0-9]* deleted' | cut -d' ' -f1 | tr '\n' ' '; }
rm -r out
assert_eq "$(same "$B/tree" out)" "4 0 0 "
assert_eq "$(same "$B/tree" out)" "0 4 0 "
# The same size and newer, but other bytes; another size; one that is missing; one too many; and one that is left out.
printf jello >"out/sub/deep/a b+%&.txt"
printf x >>out/a
rm out/empty
mkdir out/more
touch out/more/new out/keep.me
assert_eq "$(gantry sync -n --delete --exclude '*.me' "$B/tree" out)" "would copy a
would copy empty
would copy sub/deep/a b+%&.txt
would delete more/new"
assert_eq "$(same "$B/tree" out)" "3 1 0 "
[ -e out/more/new ] || fail "sync without --delete deleted"
assert_eq "$(same --delete --exclude '*.me' "$B/tree" out)" "0 4 1 "
[ ! -e out/more/new ] && [ -e out/keep.me ] || fail "sync --delete"
rmdir out/more && rm out/keep.me && diff -r in out || fail "sync from the server"
printf 0 >>out/a
assert_eq "$(same --delete out "$B/copy")" "1 3 0 "
rm out/a
assert_eq "$(same --delete out "$B/copy")" "0 3 1 "
assert_eq "$(same --delete "$B/copy" "$OTHER/there/x")" "0 3 1 "
assert_status GET /there/x/a 404
# Nothing is deleted when something is unknown, or when there is nothing.
mkdir none
assert_eq "$(rc_of gantry sync --delete none "$B/copy")" 1
assert_match "$(<say)" "3 objects or files are lost; last resort: --yes"
assert_eq "$(rc_of gantry sync --delete missing "$B/copy")" 1
assert_eq "$(rc_of gantry sync --delete "$URL_S3/none" out)" 3
touch out/alone out/sub/deep/alone
rm out/sub/big && mkdir out/sub/big
assert_eq "$(rc_of gantry sync --delete "$B/tree" out)" 1
assert_match "$(<say)" "there is a directory of that name"
assert_match "$(<say)" "nothing is deleted: something could not be copied"
[ -e out/alone ] || fail "deleted although something failed"
assert_eq "$(gantry ls -r "$B/copy/" | wc -l)" 3

# ---- chosen by name ----
rm -r out
gantry -q cp -r --include '*.txt' "$B/tree" out || fail "--include"
assert_eq "$(cd out && find . -type f)" "./sub/deep/a b+%&.txt"
assert_eq "$(gantry cp -rn --exclude 'sub/*' --include '*big' "$B/tree" out | tr '\n' ' ')" "would copy a would copy empty would copy sub/big "

# ---- rm -r ----
assert_eq "$(rc_of gantry rm -r "$B/copy" </dev/null)" 2
assert_match "$(<say)" "wants --yes"
assert_eq "$(gantry rm -rn "$B/copy" | wc -l)" 3
gantry -q cp in/a "$B/copying" || fail cp
assert_eq "$(gantry rm -ry "$B/copy")" "rm: 3 objects removed"
assert_eq "$(gantry ls "$B/cop")" copying
assert_eq "$(rc_of gantry rm -ry "$B/copy")" 3

# ---- what makes no sense ----
for words in "cp a b" "sync a b" "cp in $B/x" "cp $B out" "cp -r $URL_S3 out" "rm $B" "ls ftp://x" "ls" "du $URL_S3" "cp $B/a" "cp -j 0 a $B/" \
	"du -d x $B" "cp a $B/x?y"; do
	# shellcheck disable=SC2086
	assert_eq "$(rc_of gantry $words)" 2 "gantry $words"
	assert_match "$(<say)" "^gantry: " "gantry $words"
done
assert_eq "$(rc_of gantry cp missing "$B/x")" 1
assert_match "$(<say)" "cp missing: No such file"
assert_eq "$(rc_of gantry cp "$B/missing" got)" 3
assert_eq "$(rc_of gantry cp in/a "$URL_S3/none/x")" 3
assert_eq "$(rc_of gantry cp "$B/one/a" nowhere/got)" 1
assert_eq "$(rc_of gantry cp -r "$B/missing" got)" 3
assert_eq "$(rc_of gantry sync in "$URL_S3/none")" 3
[ ! -e got ] && [ ! -e nowhere ] || fail "something was left behind"
assert_eq "$(find . -name '.gantry-*' | wc -l)" 0 "unfinished files"
# ---- files that are cut short while they are read ----
# What was read is put, what can no more be read is an error of that file, and the others go on.
mkdir cut
bytes pattern:5 20M >cut/mid
cp cut/mid whole
bytes pattern:6 200M >cut/big
bytes pattern:7 1M >cut/small
softnicctl rule add op=read delay=50s >/dev/null # until the rule goes
gantry -j 2 cp -r cut "$B/cut" >say 2>&1 &
cutting=$!
both_are_read() { local r; r=$(curl_admin /requests) && [[ $r == *PutObject* && $r == *UploadPart* ]]; }
wait_for 60 both_are_read
truncate -s 1000 cut/mid cut/big
softnicctl rule clear
wait $cutting
assert_eq $? 1 "cp -r of a file that was cut short: $(<say)"
assert_match "$(<say)" "cp big: the file became shorter while it was read"
curl_s3 /bkt/cut/mid | cmp - whole || fail "what was read before it was cut short"
curl_s3 /bkt/cut/small | cmp - cut/small || fail "the one after it"
assert_status GET /bkt/cut/big 404
assert_alive

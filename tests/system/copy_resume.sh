#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry cp is killed, at points that a seed chooses and at points that are certain: under its name there is never half a file and never
# half an object, and the same command goes on where it was, unless what is copied has changed.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
SEED=${SEED:-$RANDOM}
ROUNDS=${ROUNDS:-1}
echo "SEED=$SEED"
RANDOM=$SEED
DISK_SIZE=1GiB
# It comes back on the port that it had, so that is none which the kernel gives to others meanwhile.
port=$((10000 + $$ % 20000))
while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
write_config
sed -i "0,/127.0.0.1:0/s//127.0.0.1:$port/" "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
cd "$T" || exit 1
export XDG_STATE_HOME=$T/state
B=$URL_S3/bkt
rc_of() { "$@" >say 2>&1; echo $?; }
bytes pattern:5 70000007 >big
# A shell has its background ignore SIGINT.
G=(env --default-signal=INT "$ROOT/scripts/with-softnic" -d 1 "$BUILD/gantry")
# first_three read | write FROM TO: stores in skip_of the number of transfers in which the first three parts of 16 MiB move, of a copy of `big` in
# this direction. The size of a transfer depends on the store and on the direction; a rule that hits none counts them.
first_three() {
	local seen
	softnicctl rule add "op=$1" skip=1000000 delay=3s >/dev/null || fail softnicctl
	gantry -q --require-rdma -j 1 cp "${@:2}" || fail cp
	seen=$(softnicctl rule list | sed -n 's/.* seen=\([0-9]*\) .*/\1/p')
	softnicctl rule clear >/dev/null
	skip_of[$1]=$((seen * 48 / 67))
}
declare -A skip_of
# Lets gantry with these words run until a command succeeds, and stops it there: hold_when CONDITION WORDS...  The first three parts of 16 MiB
# move at once; each later transfer takes three seconds, so the copy does not end before the condition is seen.
hold_when() {
	local when=$1 op
	shift
	for op in read write; do softnicctl rule add op=$op skip="${skip_of[$op]}" delay=3s >/dev/null || fail softnicctl; done
	"${G[@]}" -q "$@" >say 2>&1 &
	PID=$!
	wait_for 60 eval "$when"
	kill -STOP $PID || fail "the copy is over: $(<say)"
	softnicctl rule clear >/dev/null
}
end_of_it() {
	{
		kill -KILL $PID
		wait $PID
	} 2>/dev/null
}
kill_when() {
	hold_when "$@"
	end_of_it
}
# The same by the signal of Ctrl-C: it ends by it, as a shell expects.
interrupt_when() {
	hold_when "$@"
	{
		kill -INT $PID
		kill -CONT $PID
		wait $PID
	} 2>/dev/null
	assert_eq $? 130 "$(<say)"
}
# The same after so many seconds.
kill_after() {
	{
		"${G[@]}" -q "${@:2}" &
		PID=$!
		sleep "$1"
	} 2>/dev/null
	end_of_it
}
parts_stored() { curl_s3 "/bkt/$1?uploadId=$(upload_of "$1")" 2>/dev/null | grep -o '<Part>' | wc -l; }
upload_of() { curl_s3 "/bkt?uploads&prefix=$1" | sed -n 's/.*<UploadId>\([^<]*\).*/\1/p'; }
# shellcheck disable=SC2317
pieces() { grep -cs ' ................$' "$1"/.gantry-*.state || true; }
nothing_left() {
	assert_eq "$(find . -name '.gantry-*' | wc -l)" 0 "unfinished files"
	assert_eq "$(find state -type f 2>/dev/null | wc -l)" 0 "unfinished uploads"
	assert_eq "$(curl_s3 '/bkt?uploads' | grep -c '<Upload>')" 0 "unfinished uploads of the server"
}

first_three read big "$B/first"
first_three write "$B/first" first
gantry rm "$B/first" >/dev/null && rm first || fail rm
echo "transfers of three parts: ${skip_of[read]} up, ${skip_of[write]} down"

# ---- up: some of it is stored ----
interrupt_when '[ "$(parts_stored up)" -ge 2 ]' -j 1 cp big "$B/up"
assert_status GET /bkt/up 404
assert_eq "$(find state -type f | wc -l)" 1 "uploads that are known"
assert_match "$(gantry --require-rdma cp big "$B/up")" "MiB were there from an earlier run, checksum verified"
curl_s3 /bkt/up | cmp - big || fail "the object is another"
nothing_left
# A file that changed in between: its upload is ended, and it goes anew.
cp big other
kill_when '[ "$(parts_stored changed)" -ge 1 ]' -j 1 cp other "$B/changed"
printf x | dd of=other bs=1 seek=5 conv=notrunc status=none
! gantry cp other "$B/changed" | grep -q 'earlier run' || fail "went on with parts of another file"
curl_s3 /bkt/changed | cmp - other || fail "the object is another"
nothing_left

# ---- down: some of it is there ----
mkdir down
interrupt_when '[ "$(pieces down)" -ge 2 ]' -j 1 cp "$B/up" down/big
[ ! -e down/big ] || fail "half a file has its name"
assert_match "$(gantry --require-rdma cp "$B/up" down/big)" "MiB were there from an earlier run"
assert_same down/big big
nothing_left
# Pieces that a power cut has taken are found out, and fetched again.
rm down/big
kill_when '[ "$(pieces down)" -ge 2 ]' -j 1 cp "$B/up" down/big
printf xxxx | dd of="$(echo down/.gantry-*.part)" bs=1 seek=77 conv=notrunc status=none
printf '3 00000' >>"$(echo down/.gantry-*.state)"
gantry -q cp "$B/up" down/big || fail "cp"
assert_same down/big big
# A run that was killed after its part had its name has left the state alone.
rm down/big
kill_when '[ "$(pieces down)" -ge 2 ]' -j 1 cp "$B/up" down/big
rm down/.gantry-*.part
gantry -q cp "$B/up" down/big || fail "cp beside the state of a run that had ended"
assert_same down/big big
nothing_left
# An object that changed in between comes anew.
rm down/big
kill_when '[ "$(pieces down)" -ge 2 ]' -j 1 cp "$B/up" down/big
gantry -q cp other "$B/up" || fail cp
! gantry cp "$B/up" down/big | grep -q 'earlier run' || fail "went on with another object"
assert_same down/big other
nothing_left

# ---- down: several into one file: one has it, the others say so, and nobody gives it the part of another ----
for ((i = 0; i < 3; i++)); do
	rm down/big
	pids=() won=0
	for k in 1 2 3 4; do
		gantry -q cp "$B/up" down/big 2>say$k &
		pids+=($!)
	done
	for k in 1 2 3 4; do
		if wait "${pids[k - 1]}"; then won=$((won + 1)); else assert_match "$(<say$k)" "another gantry is at this file"; fi
	done
	[ $won -ge 1 ] || fail "nobody copied it"
	assert_same down/big other
	nothing_left
done

# ---- the server dies midway ----
rm down/big
hold_when '[ "$(pieces down)" -ge 2 ]' -j 1 cp "$B/up" down/big
kill_daemon
kill -CONT $PID
wait $PID
assert_eq $? 1 "$(<say)"
[ ! -e down/big ] || fail "half a file has its name"
assert_eq "$(rc_of gantry cp "$B/up" down/big)" 1
assert_match "$(<say)" "no answer"
daemon_run
assert_match "$(gantry cp "$B/up" down/big)" "were there from an earlier run"
assert_same down/big other
nothing_left

# ---- anywhere ----
for ((i = 0; i < ROUNDS; i++)); do
	way=$([ $((RANDOM % 2)) = 0 ] && echo --no-rdma || echo --require-rdma)
	for ((k = 0; k < 2; k++)); do
		kill_after 0.$((RANDOM % 6))$((RANDOM % 10)) $way -j $((RANDOM % 4 + 1)) sync --delete . "$B/tree" --include big
		s=$(status_of GET /bkt/tree/big)
		[ "$s" = 404 ] || [ "$s" = 200 ] || fail "status $s"
		[ "$s" = 404 ] || curl_s3 /bkt/tree/big | cmp - big || fail "half an object (round $i)"
	done
	kill_after 0.$((RANDOM % 3))$((RANDOM % 10)) $way put big "$B/whole"
	s=$(status_of GET /bkt/whole)
	[ "$s" = 404 ] || curl_s3 /bkt/whole | cmp - big || fail "half an object of a put (round $i)"
	gantry -q $way put big "$B/whole" || fail "put (round $i)"
	curl_s3 /bkt/whole | cmp - big || fail "the object is another (round $i)"
	gantry -q $way sync . "$B/tree" --include big || fail "sync (round $i)"
	curl_s3 /bkt/tree/big | cmp - big || fail "the object is another (round $i)"
	for ((k = 0; k < 2; k++)); do
		kill_after 0.$((RANDOM % 6))$((RANDOM % 10)) $way -j $((RANDOM % 4 + 1)) cp -r "$B/tree" "out$i"
		[ ! -e "out$i/big" ] || assert_same "out$i/big" big
	done
	gantry -q $way cp -r "$B/tree" "out$i" || fail "cp -r (round $i)"
	assert_same "out$i/big" big
	assert_eq "$(find . -name '.gantry-*' | wc -l)" 0 "unfinished files (round $i)"
	gantry -q rm -ry "$B/tree" || fail rm
	rm -r "out$i"
done
assert_eq "$(find state -type f | wc -l)" 0 "unfinished uploads"
assert_alive

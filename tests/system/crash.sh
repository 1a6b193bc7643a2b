#!/bin/bash
# SIGKILL in the middle of PUTs, ROUNDS times (default 40), on both wires: nothing acknowledged is lost or torn, nothing unacknowledged is
# half there.  Each round: several clients write objects of known bytes and note each acknowledgement; the daemon is killed; after
# the restart every acknowledged object must hold its bytes, and every other one its bytes or nothing.
MORE=$'limits: { s3_progress: 30s, s3_total: 30s }'
. "$(dirname "$0")/lib.sh"
ROUNDS=${ROUNDS:-40}
SEED=${SEED:-$(date +%s)}
RANDOM=$SEED
echo "SEED=$SEED ROUNDS=$ROUNDS"
start_daemon
sizes=(200 4096 65537 300000 2000000)
for ((r = 0; r < ROUNDS; r++)); do
	n=${sizes[RANDOM % 5]} seed=$((RANDOM % 1000))
	bytes "pattern:$seed" $n >"$T/body"
	nic "$BUILD/tools/rawclient" -s "$S3" >"$T/w1" 2>&1 <<-END &
		window w $n pattern:$seed
		flood 8 400 $T/ack.rdma PUT /bkt/r$r-%n x-amz-rdma-token:@w content-length:0
	END
	a=$!
	nic "$BUILD/tools/rawclient" -s "$S3" >"$T/w2" 2>&1 <<-END &
		flood 4 100 $T/ack.http PUT /bkt/h$r-%n body=pattern:$seed:$n
	END
	b=$!
	sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
	kill_daemon
	wait $a $b
	daemon_run
	for wire in rdma:r http:h; do
		touch "$T/ack.${wire%:*}"
		awk '$2 == 200 && ($3 == 200 || "'"${wire%:*}"'" == "http") { print $1 }' "$T/ack.${wire%:*}" >"$T/acked"
		{
			echo "window g $n"
			while read -r i; do
				echo "fill g zero"
				echo "request GET /bkt/${wire#*:}$r-$i x-amz-rdma-token:@g"
				echo "expect status 200"
				echo "expect header x-amz-rdma-bytes $n"
				echo "expect window g pattern:$seed"
			done <"$T/acked"
			# what was under way at the kill: whole or absent
			for i in 0 1 2 3 390 395 399; do
				grep -qx "$i" "$T/acked" || { echo "request GET /bkt/${wire#*:}$r-$i"; echo "expect status 200|404"; }
			done
		} >"$T/check"
		raw "$T/check"
		acked=$((${acked:-0} + $(wc -l <"$T/acked")))
		rm -f "$T/ack.${wire%:*}"
	done
done
echo "$ROUNDS kills, $acked acknowledged objects, none lost"
[ "$acked" -gt "$ROUNDS" ] || fail "hardly anything was acknowledged: the test proves nothing"

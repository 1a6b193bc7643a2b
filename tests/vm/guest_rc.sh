# SPDX-License-Identifier: Apache-2.0
# RC over the kernel's verbs: Soft-RoCE on both ends of a pair of interfaces, which packets really cross; the daemon is on rxe1, the client on
# rxe2.  guest.sh reads this file; all names of its checks have the word RC, and these checks alone make what they need.
# shellcheck shell=bash disable=SC2154 # the variables of guest.sh

SERVER_END=10.10.0.1

# Neighbours and routes of the pair, which a link that goes down, or an address that is removed, takes along.
rc_routes() {
	local i me peer
	for i in 0 1; do
		me=10.10.0.$((i + 1)) peer=10.10.0.$((2 - i))
		ip neigh replace $peer lladdr 02:00:00:00:0a:0$((2 - i)) dev v$i nud permanent
		ip route replace $peer dev v$i src $me table 10$i
	done
}

# Both ends are this machine's own addresses: rules lead from one to the other by the pair, not by lo.
rc_rails() {
	local i
	modprobe -a veth sch_netem
	sysctl -qw net.ipv4.conf.{all,default}.rp_filter=0 net.ipv4.conf.{all,default}.accept_local=1
	ip link add v0 mtu 4200 address 02:00:00:00:0a:01 type veth peer name v1 mtu 4200 address 02:00:00:00:0a:02
	for i in 0 1; do
		ip rule add pref $((i + 1)) iif v$i lookup local
		ip addr add 10.10.0.$((i + 1))/32 dev v$i
		ip link set v$i up
		ip rule add pref $((i + 5)) from 10.10.0.$((i + 1)) to 10.10.0.$((2 - i)) lookup 10$i
	done
	ip rule add pref 9 lookup local
	ip rule del pref 0
	rc_routes
	rdma link add rxe1 type rxe netdev v0
	rdma link add rxe2 type rxe netdev v1
	wait_for 20 test -e /sys/class/infiniband/rxe2
}
export RAW_DEVICE=rxe2
raw() { rawclient -s $S3; }
by_rc=(gantry --transport rc --require-rdma --timeout 300 --device rxe2 -q)
# Takes away what a check has put on the pair.
calm() { for i in 0 1; do tc qdisc del dev v$i root 2>/dev/null || :; done; }
# How many there are in this state: ready, leased.
rc_now() { admin /metrics | sed -n "s/^gantry_rc_connections{state=\"$1\"} //p"; }
rc_is() { [ "$(rc_now "$1")" = "$2" ]; }
# Queue pairs of RC that the kernel has on a device.
no_qps() { [ "$(qps rxe1)" = 0 ]; }
qps() { rdma resource show qp link "$1/1" | grep -c 'type RC'; }

# rc_start [REST-OF-rdma.rc [LINE-OF-A-DROP-IN...]]: the daemon on rxe1, in the unit as it was shipped, where a call that the filter refuses is its end.
rc_start() {
	echo "$*" >/run/rc-started
	systemctl stop gantryd || :
	systemctl reset-failed gantryd 2>/dev/null || :
	[ -e /var/lib/gantry/credentials.yaml ] || runuser -u gantry -- gantryd --format >/tmp/first-key
	printf 'rdma: { devices: [rxe1], allow: [10.10.0.0/24], allow_special: [self], rc: { shim: on%s } }\nlimits: { s3_rate: 128KiB }\n' \
		"${1:-, idle: 2s}" >/etc/gantry/conf.d/rc.yaml
	override rc SystemCallErrorNumber=kill "${@:2}"
	systemctl start gantryd || return
	curl -sS -o /dev/null -X PUT http://$S3/bkt
}
rail_says() { admin /rails | grep -q "$1"; }
rail_up() { rail_says '"state":"up"' && rdma link show rxe2/1 | grep -q 'state ACTIVE'; }
# What each check needs, also when it is the only one.
rc_ready() {
	[ -e /sys/class/infiniband/rxe2 ] || rc_rails
	if [ ! -e /run/rc-started ] || [ -n "$(cat /run/rc-started)" ] || ! systemctl is-active -q gantryd; then rc_start; fi
	calm
	# A check that failed may have left the pair without them.
	for i in 0 1; do
		ip addr replace 10.10.0.$((i + 1))/32 dev v$i
		ip link set v$i up
	done
	rc_routes
	wait_for 30 rail_up
	[ -e /tmp/in ]
}
rc_end() {
	rm -f /etc/gantry/conf.d/rc.yaml /run/rc-started
	no_override
	systemctl restart gantryd
}

rc_served() {
	local p
	rc_ready
	p=$(pid)
	admin /rails | grep -q '"transports":"RC"'
	raw <<-END
		window w 64K pattern:3
		window g 64K
		qp q
		connect q
		expect header x-gantry-rc "~^reads=1; mtu=4096; sl=0; pkey=0xffff\$"
		rctoken t q w
		rctoken tg q g
		request PUT /bkt/o x-amz-rdma-token:@t content-length:0
		expect status 200
		expect header x-amz-rdma-reply 200
		request GET /bkt/o x-amz-rdma-token:@tg
		expect status 200
		expect header x-amz-rdma-bytes-transferred 65536
		expect window g pattern:3
		expect rdmasum g
	END
	is MainPID "$p"
	is NRestarts 0
}
check "RC: tokens of Soft-RoCE are served, in the sandbox" rc_served

# Devices without DC: clients choose RC by themselves, and say so.
rc_chosen() {
	rc_ready
	gantry ports | tee -a /dev/stderr | grep -qx 'rxe2:1  rc'
	runuser -u gantry -- gantryd --list-devices | tee -a /dev/stderr | grep -q '^rxe1: .* RC, .*no DC transport'
	gantry --device rxe2 --require-rdma put /tmp/in http://$S3/bkt/auto 2>&1 | tee -a /dev/stderr | grep -q 'by RDMA (RC)'
	rm -f /tmp/rc.out
	gantry --device rxe2 --require-rdma get http://$S3/bkt/auto /tmp/rc.out 2>&1 | tee -a /dev/stderr | grep -q 'by RDMA (RC)'
	cmp /tmp/in /tmp/rc.out
	# Without the shim the same client uses HTTP.
	systemctl stop gantryd
	sed -i 's/shim: on/shim: off/' /etc/gantry/conf.d/rc.yaml
	systemctl start gantryd
	not gantry --device rxe2 --require-rdma put /tmp/in http://$S3/bkt/auto
	gantry --device rxe2 put /tmp/in http://$S3/bkt/auto 2>&1 | tee -a /dev/stderr | grep -i 'http'
	rc_start
}
check "RC: clients choose it by themselves, where the server has it" rc_chosen

# gantry hwcheck over the kernel's verbs, of a port with itself and across the pair.  What Soft-RoCE lacks is the reason of a check that is left out, or
# a finding: work requests of more than 8 MiB, counters of priorities, an end of seven retries.
rc_hwcheck() {
	local to listener rc
	[ -e /sys/class/infiniband/rxe2 ] || rc_rails
	calm
	gantry hwcheck --listen --device rxe1 >/tmp/hw-listens 2>&1 &
	listener=$!
	wait_for 30 grep -q 'listening on' /tmp/hw-listens
	for to in '' 127.0.0.1; do
		rc=0
		# shellcheck disable=SC2086
		gantry hwcheck --transport rc --device rxe2 $to >/tmp/hw 2>&1 || rc=$?
		cat /tmp/hw
		[ $rc = 0 ]
		[ "$(grep -c '^  pass ' /tmp/hw)" -ge 50 ]
		grep -q '^  pass  device.limits .* max_msg_sz=8388608 ' /tmp/hw
		grep -q '^  pass  rc.retries .* retry_cnt_6=transport retry counter exceeded retry_cnt_7=without end' /tmp/hw
		[ "$(sed -n 's/^  skip  \([^ ]*\) .*/\1/p' /tmp/hw | xargs)" = \
			"write.67108864 write.1073741824 read.67108864 read.1073741824 class.write class.read" ]
		[ "$(grep -c '^  skip  .*67108864 .*the port takes 8388608 bytes in a work request' /tmp/hw)" = 2 ]
		[ -z "$to" ] || [ "$(grep -c '^  skip  class.*has no counters of priorities' /tmp/hw)" = 2 ]
	done
	kill $listener
}
check "RC: gantry hwcheck" rc_hwcheck

# Sizes of one byte to more than all buffers of the daemon.
rc_sizes() {
	local n
	rc_ready
	for ((n = 0; n < 70; n++)); do
		echo "$n"
		cat /tmp/in
	done >/tmp/rc.in
	for n in 268435456 67108864 1048576 4096 1; do
		truncate -s $n /tmp/rc.in
		"${by_rc[@]}" put /tmp/rc.in http://$S3/bkt/size$n
		rm -f /tmp/rc.out
		"${by_rc[@]}" get http://$S3/bkt/size$n /tmp/rc.out
		cmp /tmp/rc.in /tmp/rc.out
		[ $n != 1048576 ] || s3 /bkt/size$n | cmp - /tmp/rc.in
		s3 /bkt/size$n -X DELETE
	done
	rm /tmp/rc.in /tmp/rc.out
}
check "RC: put and get of 1 byte to 256 MiB" rc_sizes

# A key of memory that was given up, and one of no memory: the answer says so, no byte is written, the next connection serves.
rc_keys() {
	rc_ready
	raw <<-END
		window w 64K pattern:3
		window g 64K
		window h 64K
		request PUT /bkt/o body=window:w
		expect status 200
		qp a
		connect a
		rctoken t a g
		dereg g
		request GET /bkt/o x-amz-rdma-token:@t
		expect status 5xx
		expect noheader etag
		expect untouched g
		request GET /bkt/o x-amz-rdma-token:@t
		expect status 501
		expect header x-gantry-rdma-reason not-connected
		qp b
		connect b
		request GET /bkt/o x-amz-rdma-token:rc:@b_id:@hexaddr:h:00010000:7fffff00
		expect status 5xx
		expect untouched h
		qp c
		connect c
		request PUT /bkt/wrong x-amz-rdma-token:rc:@c_id:@hexaddr:w:00010000:7fffff00 content-length:0
		expect status 5xx
		request HEAD /bkt/wrong
		expect status 404
		qp d
		connect d
		rctoken th d h
		request GET /bkt/o x-amz-rdma-token:@th
		expect status 200
		expect window h pattern:3
	END
}
check "RC: stale and wrong keys" rc_keys

# Clients are killed when their transfer is under way: netem makes it last.
rc_killed() {
	local what big=http://$S3/bkt/big cut=http://$S3/bkt/cut
	rc_ready
	head -c 16777216 /dev/urandom >/tmp/rc.in
	s3 /bkt/big -T /tmp/rc.in
	wait_for 60 rc_is ready 0
	for what in "get $big /tmp/rc.out" "put /tmp/rc.in $cut"; do
		tc qdisc add dev v1 root netem delay 100ms
		# shellcheck disable=SC2086
		"${by_rc[@]}" $what &
		wait_for 60 rc_is leased 1
		kill -KILL $!
		calm
		wait_for 60 rc_is leased 0
	done
	[ "$(curl -s -o /dev/null -w '%{http_code}' $cut)" = 404 ]
	wait_for 60 rc_is ready 0
	wait_for 60 no_qps
	"${by_rc[@]}" get $big /tmp/rc.out
	cmp /tmp/rc.in /tmp/rc.out
}
check "RC: clients are killed amid GET and PUT" rc_killed

# A client whose queue pair is gone, and that waits for its answer: the retries end the transfer, long before the deadline of the request does.
rc_gone() {
	local ended
	rc_ready
	s3 /bkt/o -T /tmp/in
	ended=$(admin /metrics | sed -n 's/^gantry_deadlines_passed_total //p')
	raw <<-END
		window w 64K
		qp a
		connect a
		rctoken t a w
		destroyqp a
		request PUT /bkt/gone x-amz-rdma-token:@t content-length:0
		expect status 500
		expect header x-amz-rdma-reply 500
		qp b
		connect b
		rctoken u b w
		destroyqp b
		request GET /bkt/o range:bytes=0-65535 x-amz-rdma-token:@u
		expect status 500
		request HEAD /bkt/gone
		expect status 404
	END
	admin /metrics | grep -E '^gantry_rdma_completions_total.*"retry-exceeded".* [1-9]'
	[ "$(admin /metrics | sed -n 's/^gantry_deadlines_passed_total //p')" = "$ended" ]
}
check "RC: clients whose queue pairs are destroyed" rc_gone

rc_loss() {
	local dropped
	rc_ready
	head -c 2097152 /dev/urandom >/tmp/rc.in
	for i in 0 1; do tc qdisc add dev v$i root netem loss 2%; done
	"${by_rc[@]}" put /tmp/rc.in http://$S3/bkt/lossy
	rm -f /tmp/rc.out
	"${by_rc[@]}" get http://$S3/bkt/lossy /tmp/rc.out
	dropped=$(tc -s qdisc show dev v0 root | sed -n 's/.*dropped \([0-9]*\).*/\1/p')
	calm
	[ "$dropped" -gt 0 ]
	cmp /tmp/rc.in /tmp/rc.out
}
check "RC: two packets of a hundred are lost" rc_loss

# interrupted COMMAND-THAT-BREAKS IS-BROKEN COMMAND-THAT-MENDS IS-MENDED: the transfer under way fails; as long as it is broken tokens are declined,
# and HTTP serves; after that a client is served.
interrupted() {
	local p client
	p=$(pid)
	rm -f /tmp/broken /tmp/mended
	# It takes longer than a slow machine takes to see that it is under way.
	head -c 16777216 /dev/urandom >/tmp/rc.in
	s3 /bkt/o -T /tmp/rc.in
	tc qdisc add dev v1 root netem delay 100ms
	raw <<-END &
		window g 16777216
		qp a
		connect a
		rctoken ta a g
		qp b
		connect b
		rctoken tb b g
		start x GET /bkt/o x-amz-rdma-token:@ta
		wait x
		expect status 5xx
		expect noheader etag
		waitfile /tmp/broken
		request GET /bkt/o x-amz-rdma-token:@tb
		expect status 501
		expect header x-amz-rdma-reply 501
		request GET /bkt/o
		expect status 200
		expect body file:/tmp/rc.in
		touch /tmp/declined
		waitfile /tmp/mended
		qp c
		connect c
		rctoken tc c g
		fill g zero
		request GET /bkt/o x-amz-rdma-token:@tc
		expect status 200
		expect window g file:/tmp/rc.in
	END
	client=$!
	wait_for 60 rc_is leased 1
	"$1"
	calm
	wait_for 30 "$2"
	touch /tmp/broken
	wait_for 60 test -e /tmp/declined
	"$3"
	rc_routes
	wait_for 30 "$4"
	touch /tmp/mended
	wait $client
	"${by_rc[@]}" get http://$S3/bkt/o /tmp/rc.out
	cmp /tmp/rc.in /tmp/rc.out
	is MainPID "$p"
}
link_down() { ip link set v0 down; }
link_up() { ip link set v0 up; }
rail_down() { rail_says '"state":"down"'; }
rc_link() {
	rc_ready
	interrupted link_down rail_down link_up rail_up
}
check "RC: the link goes down amid a GET, and comes up" rc_link

address_del() { ip addr del $SERVER_END/32 dev v0; }
address_add() { ip addr add $SERVER_END/32 dev v0; }
address_gone() { not rail_says "$SERVER_END"; }
address_there() { rail_says "$SERVER_END"; }
rc_address() {
	rc_ready
	interrupted address_del address_gone address_add address_there
}
check "RC: the address is removed amid a GET, and added" rc_address

descriptors() { find "/proc/$(pid)/fd" -type l ! -lname '*pidfd*' | wc -l; }
# A thousand connections of sixteen processes at a time.  The kernel has as many queue pairs, and none when they have disconnected.
rc_thousand() {
	local i k each=63 before
	local -a clients
	rc_start ", connections: 2000, per_peer: 2000, connect_rate: 10000, idle: 3600s"
	before=$(descriptors)
	rm -f /tmp/enough
	for i in {1..16}; do
		for ((k = 0; k < each; k++)); do printf 'qp q%s\nconnect q%s\n' $k $k; done >/tmp/many.$i
		cat >>/tmp/many.$i <<-END
			window g 4K
			rctoken t q0 g
			rctoken u q$((each - 1)) g
			waitfile /tmp/enough
			request GET /bkt/o range:bytes=0-4095 x-amz-rdma-token:@t
			expect status 206
			expect window g file:/tmp/in 0 4096
			fill g zero
			request GET /bkt/o range:bytes=0-4095 x-amz-rdma-token:@u
			expect status 206
			expect window g file:/tmp/in 0 4096
		END
		for ((k = 0; k < each; k++)); do
			printf 'request POST /.s3rdma-rc/disconnect x-amz-rdma-session:@q%s_id content-length:0\nexpect status 204\n' $k
		done >>/tmp/many.$i
		rawclient -s $S3 /tmp/many.$i &
		clients[i]=$!
	done
	s3 /bkt/o -T /tmp/in
	wait_for 120 rc_is ready $((16 * each))
	[ "$(qps rxe1)" -ge $((16 * each)) ]
	touch /tmp/enough
	for i in {1..16}; do wait "${clients[i]}"; done
	wait_for 60 rc_is ready 0
	wait_for 60 no_qps
	[ "$(descriptors)" -le $((before + 8)) ] || { echo "descriptors: $before, then $(descriptors)"; return 1; }
}
check "RC: a thousand connections of sixteen processes" rc_thousand

# Each answer of the client's adapter is late, so that the daemon's cores sleep before it comes: only its completion can wake them.
rc_asleep() {
	local t client all=0 asleep=0 is_asleep line
	local -a cores=()
	rc_ready
	for t in /proc/"$(pid)"/task/*; do
		case $(cat "$t/comm") in core*) cores+=("$t") ;; esac
	done
	[ ${#cores[@]} = 2 ]
	s3 /bkt/o -T /tmp/in
	tc qdisc add dev v1 root netem delay 100ms
	raw <<-END &
		window w 4000000 file:/tmp/in
		window g 4000000
		qp q
		connect q
		rctoken t q w
		rctoken tg q g
		request PUT /bkt/late x-amz-rdma-token:@t content-length:0
		expect status 200
		$(printf 'fill g zero\nrequest GET /bkt/late x-amz-rdma-token:@tg\nexpect status 200\nexpect window g file:/tmp/in\n%.0s' {1..4})
	END
	client=$!
	wait_for 60 rc_is leased 1
	while kill -0 $client 2>/dev/null; do
		is_asleep=1
		for t in "${cores[@]}"; do
			read -r line <"$t/stat"
			[[ ${line##*) } == S* ]] || is_asleep=0
		done
		all=$((all + 1)) asleep=$((asleep + is_asleep))
		sleep 0.05
	done
	wait $client
	calm
	echo "both cores were asleep $asleep times of $all"
	[ $all -ge 5 ] && [ $((2 * asleep)) -ge $all ]
}
check "RC: the cores sleep between completions" rc_asleep

# A PUT of 64 READs, one after the other, each answered while the core sleeps.  A core that no completion wakes looks for completions when a timer or
# a message wakes it, about twice a second: then the PUT misses its deadline, of which it needs a quarter.
rc_woken() {
	rc_ready
	printf 'limits: { s3_total: 20s, s3_rate: 1TiB }\n' >/etc/gantry/conf.d/zz.yaml
	systemctl reload gantryd
	wait_for 40 sh -c "curl -sS --unix-socket $ADMIN http://localhost/config | grep '\"limits.s3_rate\"' | grep -q 1TiB"
	tc qdisc add dev v1 root netem delay 50ms
	raw <<-END
		window w 64M pattern:5
		qp q
		connect q
		expect header x-gantry-rc "~^reads=1;"
		rctoken t q w
		request PUT /bkt/woken x-amz-rdma-token:@t content-length:0
		expect status 200
	END
	calm
	s3 /bkt/woken -X DELETE
	rm /etc/gantry/conf.d/zz.yaml
	systemctl reload gantryd
}
check "RC: completions wake a core" rc_woken

# Locked memory: too little for the buffers; enough for the adapter and not for io_uring; a client that may lock next to nothing.
rc_memlock() {
	local nobody=(setpriv --reuid nobody --clear-groups prlimit --memlock=4096:4096)
	[ -e /sys/class/infiniband/rxe2 ] || rc_rails
	not rc_start "" LimitMEMLOCK=1M
	is ExecMainStatus 78
	journal 'have to be locked for rdma.devices, and this process may lock 1MiB .LimitMEMLOCK='
	rc_start "" LimitMEMLOCK=64M
	journal 'buffers cannot be registered with io_uring.*LimitMEMLOCK='
	grep -q 'Max locked memory *67108864 *67108864' "/proc/$(pid)/limits"
	"${by_rc[@]}" put /tmp/in http://$S3/bkt/locked
	"${by_rc[@]}" get http://$S3/bkt/locked - | cmp - /tmp/in
	not "${nobody[@]}" "${by_rc[@]}" put /tmp/in http://$S3/bkt/locked
	"${nobody[@]}" gantry --device rxe2 put /tmp/in http://$S3/bkt/locked
}
check "RC: too little locked memory, at the server and at the client" rc_memlock
check "RC: without the shim again" rc_end

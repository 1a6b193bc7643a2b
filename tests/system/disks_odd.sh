#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What an operator types beside what the page has: a slash that the shell put behind a directory, a UUID in capitals, a long path, one that is not
# from the root, a disk that stands in store.disks before it was added or whose adding was cut short, the same UUID given up twice, a small disk beside a large one.
# Nobody is told to make a store over the one that is there; and what is said of the store is without a disk that has left.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=2 DISK_SIZE=64MiB BUCKETS='bkt'
MORE='log: { access: false }'
G=$BUILD/gantryd
export GANTRY_ADMIN=$T/admin.sock
disks() { curl_admin /disks | jq -r "$1"; }
store() { curl_admin /status | jq -r ".store | $1"; }
ended() { [ "$(curl_admin /control/disk/drain | json running)" = false ]; }
disk() { # WORDS...: the exit status, what is said in $T/said
	local rc=0
	"$BUILD/gantry" disk "$@" >"$T/said" 2>&1 || rc=$?
	echo $rc
}
offline() { # CODE WORDS OPTION...
	local rc=0
	timeout 60 "$G" -c "$T/gantryd.yaml" "${@:3}" </dev/null >"$T/said" 2>&1 || rc=$?
	assert_eq "$rc" "$1" "gantryd ${*:3}: $(<"$T/said")"
	grep -qF -- "$2" "$T/said" || fail "gantryd ${*:3}: no '$2' in: $(<"$T/said")"
	! grep -q -- '--format' "$T/said" || fail "who does so loses the store: $(<"$T/said")"
}
put_in() { sed -i "/^  disks:/a\\    - { path: \"$1\", size: ${2:-$DISK_SIZE} }" "$T/gantryd.yaml"; }

# ---- a small disk beside a large one: a thirty-third of memory.index would be too little ----
write_config
sed -i "s|disk1\", size: 64MiB|disk1\", size: 2GiB|; s|^store:|store:\n  min_disks: 2|" "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
assert_eq "$(curl_admin /disks | json state)" "serving serving"
assert_eq "$(disks 'map(.index_max_bytes >= 4194304) | join(" ")')" "true true"
for i in 1 2 3 4 5 6; do curl_s3 "/bkt/k$i" -X PUT -d "body $i" -o /dev/null || fail PUT; done
there() { local i; for i in 1 2 3 4 5 6; do assert_eq "$(curl_s3 "/bkt/k$i")" "body $i"; done; }

# ---- names in other letters ----
long=$T/$(printf 'x%.0s' {1..240})
long=${long:0:240}
assert_eq "$(disk add relative/new --size 64MiB)" 1
grep -q 'begins with /' "$T/said" || fail "$(<"$T/said")"
assert_eq "$(disk add "$long/" --size 64MiB)" 0 "$(<"$T/said")"
wait_for 60 ended
assert_eq "$(disk add "$long" --size 64MiB)" 1
grep -qF -- '--force' "$T/said" && fail "a member is offered to be lost: $(<"$T/said")"
all=$(store .size_bytes)
assert_eq "$(store .disks) $all" "3 $(disks 'map(.size_bytes) | add')"
assert_eq "$(disk drain "${long:0:-1}/")" 3
assert_eq "$(disk drain "$long//")" 0 "$(<"$T/said")"
# Nothing of it is an object: its log and the like do not move.
[ "$(curl_admin /control/disk/drain | json bytes)" -lt 1048576 ] || fail "of six small objects: $(curl_admin /control/disk/drain)"
wait_for 60 ended
assert_eq "$(curl_admin /disks | json state 2)" drained
assert_eq "$(store .disks) $(store .size_bytes)" "2 $((all - $(curl_admin /disks | json size_bytes 2)))" "a disk that was drained is room of the store"
assert_eq "$(store .free_bytes)" "$(disks '.[:2] | map(.free_bytes) | add')"
assert_eq "$(disk add "$T/disk2" --size 64MiB)" 0 "$(<"$T/said")"
wait_for 60 ended
U=$(curl_admin /disks | json uuid 3)
assert_eq "$(disk drain "${U^^}")" 0 "$(<"$T/said")"
wait_for 60 ended
# In the directory of another disk, which may be removed after a drain; what is mounted there is not in it.
mkdir "$T/disk0/deep"
for path in "$T/disk0/sub" "$T/disk0/deep/" "$T/disk0/deep/er" "$long/sub"; do
	assert_eq "$(disk add "$path" --size 64MiB)" 1 "$(<"$T/said")"
	grep -q "is in the directory of another disk, $T/.*, and would go with it" "$T/said" || fail "$path: $(<"$T/said")"
done
assert_eq "$(disks length)" 4
rmdir "$T/disk0/deep"
ls "$T"/disk0/[sd]*b "$T"/disk0/d* "$long/sub" 2>/dev/null && fail "something was made"
there
stop_daemon
mkdir "$T/a" "$T/a/m"
nested() { # STATUS WORDS [COMMAND...]: --format of a disk and one in it
	local rc=0
	"${@:3}" timeout 60 "$G" -c "$T/gantryd.yaml" -o "store.disks=[{path: $T/a/m, size: 64MiB}, {path: $T/a, size: 64MiB}]" -o store.state_dir=none --format --force >"$T/said" 2>&1 || rc=$?
	assert_eq "$rc" "$1" "--format of a disk in a disk: $(<"$T/said")"
	grep -qF -- "$2" "$T/said" || fail "--format of a disk in a disk: $(<"$T/said")"
}
nested 78 "$T/a/m: is in the directory of another disk, $T/a, and would go with it"
[ -z "$(ls "$T/a/m")" ] || fail "--format made something"
# A mount in the directory of a disk is not a part of the disk: for --format, a start, and a disk that is added while the daemon serves.
if unshare -m true 2>/dev/null; then
	mkdir "$T/a/other" "$T/a/other/deep"
	cat >"$T/wrap" <<-END
		#!/bin/sh
		mount -t tmpfs none "$T/a/m" && mkdir "$T/a/m/deep" && mount -t tmpfs none "$T/a/other" && exec "\$@"
	END
	chmod +x "$T/wrap"
	nested 0 'made a store on 2 disks' unshare -m "$T/wrap"
	rm -r "$T/a"
	mkdir "$T/a" "$T/a/m" "$T/a/other"
	cat >"$T/format" <<-END
		#!/bin/sh
		rmdir "$T/a/m/deep" && "$G" -c "$T/gantryd.yaml" -o "store.disks=[{path: $T/a/m, size: 64MiB}, {path: $T/a, size: 64MiB}]" -o store.state_dir=none --format --force && exec "\$@"
	END
	chmod +x "$T/format"
	DAEMON_WRAP="unshare -m $T/wrap $T/format" daemon_run -o "store.disks=[{path: $T/a/m, size: 64MiB}, {path: $T/a, size: 64MiB}]" -o store.state_dir=none
	assert_eq "$(disks 'map(.path + " " + .state) | sort | join(" ")')" "$T/a serving $T/a/m serving" "disks of which one is mounted in the other"
	for path in "$T/a/sub" "$T/a/m/sub"; do
		assert_eq "$(disk add "$path" --size 64MiB)" 1 "$(<"$T/said")"
		grep -q "$path: is in the directory of another disk, ${path%/sub}, and would go with it" "$T/said" || fail "$path: $(<"$T/said")"
	done
	assert_eq "$(disk add "$T/a/other" --size 64MiB)" 0 "of a mount in the directory of a disk: $(<"$T/said")"
	wait_for 60 ended
	assert_eq "$(curl_admin /disks | json state)" "serving serving serving"
	stop_daemon
	# Without the mounts their directories are empty, and nothing is made there.
	offline 78 "$T/a/m: not a Gantry store (there is no super); is it mounted?" -o "store.disks=[{path: $T/a/m, size: 64MiB}, {path: $T/a, size: 64MiB}, {path: $T/a/other, size: 64MiB}]" -o store.state_dir=none
	[ -z "$(ls "$T/a/m")$(ls "$T/a/other")" ] || fail "a start made something below a mount point: $(ls "$T/a/m" "$T/a/other")"
fi
rm -r "$T/a"

# ---- in store.disks before it was added ----
cp "$T/gantryd.yaml" "$T/was.yaml"
put_in "$T/disk3/"
offline 74 "all disks of the store, 2, are others"
offline 74 "gantryd --add $T/disk3/" --check-config
mkdir "$T/disk3"
offline 74 "$T/disk3/: not a Gantry store (there is no super); all disks of the store, 2, are others"
offline 74 "remedy: gantryd --add $T/disk3/ adds it to the store"
offline 0 'was added' --add "$T/disk3"
offline 78 'is a disk of this store already' --add "$T/disk3"
offline 78 'a directory needs a size: write both into store.disks' --add "$T/disk4"
[ ! -e "$T/disk4" ] || fail "it was made all the same"
daemon_run
wait_for 60 ended
there
U=$(curl_admin /disks | json uuid 2)
stop_daemon
# It is missing: the same goes for its path.
mv "$T/disk3" "$T/away"
offline 78 "disk ${U::8}, of a store of 3 disks, is missing ($T/disk3/: there is no store here yet; is it mounted?)"

# ---- given up, said twice ----
cp "$T/was.yaml" "$T/gantryd.yaml"
offline 0 'given up: 1 disk; the store has 2 now' --force --forget "$U" --forget "${U^^}"

# ---- of two disks that store.min_disks wants one is drained ----
daemon_run
assert_eq "$(curl_admin /disks | json state)" "serving serving"
assert_eq "$(disk drain "$T/disk0")" 0 "$(<"$T/said")"
wait_for 60 ended
assert_eq "$(curl_admin /disks | json state)" "drained serving"
assert_eq "$(curl_admin /readyz -o "$T/said" -w '%{http_code}')" 200 "/readyz: $(<"$T/said")"
stop_daemon

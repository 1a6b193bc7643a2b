#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make check-deb: the packages in a fresh Debian: they install with their dependencies, the daemon runs from the installed files as
# the user that the package made, a program compiles against the library, with-softnic works, the packages go again, and what
# purging leaves is compared with what was there before.  The rpm spec is parsed.
#     tests/vm/deb.sh DIRECTORY-OF-THE-PACKAGES
set -u
NAME=check-deb
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/vm/chroot.sh
. tests/vm/chroot.sh
chroot_begin deb "$1"
names='gantryd-rados python3-gantry libgantry-cuobject-dev libgantry-cuobject1 libgantry-server-dev libgantry-server0 libgantry-dev gantry-tools gantry-softnic gantryd libgantry0'
passed=0
ok() { passed=$((passed + 1)); echo "ok   $*"; }

echo "$NAME: rpm spec"
rpmspec -P --define "_topdir $T/rpm" packaging/gantry.spec >"$T/spec" 2>&1 || die "rpmspec: $(cat "$T/spec")"
grep -q "^Version: *$(cat VERSION)\$" "$T/spec" || die "packaging/gantry.spec is not of version $(cat VERSION)"
ok "rpmspec parses packaging/gantry.spec"

chroot_base "$R"
mkdir -p "$R/debs"
cp "$debs"/*.deb "$R/debs/"
in_chroot "$R" apt-get -q update >"$T/log" 2>&1 || die "apt-get update: $(tail -n 3 "$T/log")"

# Everything below /, but for what apt and ldconfig write for themselves.
tree() { (cd "$R" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./var/cache -o -path ./var/lib/dpkg -o \
	-path ./var/lib/apt -o -path ./var/log -o -path ./tmp -o -path ./debs -o -path ./etc/ld.so.cache \) -prune -o -print) | sort; }

# The dependencies stay when gantry goes, so the comparison is with a system that has them.
in_chroot "$R" sh -c 'apt-get -q -y --no-install-recommends install /debs/*.deb gcc g++ libc6-dev pkg-config curl && dpkg --purge '"$names" \
	>"$T/log" 2>&1 || die "first installation: $(tail -n 5 "$T/log")"
tree >"$T/before"
passwd=$(cat "$R/etc/passwd")

in_chroot "$R" sh -c 'dpkg -i /debs/*.deb' >"$T/log" 2>&1 || die "dpkg -i: $(tail -n 5 "$T/log")"
grep -qiE 'warning|error' "$T/log" && die "dpkg -i: $(cat "$T/log")"
ok "they install"
in_chroot "$R" dpkg --audit | grep . && die "dpkg --audit"
in_chroot "$R" sh -c 'for p in '"$names"'; do dpkg --verify $p; done' | grep . && die "dpkg --verify"
in_chroot "$R" dpkg-query -W -f '${Conffiles}\n' gantryd | grep -q ' /etc/gantry/gantryd.yaml ' || die "gantryd.yaml is no conffile"
ok "they are whole, and gantryd.yaml is a conffile"
[ "$(in_chroot "$R" stat -c '%U %G %a' /var/lib/gantry /var/lib/gantry/disk0 | sort -u)" = "gantry gantry 700" ] || die "/var/lib/gantry"
[ ! -e "$R/etc/systemd/system/multi-user.target.wants/gantryd.service" ] || die "the service was enabled"
ok "user and directories are there, the service is not enabled"
for p in gantryd.8 gantryd-rados.8 gantryd.yaml.5 gantry.1 libgantry.3 libgantry-server.3 softnicctl.8 gantry-protocol.7 gantry-cuobject.7; do
	[ -s "$R/usr/share/man/man${p##*.}/$p.gz" ] || die "no manual $p"
done
ok "every manual is there"
# The module for RADOS: the daemon finds it, and the drop-in lies beside the unit that it is for.
unit=$(in_chroot "$R" dpkg -L gantryd | grep '/gantryd\.service$') || die "no unit"
in_chroot "$R" dpkg -L gantryd-rados | grep -qx "$unit.d/rados.conf" || die "no drop-in of gantryd-rados at $unit.d"
printf '%s\n' 'listen: [{ address: "127.0.0.1:0", dialect: s3, anonymous: true }]' 'store: { backend: rados }' \
	'rados: { conf: /etc/no-ceph.conf, user: gantry, meta_pool: m, data_pool: d }' >"$R/tmp/rados.yaml"
rados_says() { # $1: what it says
	in_chroot "$R" gantryd -c /tmp/rados.yaml --format >"$T/log" 2>&1
	[ $? = 78 ] && grep -q "$1" "$T/log" || die "gantryd-rados: $(cat "$T/log")"
}
rados_says '/etc/no-ceph.conf: No such file'

# The installed example, smaller.
cat >"$R/etc/gantry/conf.d/small.yaml" <<-YAML
	cores: 1
	memory: { buffers: 64MiB, index: 64MiB }
	admin: { socket: /tmp/gantry-admin.sock }
	rdma: { allow_special: [loopback, self] }
	store: { disks: [{ path: /var/lib/gantry/disk0, size: 512MiB }] }
	listen: [{ address: "127.0.0.1:0", dialect: s3, anonymous: true }]
YAML
cat >"$R/tmp/run" <<'RUN'
#!/bin/sh
# As gantry: a store, the daemon on the software NIC, an object in and out by RDMA and over HTTP.
set -eu
cd /tmp
export SOFTNIC_DIR=/tmp/nic
mkdir -p "$SOFTNIC_DIR"
gantryd --check-config
gantryd --format | grep '^export AWS_' >/tmp/first-key
with-softnic gantryd --ready-file /tmp/ready >/tmp/daemon.log 2>&1 &
pid=$!
trap 'kill -9 $pid 2>/dev/null || :' EXIT
i=0
until [ -s /tmp/ready ]; do
	i=$((i + 1))
	[ $i -lt 300 ] && kill -0 $pid || { cat /tmp/daemon.log; exit 1; }
	sleep 0.1
done
at=$(sed 's/.*s3=\([^ ]*\).*/\1/' /tmp/ready)
head -c 3000000 /dev/urandom >/tmp/in
curl -sSf -X PUT "http://$at/bucket"
curl -sSf -T /tmp/in "http://$at/bucket/http"
curl -sSf "http://$at/bucket/http" | cmp - /tmp/in
with-softnic gantry --require-rdma -q put /tmp/in "http://$at/bucket/rdma"
with-softnic gantry --require-rdma -q get "http://$at/bucket/rdma" /tmp/out
cmp /tmp/in /tmp/out
gantry key new --read-only --json -q --admin /tmp/gantry-admin.sock | grep -q '"reloaded":true'
. /tmp/first-key
gantry -q put /tmp/in "http://$at/bucket/signed"
with-softnic python3 -W error - "http://$at/bucket" <<PYTHON
import gantry, sys
data = open("/tmp/in", "rb").read()
with gantry.Client(sys.argv[1], require_rdma=True) as client:
    assert client.put("python", data).path == "rdma"
    assert client.get("rdma") == data == client.get("python")
assert gantry.__file__.startswith("/usr/lib/python3/dist-packages/"), gantry.__file__
PYTHON
kill -TERM $pid
wait $pid
trap - EXIT
gantryd --fsck
RUN
chmod 755 "$R/tmp/run"
in_chroot "$R" runuser -u gantry -- /tmp/run >"$T/log" 2>&1 || die "the installed daemon: $(cat "$T/log" "$R/tmp/daemon.log" 2>/dev/null)"
ok "the installed daemon serves, as gantry, by RDMA and over HTTP, also to Python"
cat >"$R/tmp/p.c" <<-C
	#include <gantry.h>
	#include <stdio.h>
	int main(void) { return printf("%s\n", gantry_version()) < 0; }
C
in_chroot "$R" sh -c 'cc -Wall -Werror -o /tmp/p /tmp/p.c $(pkg-config --cflags --libs libgantry) && /tmp/p' >"$T/log" 2>&1 ||
	die "a program against libgantry: $(cat "$T/log")"
[ "$(cat "$T/log")" = "$(cat VERSION)" ] || die "the library says $(cat "$T/log")"
ok "a program compiles and runs against libgantry"
sed 's/gantry.h/gantry_server.h/; s/gantry_version/gantry_server_version/' "$R/tmp/p.c" >"$R/tmp/s.c"
in_chroot "$R" sh -c 'cc -Wall -Werror -o /tmp/s /tmp/s.c $(pkg-config --cflags --libs libgantry-server) && /tmp/s' >"$T/log" 2>&1 ||
	die "a program against libgantry-server: $(cat "$T/log")"
[ "$(cat "$T/log")" = "$(cat VERSION)" ] || die "the server's library says $(cat "$T/log")"
ok "a program compiles and runs against libgantry-server"

# Another cuObject is there, at its own paths: it stays what it was, and is what is found without the wrapper.
mkdir -p "$R/usr/local/cuda/lib64" "$R/usr/local/cuda/include"
cp tests/cuobject/names.cpp tests/cuobject/round_trip.cpp tests/cuobject/play.hpp "$R/tmp/"
echo '#error "another cuObject"' >"$R/usr/local/cuda/include/cuobjclient.h"
cp "$R/usr/local/cuda/include/cuobjclient.h" "$R/usr/local/cuda/include/cuobjserver.h"
# The programs of docs/cuobject.md, by its lines.
for p in client server; do sed -n "/^\/\/ $p.cpp: /,/^\`\`\`/p" docs/cuobject.md | sed '$d' >"$R/tmp/$p.cpp"; done
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$R/tmp/cuobject" <<-'RUN'
	#!/bin/sh
	set -eux
	cd /tmp
	echo 'void nothing(void) { }' | gcc -shared -Wl,-soname,libcuobjclient.so.1 -o /usr/local/cuda/lib64/libcuobjclient.so.1 -x c -
	echo /usr/local/cuda/lib64 >/etc/ld.so.conf.d/cuda.conf
	ldconfig
	g++ -o names names.cpp -ldl
	! ./names libcuobjclient.so.1
	with-gantry-cuobject -s ./names libcuobjclient.so.1
	! g++ -I/usr/local/cuda/include -c -o x.o round_trip.cpp
	with-gantry-cuobject g++ -o round_trip round_trip.cpp -lcuobjclient -lcufile -lpthread
	with-gantry-cuobject sh -c 'g++ -o round_trip round_trip.cpp $(pkg-config --cflags --libs cuobjclient-13.3)'
	with-gantry-cuobject g++ -o client client.cpp -lcuobjclient
	with-gantry-cuobject g++ -o server server.cpp -lcuobjserver
	GANTRY_SERVER_ALLOW=loopback with-gantry-cuobject -s ./server 127.0.0.1 "$1" >server.out &
	i=0
	until grep -q ready server.out; do i=$((i + 1)); [ $i -lt 200 ]; sleep 0.1; done
	with-gantry-cuobject -s ./client 127.0.0.1 "$1" /any/key
	kill $!
	ldconfig -p | grep libcuobj | grep -v /usr/local/cuda && exit 1
	rm -r /etc/ld.so.conf.d/cuda.conf /usr/local/cuda
	ldconfig
RUN
chmod 755 "$R/tmp/cuobject"
in_chroot "$R" sh -c "SOFTNIC_DIR=/tmp /tmp/cuobject $port" >"$T/log" 2>&1 || die "cuObject: $(cat "$T/log")"
ok "programs for cuObject, those of docs/cuobject.md too, are built and run by with-gantry-cuobject, beside another library of that name"

in_chroot "$R" dpkg --remove gantryd-rados >"$T/log" 2>&1 || die "remove gantryd-rados: $(tail -n 5 "$T/log")"
rados_says 'package gantryd-rados'
ok "gantryd-rados brings the module and the drop-in; without it the daemon names the package"
in_chroot "$R" sh -c 'dpkg --remove '"$names" >"$T/log" 2>&1 || die "remove: $(tail -n 5 "$T/log")"
[ -e "$R/etc/gantry/gantryd.yaml" ] || die "removing took the configuration"
in_chroot "$R" sh -c 'dpkg --purge '"$names" >"$T/log" 2>&1 || die "purge: $(tail -n 5 "$T/log")"
grep -q 'credentials.yaml, with all access keys and their secrets, was removed' "$T/log" || die "purging does not say that the access keys go"
grep -q 'objects in /var/lib/gantry' "$T/log" || die "purging says nothing of the store that it leaves"
[ -d "$R/var/lib/gantry/disk0" ] || die "purging took a store"
[ ! -e "$R/var/lib/gantry/credentials.yaml" ] || die "purging left access keys"
ok "removing leaves the configuration, purging leaves the store and says so"
rm -rf "$R/var/lib/gantry" "$R/etc/gantry/conf.d/small.yaml"
rmdir "$R/etc/gantry/conf.d" "$R/etc/gantry" 2>/dev/null
in_chroot "$R" sh -c 'dpkg -i /debs/*.deb && dpkg --purge '"$names" >"$T/log" 2>&1 || die "again: $(tail -n 5 "$T/log")"
tree >"$T/after"
diff "$T/before" "$T/after" || die "purging leaves or takes these"
[ "$passwd" = "$(cat "$R/etc/passwd")" ] || die "/etc/passwd"
ok "installed and purged without a store, nothing is left but the user"
echo "$NAME: $passed passed, 0 failed, 0 skipped (${SECONDS} s)"

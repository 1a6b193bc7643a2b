#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make check-containers: packaging/container/Containerfile is built over a Debian that debootstrap makes, and run as containers are: root file
# system read-only, no capability, a user of its own, the seccomp profile of packaging/container; and under the profile that the container
# tools bring, which forbids io_uring.  Then the profile around the system's tests with RDMA, and packaging/kubernetes and the compose file
# against the published schemas.
#     tests/containers/run.sh DIRECTORY-OF-THE-PACKAGES
# buildah builds (storage driver vfs, isolation chroot), podman runs, with runc, as root; without networks: clients join the container's.
set -u
NAME=check-containers
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/vm/chroot.sh
. tests/vm/chroot.sh
case ,${SKIP:-}, in *,containers,*) echo "$NAME: SKIP=containers"; exit 0 ;; esac
need_root debootstrap buildah podman runc nsenter
debs=$(realpath "$1")
ls "$debs"/gantryd_*.deb >/dev/null 2>&1 || die "no packages in $debs: make deb"
T=$(mktemp -d "${TMPDIR:-/tmp}/gantry-containers.XXXXXX")
store=(--root "$T/storage" --runroot "$T/runroot" --storage-driver vfs)
pod() { podman "${store[@]}" --tmpdir "$T/podman" --runtime runc --cgroup-manager cgroupfs "$@"; }
at_exit() {
	pod rm --force --all --time 0 >/dev/null 2>&1
	umount -l "$T"/storage/vfs-containers/*/userdata/shm 2>/dev/null
	if [ "${KEEP:-}" = 1 ]; then echo "$NAME: kept $T"; else rm -rf --one-file-system "$T"; fi
}
trap at_exit EXIT
trap 'exit 130' INT TERM
passed=0 skipped=0
ok() { passed=$((passed + 1)); echo "ok   $*"; }
eq() { [ "$1" = "$2" ] || die "$3: have \"$1\", want \"$2\""; }

# ---- the image ----

chroot_base "$T/base"
rm -f "$T/base/usr/sbin/policy-rc.d"
tar -C "$T/base" -c . | podman "${store[@]}" --tmpdir "$T/podman" import - localhost/debian:12 >"$T/log" 2>&1 || die "import: $(tail -n 3 "$T/log")"
rm -rf --one-file-system "$T/base"
mkdir -p "$CACHE/archives/partial"
# build BASE PACKAGES TAG CONTEXT: the packages that were fetched before are kept.
build() {
	flock "$CACHE/archives.lock" buildah "${store[@]}" build --isolation chroot --format docker --layers=false --build-arg BASE="$1" \
		--build-arg PACKAGES="$2" ${http_proxy:+--build-arg http_proxy="$http_proxy"} ${https_proxy:+--build-arg https_proxy="$https_proxy"} \
		--volume "$CACHE/archives:/var/cache/apt/archives" -f packaging/container/Containerfile -t "$3" "$4" >"$T/log" 2>&1
}
# What .dockerignore lets through: the files of the tree, and the packages.
C=$T/context
mkdir -p "$C/build/deb"
git ls-files -z -co --exclude-standard | xargs -0 cp -p --parents -t "$C" || die "no copy of the tree"
cp "$debs"/*.deb "$C/build/deb/"
build localhost/debian:12 debs localhost/gantry "$C" || die "the image from packages: $(tail -n 15 "$T/log")"
ok "buildah builds the image from the packages"
! build localhost/debian:12 nonsense localhost/none "$C" || die "PACKAGES=nonsense was built"
grep -q 'PACKAGES=nonsense: it is tree or debs' "$T/log" || die "PACKAGES=nonsense: $(tail -n 5 "$T/log")"
ok "PACKAGES is tree or debs"
about() { podman "${store[@]}" image inspect --format "$1" localhost/gantry; }
eq "$(about '{{.Config.User}} {{.Config.StopSignal}} {{.Config.Entrypoint}}')" "10001:10001 SIGTERM [/usr/sbin/gantryd]" "the image"
eq "$(about '{{.HealthCheck.Test}}')" "[CMD gantry --quiet health]" "its health check"
eq "$(about '{{index .Labels "org.opencontainers.image.title"}}')" gantryd "its label"
ok "the image says user, signal, entry point, health check and what it is"

# ---- run as containers are ----

limits=(--ulimit "nofile=1024:$(ulimit -Hn | sed 's/unlimited/65536/')" --ulimit nproc=4096:4096)
confined=("${limits[@]}" --network none --read-only --cap-drop all --security-opt no-new-privileges
	-v "$T/volume:/var/lib/gantry" -e GANTRY_MEMORY_BUFFERS=64MiB -e GANTRY_MEMORY_INDEX=64MiB
	-e 'GANTRY_STORE_DISKS=[{path: /var/lib/gantry/disk0, size: 1GiB}]')
ours=(--security-opt "seccomp=$PWD/packaging/container/seccomp.json")
# gantryd PROFILE-WORDS -- WORDS: one command of it, in the foreground
once() { pod run --rm --no-healthcheck "${confined[@]}" "${ours[@]}" localhost/gantry "$@" >"$T/once" 2>&1; }
install -d -o 10001 -g 10001 -m 700 "$T/volume"
once --format --if-absent || die "--format --if-absent: $(cat "$T/once")"
grep -q 'made a store on 1 disk' "$T/once" || die "--format --if-absent: $(cat "$T/once")"
key=$(sed -n 's/^ *export AWS_ACCESS_KEY_ID=//p' "$T/once") secret=$(sed -n 's/^ *export AWS_SECRET_ACCESS_KEY=//p' "$T/once")
if [ -z "$key" ] || [ -z "$secret" ]; then die "--format does not say the first key: $(cat "$T/once")"; fi
once --check-config || die "--check-config: $(cat "$T/once")"
once --format --if-absent || die "--format --if-absent again: $(cat "$T/once")"
grep -q 'there is a store already' "$T/once" || die "--format --if-absent again: $(cat "$T/once")"
ok "a volume gets its store and a first key, once"

# start NAME WORDS: the daemon, and waits until its health check passes.
start() {
	local name=$1 i
	shift
	pod run --detach --health-interval disable --name "$name" "${confined[@]}" "$@" localhost/gantry >"$T/log" 2>&1 || die "$name: $(cat "$T/log")"
	for ((i = 0; i < 300; i++)); do
		! pod healthcheck run "$name" >/dev/null 2>&1 || break
		[ "$(pod inspect --format '{{.State.Running}}' "$name")" = true ] || die "$name ended: $(pod logs "$name" 2>&1 | tail -n 20)"
		sleep 0.2
	done
	pod healthcheck run "$name" >/dev/null 2>&1 || die "$name: no health within 60 s: $(pod logs "$name" 2>&1 | tail -n 20)"
	PID=$(pod inspect --format '{{.State.Pid}}' "$name")
}
within() { nsenter --target "$PID" --net -- env AWS_ACCESS_KEY_ID="$key" AWS_SECRET_ACCESS_KEY="$secret" AWS_DEFAULT_REGION=us-east-1 "$@"; }
s3api() { within /usr/bin/aws --endpoint-url http://127.0.0.1:9000 s3api "$@"; }
backend() { within curl -sS http://127.0.0.1:9001/metrics | sed -n 's/^gantry_io_backend{backend="\(.*\)"} 1$/\1/p'; }
# An object in and out, signed, with a checksum that both sides verify.
serves() {
	head -c 3000000 /dev/urandom >"$T/in"
	s3api put-object --bucket boxes --key "$1" --body "$T/in" --checksum-algorithm SHA256 >"$T/put" 2>&1 || die "$1: put: $(cat "$T/put")"
	eq "$(sed -n 's/.*"ChecksumSHA256": "\(.*\)".*/\1/p' "$T/put")" "$(openssl dgst -sha256 -binary "$T/in" | base64)" "$1: the checksum"
	s3api get-object --bucket boxes --key "$1" --checksum-mode ENABLED "$T/out" >"$T/get" 2>&1 || die "$1: get: $(cat "$T/get")"
	cmp "$T/in" "$T/out" || die "$1: other bytes"
}
stopped() {
	pod stop --time 40 "$1" >/dev/null 2>&1 || die "$1: stop"
	eq "$(pod inspect --format '{{.State.ExitCode}}' "$1")" 0 "$1: exit status after SIGTERM"
	pod logs "$1" >"$T/log" 2>&1
	grep -q 'SIGTERM: draining' "$T/log" || die "$1: SIGTERM did not drain: $(tail -n 5 "$T/log")"
}

start own "${ours[@]}"
eq "$(backend)" io_uring "under our profile"
eq "$(awk '$1 == "Seccomp:" { print $2 }' "/proc/$PID/status")" 2 "a filter of system calls"
eq "$(awk '$1 == "NSpid:" { print $NF } $1 == "Uid:" || $1 == "CapEff:" || $1 == "CapBnd:" { print $2 }' "/proc/$PID/status" | tr '\n' ' ')" \
	"10001 1 0000000000000000 0000000000000000 " "user, process number, capabilities"
pod exec own touch /usr/it >"$T/log" 2>&1 && die "the root file system can be written"
grep -q 'Read-only file system' "$T/log" || die "read-only: $(cat "$T/log")"
ok "it runs as user 10001 and process 1, without a capability, on a read-only root, with io_uring by the profile"
s3api create-bucket --bucket boxes >"$T/log" 2>&1 || die "create-bucket: $(cat "$T/log")"
serves own
eq "$(within curl -sS -o /dev/null -w '%{http_code}' http://127.0.0.1:9000/boxes/own)" 403 "an unsigned request"
eq "$(within curl -sS -o /dev/null -w '%{http_code} ' http://127.0.0.1:9001/livez -o /dev/null http://127.0.0.1:9001/readyz)" "200 200 " "probes"
ok "signed objects go in and come out with their checksums; probes answer"
pod exec own gantry status | grep -q s3 || die "gantry status in the container"
kill -STOP "$PID"
pod healthcheck run own >/dev/null 2>&1 && die "a daemon that stands still is healthy"
kill -CONT "$PID"
ok "the health check passes, and not when the daemon stands still"
# Who is left behind in a container is process 1's.
pod exec own sh -c 'sleep 1000 </dev/null >/dev/null 2>&1 &' || die "exec"
for ((i = 0; i < 100; i++)); do
	left=$(cat /proc/"$PID"/task/*/children | tr -d ' ')
	[ -z "$left" ] || break
	sleep 0.1
done
[ -n "$left" ] || die "what was left behind is not process 1's"
kill "$left"
for ((i = 0; i < 100; i++)); do
	[ -n "$(cat /proc/"$PID"/task/*/children)" ] || break
	sleep 0.1
done
eq "$(cat /proc/"$PID"/task/*/children)" "" "a zombie"
stopped own
ok "no zombies; SIGTERM drains and ends it with 0"

# ---- under the tools' own profile ----

start default
eq "$(backend)" threads "under podman's profile ($(dpkg-query -W -f '${Version}' golang-github-containers-common))"
pod logs default 2>&1 | grep -q 'io_uring cannot be used: .*a filter of system calls denies it.*threads do its work' || die "no warning: $(pod logs default 2>&1)"
s3api get-object --bucket boxes --key own "$T/out" >"$T/log" 2>&1 || die "what was there: $(cat "$T/log")"
cmp "$T/in" "$T/out" || die "what was there: other bytes"
serves default
stopped default
ok "where io_uring is forbidden it says so, serves on threads, and has what was there"
once --fsck || die "--fsck: $(cat "$T/once")"
pod rm --force --all >/dev/null 2>&1
# As packaging/kubernetes has it: its configuration over the image's, and access keys that root owns and the pod's group may read.
mkdir "$T/conf.d" "$T/credentials"
cp packaging/kubernetes/base/gantryd.yaml "$T/conf.d/"
build/release/gantry key new --file "$T/credentials/credentials.yaml" >"$T/log" 2>&1 || die "gantry key new: $(cat "$T/log")"
chown 0:10001 "$T/credentials/credentials.yaml"
chmod 0440 "$T/credentials/credentials.yaml"
in_pod=(-v "$T/conf.d:/etc/gantry/conf.d:ro" -v "$T/credentials:/etc/gantry/credentials:ro")
pod run --rm --no-healthcheck "${confined[@]}" "${ours[@]}" "${in_pod[@]}" localhost/gantry --check-config >"$T/log" 2>&1 || die "the configuration of the pods: $(cat "$T/log")"
ok "the configuration and the mounted access keys of the pods are good"
# A configuration that is wrong is said, and ends with the status that orchestrators should not restart on.
pod run --rm --no-healthcheck "${confined[@]}" "${ours[@]}" -e GANTRY_RDMA_NONSENSE=1 localhost/gantry >"$T/log" 2>&1
eq "$?" 78 "a variable that is no key: $(cat "$T/log")"
ok "the store is clean; a wrong variable of the environment is 78"

# ---- the profile and RDMA ----

# The software NIC reads and writes its clients' memory by two calls that an adapter does not need.
export DAEMON_WRAP="$PWD/tests/containers/under_profile $PWD/packaging/container/seccomp.json --also process_vm_readv,process_vm_writev"
for t in smoke put get many large overwrite scrub reload tls; do
	timeout 300 "tests/system/$t.sh" >"$T/log" 2>&1 || die "tests/system/$t.sh under the profile: $(tail -n 20 "$T/log")"
done
unset DAEMON_WRAP
ok "system tests with RDMA pass under the profile"

# ---- built from the tree ----

# What builds is there already, so this fetches nothing but what the tree may want since.
# shellcheck disable=SC2046
chroot_base "$T/base" $(LINTIAN=no scripts/deps --names build deb)
rm -f "$T/base/usr/sbin/policy-rc.d"
tar -C "$T/base" -c . | podman "${store[@]}" --tmpdir "$T/podman" import - localhost/builder:12 >"$T/log" 2>&1 || die "import: $(tail -n 3 "$T/log")"
rm -rf --one-file-system "$T/base" "$C/build"
build localhost/builder:12 tree localhost/gantry-tree "$C" || die "the image from the tree: $(tail -n 15 "$T/log")"
pod run --rm --no-healthcheck "${confined[@]}" "${ours[@]}" localhost/gantry-tree --version >"$T/log" 2>&1 || die "the image from the tree: $(cat "$T/log")"
grep -q "^gantryd $(cat VERSION)\b" "$T/log" || die "the image from the tree: $(cat "$T/log")"
ok "buildah builds the image from the tree"

# ---- manifests ----

tests/containers/manifests.sh >"$T/log" 2>&1
rc=$?
cat "$T/log"
[ $rc = 0 ] || die "manifests"
passed=$((passed + $(grep -c '^ok ' "$T/log"))) skipped=$((skipped + $(grep -c '^skip ' "$T/log")))
echo "$NAME: $passed passed, 0 failed, $skipped skipped (${SECONDS} s)"

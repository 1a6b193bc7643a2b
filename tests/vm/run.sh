#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make check-vm: the packages under Debian's own systemd and its Linux 6.1, with Soft-RoCE, in a virtual machine.
#     tests/vm/run.sh DIRECTORY-OF-THE-PACKAGES [WORD...]     (only the checks of the guest that have one of the words in their names)
# The machine is qemu without hardware support (TCG), so that it runs wherever this runs, a container without /dev/kvm included.
# Its disk is made anew each time from a directory that debootstrap filled (chroot.sh); its kernel is Debian's package, unpacked.
# All of that is fetched at the first run and kept in $GANTRY_CACHE.  guest.sh, with guest_rc.sh, runs in it, as a unit, and its lines come out here.
#   VM_SECS=900   how long it may take once it boots      KEEP=1   keep console and disk, say where      SKIP=vm   not at all
set -u
NAME=check-vm
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/vm/chroot.sh
. tests/vm/chroot.sh
case ,${SKIP:-}, in *,vm,*) echo "$NAME: SKIP=vm"; exit 0 ;; esac
need_root debootstrap qemu-system-x86_64 busybox cpio mke2fs depmod modprobe xz gcc
[ "$(uname -m)" = x86_64 ] || die "only x86-64 machines (SKIP=vm skips this)"
debs=$(realpath "$1")
shift
ls "$debs"/gantryd_*.deb >/dev/null 2>&1 || die "no packages in $debs: make deb"
T=$(mktemp -d "${TMPDIR:-/tmp}/gantry-vm.XXXXXX")
Q=''
at_exit() {
	[ -z "$Q" ] || kill -KILL "$Q" 2>/dev/null
	if [ "${KEEP:-}" = 1 ]; then echo "$NAME: kept $T"; else rm -rf --one-file-system "$T"; fi
}
trap at_exit EXIT
trap 'exit 130' INT TERM

# ---- the system on its disk
R=$T/root
chroot_base "$R" systemd systemd-sysv udev dbus kmod iproute2 procps curl util-linux ibverbs-providers ibverbs-utils \
	libmicrohttpd12 liburing2 libyaml-0-2 libisal2 librdmacm1 libcurl4 libxml2 libjansson4
mkdir "$R/debs"
cp "$debs"/*.deb "$R/debs/"
in_chroot "$R" sh -c 'apt-get -q -y --no-install-recommends install /debs/*.deb || { apt-get -q update && apt-get -q -y --no-install-recommends install /debs/*.deb; }' \
	>"$T/log" 2>&1 || die "installing the packages: $(tail -n 5 "$T/log")"
rm -rf "$R/debs" "$R/usr/sbin/policy-rc.d"

# ---- the kernel
K=$CACHE/kernel
if [ ! -e "$K/vmlinux" ]; then
	echo "$NAME: fetching Debian's kernel"
	rm -rf "$K"
	mkdir -p "$K/get"
	cp -a "$R" "$T/fetch" || die "no room"
	# shellcheck disable=SC2016
	in_chroot "$T/fetch" sh -c 'apt-get -q update && cd /tmp && apt-get -q download $(apt-cache depends linux-image-amd64 | sed -n "s/.*Depends: \(linux-image-[0-9].*\)/\1/p" | head -n 1)' \
		>"$T/log" 2>&1 || die "the kernel's package: $(tail -n 3 "$T/log")"
	dpkg-deb -x "$T"/fetch/tmp/linux-image-*.deb "$K" || die "the kernel's package"
	rm -rf "$T/fetch"
	# What the emulator boots at once lies packed in the image: the first XZ stream in it.
	at=$(LC_ALL=C grep -obUaPm1 '\xfd7zXZ\x00' "$K"/boot/vmlinuz-* | head -n 1 | cut -d: -f1)
	tail -c "+$((at + 1))" "$K"/boot/vmlinuz-* | xz -dcq >"$K/vmlinux.tmp" 2>/dev/null
	[ "$(head -c 4 "$K/vmlinux.tmp" | tail -c 3)" = ELF ] || die "the kernel's image is not packed as expected"
	mv "$K/vmlinux.tmp" "$K/vmlinux"
fi
V=$(basename "$K"/lib/modules/*)
mkdir -p "$T/mod" "$R/lib/modules/$V"
ln -s "$K/lib" "$T/mod/lib"
[ -e "$K/lib/modules/$V/modules.dep.bin" ] || depmod -b "$K" "$V"
modules() { for m in "$@"; do modprobe -d "$K" -S "$V" --show-depends "$m" || die "no module $m in $V"; done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++'; }
boot=$(modules virtio_pci virtio_blk ext4)
[ -n "$boot" ] || die "no modules in $K"
cp "$K/lib/modules/$V"/modules.{order,builtin,builtin.modinfo} "$R/lib/modules/$V/"
for m in $(modules virtio_pci virtio_blk ext4 crc32c_generic crc32_generic ib_uverbs rdma_ucm rdma_rxe dummy veth sch_netem autofs4); do
	d=$R${m#"$K"}
	mkdir -p "${d%/*}"
	cp "$m" "$d"
done
depmod -b "$R" "$V"

# The first process: the modules, the disk, systemd.
mkdir -p "$T/ird/bin" "$T/ird/m" "$T/ird/proc" "$T/ird/dev" "$T/ird/new"
cp "$(command -v busybox)" "$T/ird/bin/busybox"
{
	printf '#!/bin/busybox sh\n/bin/busybox mount -t proc proc /proc\n/bin/busybox mount -t devtmpfs dev /dev\n'
	for m in $boot; do
		cp "$m" "$T/ird/m/"
		echo "/bin/busybox insmod /m/${m##*/}"
	done
	printf 'i=0\nuntil [ -b /dev/vda ] || [ $i -gt 100 ]; do i=$((i + 1)); /bin/busybox sleep 0.1; done\n'
	printf '/bin/busybox mount -t ext4 /dev/vda /new\n/bin/busybox umount /proc\n/bin/busybox mount --move /dev /new/dev\n'
	printf 'exec /bin/busybox switch_root /new /lib/systemd/systemd\n'
} >"$T/ird/init"
chmod 755 "$T/ird/init"
(cd "$T/ird" && find . | cpio -o -H newc --quiet) >"$T/initrd"

# ---- what runs in it
gcc -O1 -Wall -Wextra -Werror -static -o "$R/usr/local/bin/hang" tests/vm/hang.c || die "hang.c"
install -m 755 tests/vm/guest.sh tests/vm/guest_rc.sh build/release/tools/rawclient "$R/usr/local/bin/" || die "no rawclient: make toolbins"
printf '%s\n' "$@" >"$R/etc/vm-words"
cat >"$R/etc/systemd/system/guest.service" <<-UNIT
	[Unit]
	Description=The checks
	After=basic.target
	FailureAction=poweroff-immediate
	SuccessAction=poweroff-immediate
	[Service]
	Type=oneshot
	ExecStart=/usr/local/bin/guest.sh
	StandardOutput=file:/dev/ttyS1
	StandardError=inherit
	TimeoutStartSec=infinity
UNIT
mkdir -p "$R/etc/systemd/system/multi-user.target.wants"
ln -s ../guest.service "$R/etc/systemd/system/multi-user.target.wants/guest.service"
for u in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer getty.target serial-getty@ttyS0.service \
	systemd-timesyncd.service systemd-networkd-wait-online.service; do ln -sf /dev/null "$R/etc/systemd/system/$u"; done
echo vm >"$R/etc/hostname"
: >"$R/etc/fstab"
rm -rf "$R"/var/cache/apt/* "$R"/var/lib/apt/lists/*
truncate -s 3G "$T/disk"
mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1 -d "$R" "$T/disk" || die "mke2fs"
rm -rf --one-file-system "$R"

# ---- run it
echo "$NAME: made in $SECONDS s; booting Linux $V"
: >"$T/result"
started=$SECONDS
setpriv --pdeathsig KILL qemu-system-x86_64 -accel tcg,thread=multi,tb-size=256 -cpu max,-la57 -machine q35 -smp 2 -m 2560 \
	-nodefaults -no-user-config -display none -no-reboot -serial "file:$T/console" -serial "file:$T/result" \
	-drive "if=none,id=d,file=$T/disk,format=raw,cache=unsafe" -device virtio-blk-pci,drive=d \
	-kernel "$K/vmlinux" -initrd "$T/initrd" -append "console=ttyS0 quiet tsc=reliable reboot=t panic=-1 mitigations=off nokaslr \
init_on_alloc=0 audit=0 apparmor=0 cryptomgr.notests systemd.firstboot=no systemd.gpt_auto=0 systemd.show_status=0" \
	</dev/null >"$T/qemu" 2>&1 &
Q=$!
tail -q -s 0.2 --pid=$Q -f "$T/result" &
tail=$!
end=$((SECONDS + ${VM_SECS:-900}))
while kill -0 $Q 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 0.3; done
over=''
kill -0 $Q 2>/dev/null && over=1
kill -KILL $Q 2>/dev/null
wait $Q 2>/dev/null
Q=''
wait $tail 2>/dev/null
took="machine $((SECONDS - started)) s, all $SECONDS s"
if ! line=$(grep -a '^RESULT ' "$T/result"); then
	tail -n 30 "$T/console" "$T/qemu" >&2
	[ -z "$over" ] || die "not done after ${VM_SECS:-900} s (VM_SECS=)"
	die "the machine ended before its checks did"
fi
read -r _ passed failed _ <<<"${line%$'\r'}"
echo "$NAME: $passed passed, $failed failed, 0 skipped ($took)"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]

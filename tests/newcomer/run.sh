#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make check-newcomer: somebody new, in a fresh Debian that debootstrap makes, follows README's "A first server" word for word, then sections of
# docs/recipes.md and docs/python.md, and is told how long each step took.  At the end `gantry top` and the status page's data have what they moved.
# Then comes the second hour of the operator (second-hour): a disk is lost and replaced, a key and a certificate are renewed, and the page says who deleted an object.
#     tests/newcomer/run.sh DIRECTORY-OF-THE-PACKAGES
# The commands are taken from the pages.  Stand-ins, because this is a directory and no machine with a screen and systemd: `sudo` runs the command,
# `systemctl enable --now` runs what the unit's ExecStart= says as the unit's user, `editor` makes the store small, `xdg-open` fetches, `make deb` was run before.
set -u
NAME=check-newcomer
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/vm/chroot.sh
. tests/vm/chroot.sh
chroot_begin newcomer "$1"
# What the packages depend on, what the recipes' own programs are, and what a machine has: fetched once.
# shellcheck disable=SC2046
chroot_base "$R" systemd-standalone-sysusers systemd-standalone-tmpfiles iproute2 util-linux openssl jq curl python3 python3-boto3 python3-numpy awscli rclone s3cmd restic s3fs \
	libmicrohttpd12 liburing2 libyaml-0-2 libisal2 libibverbs1 librdmacm1 ibverbs-providers libcurl4 libxml2 libjansson4 libsystemd0 libssl3 libgnutls30
mkdir -p "$R/home/newcomer/gantry/build"
git ls-files -z | xargs -0 cp -p --parents -t "$R/home/newcomer/gantry" || die "no copy of the tree"
cp -r "$debs" "$R/home/newcomer/gantry/build/deb"

stand_in() {
	cat >"$R/usr/local/bin/$1"
	chmod 755 "$R/usr/local/bin/$1"
}
stand_in sudo <<-'END'
	#!/bin/sh
	exec "$@"
END
stand_in make <<-'END'
	#!/bin/sh
	[ "$*" = deb ] && ls build/deb/*.deb
END
stand_in editor <<-'END'
	#!/bin/sh
	sed -i 's/^\( *size: *\)64GiB/\11GiB/' "$1" && grep -q 'size: *1GiB' "$1"
END
stand_in xdg-open <<-'END'
	#!/bin/sh
	exec curl -sSf -o /tmp/page "$1"
END
stand_in systemctl <<-'END'
	#!/bin/bash
	unit=/lib/systemd/system/gantryd.service
	of() { sed -n "s/^$1=//p" $unit; }
	begin() {
		install -d -o gantry -g gantry -m 755 /run/gantry
		install -d -o gantry -g gantry -m 750 /var/log/gantry
		rm -f /tmp/ready
		STATE_DIRECTORY=/var/lib/gantry LOGS_DIRECTORY=/var/log/gantry setsid runuser -u "$(of User)" -- $(of ExecStart) --ready-file /tmp/ready >>/tmp/daemon.log 2>&1 </dev/null &
		for ((i = 0; i < 600; i++)); do
			[ ! -s /tmp/ready ] || { curl -sSf http://127.0.0.1:9001/status | jq .pid >/tmp/daemon.pid; return; }
			kill -0 $! 2>/dev/null || break
			sleep 0.1
		done
		cat /tmp/daemon.log >&2
		return 1
	}
	end() {
		kill "$(cat /tmp/daemon.pid)"
		for ((i = 0; i < 600; i++)); do kill -0 "$(cat /tmp/daemon.pid)" 2>/dev/null || return 0; sleep 0.1; done
		return 1
	}
	case "$*" in
	'enable --now gantryd' | 'start gantryd') begin ;;
	'stop gantryd') end ;;
	'restart gantryd') end && begin ;;
	'reload gantryd') runuser -u "$(of User)" -- $(of ExecReload) ;;
	*) echo "systemctl: no stand-in for: $*" >&2; exit 1 ;;
	esac
END
install -m 755 tests/newcomer/newcomer tests/newcomer/second-hour "$R/usr/local/bin/"
# No port of this machine's: the newcomer's network is its own.
if ! in_chroot "$R" unshare --net --pid --fork --kill-child /usr/local/bin/newcomer 2>"$T/err" | tee "$T/out" || ! grep -q '^newcomer: done$' "$T/out"; then
	die "$(tail -n 20 "$T/err" "$R/tmp/daemon.log" 2>/dev/null)"
fi
echo "$NAME: $(grep -c '^ok ' "$T/out") passed, 0 failed, 0 skipped (${SECONDS} s)"

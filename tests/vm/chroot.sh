# SPDX-License-Identifier: Apache-2.0
# A Debian system in a directory, for deb.sh and run.sh; sourced.  As root, with the network: everything comes from where this machine's own
# apt has Debian from (or GANTRY_MIRROR=URL), and is kept in $GANTRY_CACHE (~/.cache/gantry), 0.5 GB, so that the next run needs little of it.
#
#     chroot_begin WHAT DIRECTORY      for a check of the packages in DIRECTORY: sets debs, T (a directory of its own, removed at the end) and R, the root
#                                      to make; ends the script where SKIP names WHAT, root is not there or no packages are
#     chroot_base DIR [PACKAGE...]     a copy of the minimal system, with these packages, at DIR (which must not exist)
#     in_chroot DIR COMMAND...         with /proc, /sys, /dev and the packages already fetched, in a mount namespace of its own:
#                                      whatever happens, no mount is left behind; one at a time
# shellcheck shell=bash
SUITE=bookworm
CACHE=${GANTRY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gantry}

die() {
	echo "$NAME: FAIL: $*" >&2
	exit 1
}

# Sets MIRROR to the archive that the apt of this machine has Debian from, that with $SUITE first; and http_proxy as apt has it, where the
# environment says nothing.
_mirror() {
	local uris
	MIRROR=${GANTRY_MIRROR:-}
	if [ -z "$MIRROR" ]; then
		uris=$(apt-get indextargets --no-release-info --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
			awk -v suite="$SUITE" '$2 == "main" && $3 ~ /^https?:/ && ($1 == suite || $3 ~ /\/debian\/?$/) { print $1 != suite, $3 }' |
			LC_ALL=C sort -s -n -k 1,1 | cut -d' ' -f2)
		MIRROR=${uris%%$'\n'*}
	fi
	[ -n "$MIRROR" ] || die "apt here has no source of Debian (http or https, main, $SUITE or a path that ends in /debian): add one to" \
		"/etc/apt/sources.list.d, or name an archive in GANTRY_MIRROR=URL"
	if [ -z "${http_proxy:-}" ]; then
		http_proxy=''
		eval "$(apt-config shell http_proxy Acquire::http::Proxy 2>/dev/null)"
		if [ -n "$http_proxy" ] && [ "$http_proxy" != DIRECT ]; then export http_proxy; else unset http_proxy; fi
	fi
}

in_chroot() {
	local root=$1
	shift
	mkdir -p "$CACHE/archives/partial"
	# shellcheck disable=SC2016
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive \
		${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
		flock "$CACHE/archives.lock" unshare --mount --propagation private /bin/sh -c '
			root=$1 archives=$2
			shift 2
			mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" &&
				mount --bind "$archives" "$root/var/cache/apt/archives" || exit 125
			exec chroot "$root" "$@"' sh "$root" "$CACHE/archives" "$@"
}

# The minimal system, made once a month.
_base() {
	local base=$CACHE/base-$SUITE
	if [ -e "$base/.made" ] && [ -n "$(find "$base/.made" -mtime -30)" ]; then return; fi
	echo "$NAME: debootstrap $SUITE from $MIRROR"
	rm -rf "$base" "$base.tmp"
	debootstrap --variant=minbase --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$SUITE" "$base.tmp" "$MIRROR" \
		>"$CACHE/debootstrap.log" 2>&1 || die "debootstrap: $(tail -n 3 "$CACHE/debootstrap.log")"
	printf '#!/bin/sh\nexit 101\n' >"$base.tmp/usr/sbin/policy-rc.d"
	chmod 755 "$base.tmp/usr/sbin/policy-rc.d"
	touch "$base.tmp/.made"
	mv "$base.tmp" "$base"
}

# With packages: a second directory of the cache, named after them.
chroot_base() {
	local to=$1 from=$CACHE/base-$SUITE
	shift
	mkdir -p "$CACHE"
	exec 9>"$CACHE/lock"
	flock 9
	_mirror
	_base
	if [ $# -gt 0 ]; then
		from=$CACHE/with-$(echo "$SUITE $*" | md5sum | cut -c1-12)
		if [ ! -e "$from/.made" ] || [ "$from" -ot "$CACHE/base-$SUITE/.made" ]; then
			echo "$NAME: installing $*"
			rm -rf "$from" "$from.tmp"
			cp -a "$CACHE/base-$SUITE" "$from.tmp"
			cp -L /etc/resolv.conf "$from.tmp/etc/resolv.conf"
			in_chroot "$from.tmp" sh -c 'apt-get -q update && apt-get -q -y --no-install-recommends install "$@"' sh "$@" \
				>"$CACHE/install.log" 2>&1 || die "apt-get: $(tail -n 5 "$CACHE/install.log")"
			mv "$from.tmp" "$from"
		fi
	fi
	cp -a "$from" "$to"
	cp -L /etc/resolv.conf "$to/etc/resolv.conf"
	flock -u 9
}

need_root() {
	[ "$(id -u)" = 0 ] || die "root is needed"
	local c
	for c in "$@"; do command -v "$c" >/dev/null || die "no $c: scripts/deps chroot vm installs it"; done
	unshare --mount true 2>/dev/null || die "this machine lets nobody make a mount namespace"
}

chroot_begin() {
	case ,${SKIP:-}, in *,"$1",*) echo "$NAME: SKIP=$1"; exit 0 ;; esac
	need_root debootstrap
	debs=$(realpath "$2")
	ls "$debs"/gantryd_*.deb >/dev/null 2>&1 || die "no packages in $debs: make deb"
	T=$(mktemp -d "${TMPDIR:-/tmp}/gantry-$1.XXXXXX")
	trap 'rm -rf --one-file-system "$T"' EXIT
	trap 'exit 130' INT TERM
	R=$T/root
}

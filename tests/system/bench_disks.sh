#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/disks.sh waits for the slow disks that it starts, also where disks with another delay were there before: with programs in the
# places of nbdkit, nbdfuse and losetup, of which nbdfuse takes its time.
NO_NIC=1
. "$(dirname "$0")/lib.sh"
mkdir "$T/bin"
cat >"$T/bin/nbdkit" <<'END'
#!/usr/bin/python3
import signal, socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[sys.argv.index("-U") + 1])
signal.pause()
END
cat >"$T/bin/nbdfuse" <<'END'
#!/bin/sh
# -P PID DISK ...: PID is written when the disk is there, and stays.
sleep 0.3
touch "$3"
echo $$ >"$2"
exec sleep 1000
END
cat >"$T/bin/fusermount3" <<'END'
#!/bin/sh
rm "$2/disk"
END
cat >"$T/bin/losetup" <<'END'
#!/bin/sh
[ "$1" = -d ] || { [ -f "$4" ] && echo "${4%/disk}"; }
END
printf '#!/bin/sh\necho 0\n' >"$T/bin/id"
chmod +x "$T"/bin/*
PATH=$T/bin:$PATH
. "$ROOT/bench/disks.sh"
for ms in 0 1 0; do
	slow_disks 2 $ms
	assert_eq "${_slow[*]}" "$T/slow0 $T/slow1" "disks with a delay of $ms ms"
done
slow_disks_end
assert_eq "$(ls "$T"/slow?/)" "$(printf '%s:\n\n%s:' "$T/slow0/" "$T/slow1/")" "after the end"

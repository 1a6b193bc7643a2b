#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store simulation: random histories of sets of disks, in a third of which buckets have two copies (tests/sim/many_pairs.c), and
# before them those that went wrong once.  What these do changes with the store: they are no proof that what was wrong stays right, but
# cost nothing.
cd "$(dirname "$0")/../.." || exit 2
sim=${BUILD:-build/release}/sim/sim
# A copy of a disk that fails is let go when its slot has no second any more.
seeds="1015631 1017699 1005744 7011550"
# A change that the first has just made when it fails is none when the second becomes the first.
seeds+=" 7005301"
# Both disks of a slot fail, one after the other; the store is read-only when a change has only the first; a copy was made before that.
seeds+=" 30034537 7013740 7042511 20035091 30065333 50050192"
# Fewer disks than copies, and a disk that leaves: a drain ends.
seeds+=" 7003026 30051276 50011955 30038463"
# The newer superblock is lost, which alone had the table.
seeds+=" 9109 7014182 7028804 20001751"
# Readers while another disk becomes the first; a bucket that is made while a disk fails.
seeds+=" 70003101 70043251"
# Removals of what is in a bucket that is being made.
seeds+=" 31561 7017323 7023711"
# A sector that cannot be read, which is damage as wrong bytes are.
seeds+=" 242 732"
# A part of an upload in progress that one disk cannot give any more, while the other one is drained.
seeds+=" 1795507337122"
# A removal that a failing disk cut short, and a reader of a disk on which the bucket is not yet again.
seeds+=" 1795533417356 1795535467060"
# Documents of a bucket that are set while an object is PUT, in a bucket with a limit of its own.
seeds+=" 1795871873214"
# An object that is deleted while a drain reads it: its bytes are in progress, so a PUT is refused.
seeds+=" 601188 802222"
# A repair that is refused while the log has no room: the next read requests it again.
seeds+=" 1795969166478"
# The log has no room when the gate of a bucket that was made is to open; each of these histories has a disk without room.
without_room="30119"
for seed in $seeds; do
	"$sim" --pairs --replay "$seed" >/dev/null || { "$sim" --pairs --replay "$seed"; exit 1; }
done
for seed in $without_room; do
	"$sim" --pairs --no-room --replay "$seed" >/dev/null || { "$sim" --pairs --no-room --replay "$seed"; exit 1; }
done
exec "$sim" --pairs --histories "${HISTORIES:-460}"

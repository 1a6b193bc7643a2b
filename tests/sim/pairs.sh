#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store simulation: histories of buckets with two copies (tests/sim/many_pairs.c) that went wrong once.  What they do changes with
# the store; they are no proof that what was wrong stays right, but cost nothing.
cd "$(dirname "$0")/../.." || exit 2
sim=${BUILD:-build/release}/sim/sim
# A copy of a disk that fails is let go when its slot has no second any more.
seeds="1015631 1017699 1005744 7011550"
# A change that the first has just made when it fails is none when the second becomes the first.
seeds+=" 7005301"
# Removals of what is in a bucket that is being made.
seeds+=" 31561 7017323 7023711"
for seed in $seeds; do
	"$sim" --pairs --replay "$seed" || exit 1
done

# SPDX-License-Identifier: Apache-2.0
"""until(): wait_for of lib.sh, with its rule of lost wake-ups, for programs in Python; waits.sh tests both."""
import os
import time

USUAL_S = float(os.environ.get("WAIT_USUAL", "10"))


def _ticks():
    """The idle time and all time of the processors so far."""
    with open(os.environ.get("PROC_STAT", "/proc/stat"), encoding="ascii") as stat:
        t = [int(n) for n in stat.readline().split()[1:9]]
    return t[3], sum(t)


def until(what, test, seconds=60, pause=0.1, usual=USUAL_S):
    """Calls test() until it is true."""
    idle, everything = _ticks()
    began = time.monotonic()
    while not test():
        assert time.monotonic() < began + seconds, "in time: " + what
        time.sleep(pause)
    took = time.monotonic() - began
    if took > usual:
        idle2, everything2 = _ticks()
        assert (idle2 - idle) * 100 <= (everything2 - everything) * 80, (
            "it took %d s with idle processors, and more than %d s is not usual: a lost wake-up? %s" % (took, usual, what))

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""shim.py PLAYER LIBRARY GANTRY FILE URL: a put and a get of FILE's size by the player of a Python program written to cuObject
(tests/clients/cuobject/shim.py), in turns with `gantry put` and `gantry get`; the row shim_64m."""
import os
import statistics
import subprocess
import sys
import time

player, library, gantry, path, url = sys.argv[1:]
rounds = int(os.environ.get("BENCH_ROUNDS") or 7)
shim = subprocess.Popen(["/usr/bin/python3", player, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                        env={**os.environ, "BENCH": str(os.path.getsize(path)), "URL_S3": url})
assert shim.stdout.readline() == "ready\n"


def ask():
    shim.stdin.write("once\n")
    shim.stdin.flush()
    return float(shim.stdout.readline())


def command():
    begun = time.monotonic()
    for words in (["put", path, url + "/python/gantry"], ["get", url + "/python/gantry", path + ".got"]):
        subprocess.run([gantry, "--require-rdma", *words], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


# The first ones find everything cold.
ask(), command()
took = [(ask(), command()) for _ in range(rounds)]
shim.stdin.close()
assert shim.wait() == 0
ratios = sorted(a / b for a, b in took)
ratio = statistics.median(ratios)
spread = (ratios[-1 - rounds // 4] - ratios[rounds // 4]) / ratio
ours, reference = (statistics.median(t[i] for t in took) for i in (0, 1))
print(f"ROW\tshim_64m\tms\t{ours * 1000:.6g}\t{reference * 1000:.6g}\t{ratio:.3f}\t-\t{rounds}\t{spread:.3f}")

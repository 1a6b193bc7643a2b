# SPDX-License-Identifier: Apache-2.0
"""client_options.py GANTRY: each option of option.def with each command of command.def, and each row of mode.def.

A command takes all options that its help shows at once, and says that there is a word too many.  Of all other options given at once it
names each, and every option is also given alone to a command that refuses it, before the command and after it.  In the mode of a row of
mode.def each option of the row is refused, alone and together.  Each run ends with 2 and opens no device and no connection."""
import os
import re
import subprocess
import sys

GANTRY = sys.argv[1]
DEFS = "src/client/cmd/common/"
# Arguments that each option with one takes, by the option; others take 1.
ARGUMENT = {"transport": "rc", "path-mtu": "1024", "range": "0-1", "method": "get", "expires": "90", "largest": "64m"}
ENDS = {"version", "help"}  # they have no command
URL = "http://127.0.0.1:1/b/k"
# What a command line has in the mode of a row of mode.def, by the row, or by row and command.
MODES = {
    "NO_RDMA": "--no-rdma", "BENCH_HTTP": f"--way http {URL}", "BENCH_NO_RDMA": "--no-rdma", "RC": "--transport=rc",
    "NO_HTTPS": "", "ADMIN_SOCKET": "--admin=/no/socket", "SCALITY": "--scality", "CP_ONE": f"tests {URL}", "DOWNLOAD": f"{URL} x", "SYNC_ADDS": f"x {URL}",
    "LS_BUCKETS": "http://127.0.0.1:1/", "LS_JSON": f"--json {URL}", "RM_ONE": URL, "RB_EMPTY": URL, "BENCH_COMPARES": "--compare x y",
    "BENCH_MEASURES": URL, "BENCH_HERE": URL, "BENCH_HOSTS": f"--hosts a,b {URL}", "BENCH_NO_CPU": URL, "BENCH_COUNTS": f"--count 9 {URL}",
    "HW_LISTENS": "--listen", "HW_CHECKS": "", "NOT_MUTE": "unmute disk_full", "NOT_NEW": "list", "NOT_UNTIL": "revoke x", "NOT_LIST": "new",
    "NOT_REVOKE": "rotate x", "KEY_COMPARES": "list --compare a", "NOT_SET": "show b", "NOT_ADD": "drain x", "NOT_WRITE": "cancel",
    "DISK_KEEPS": "add x", "DISK_SHOWS": "status", "JSON": "--json", "JSON rm": f"--json -r {URL}", "JSON rb": f"--json --force {URL}",
    "SHOW_JSON": "show --json", "COMPARE_JSON": "list --compare a --json"}
WORDS = {"FILE": "x", "URL": URL, "FROM": "x", "TO": URL, "LIST": "x"}


def table(name, macro):
    text = re.sub(r"/\*.*?\*/", "", open(DEFS + name, encoding="utf-8").read(), flags=re.S)
    return re.findall(rf"^{macro}\((.*(?:\n\t.*)*)", text, flags=re.M)


commands = [row.split(",")[0] for row in table("command.def", "COMMAND")]
arguments = {row.split(",")[0]: row.split('"')[1].split() for row in table("command.def", "COMMAND")}
taken = {}  # the options of each command
options = []
for row in table("option.def", "OPTION"):
    m = re.match(r"\w+, (0|'.'), \"([a-z-]+)\", (NULL|\"[A-Z]+\")", row)
    options.append((m[1].strip("'"), m[2], m[3] != "NULL"))
assert len(commands) > 20 and len(options) > 60, (commands, options)


def run(words):
    env = {name: value for name, value in os.environ.items() if name != "GANTRY_ADMIN"}
    p = subprocess.run([GANTRY, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, env=env)
    return p.returncode, p.stdout + p.stderr


def spelled(option, short=False):
    letter, name, has_argument = option
    return ["-" + letter if short and letter != "0" else "--" + name] + ([ARGUMENT.get(name, "1")] if has_argument else [])


def check(words, want):
    global bad
    rc, said = run(words)
    if rc != 2 or want not in said:
        bad += 1
        print(f"gantry {' '.join(words)}: exit {rc}, want 2 and '{want}': {said}")


bad = used = refused = 0
options = [o for o in options if o[1] not in ENDS]
alone = {}
for command in commands:
    rc, page = run([command, "--help"])
    assert rc == 0, (command, rc, page)
    own, _, common = page.partition("\nCommon options, which `gantry --help` describes:")
    assert common, (command, page)
    shown = set(re.findall(r"^  (?:-.,|   ) --([a-z-]+)", own, flags=re.M)) | set(re.findall(r" --([a-z-]+)", common))
    assert shown - {o[1] for o in options} == ENDS, (command, shown)
    takes = taken[command] = [o for o in options if o[1] in shown]
    others = [o for o in options if o[1] not in shown]
    used += len(takes)
    refused += len(others)
    words = [command] + ["x"] * 5
    check(words + [w for o in takes for w in spelled(o)], "one word too many")
    check([w for o in takes for w in spelled(o, True)] + words, "one word too many")
    check([w for o in takes + others for w in spelled(o)] + words, f"{command}: it does not use: {', '.join('--' + o[1] for o in others)}\n")
    if any(w[0] != "[" for w in arguments[command]):
        check([command], f"gantry: {command}: {arguments[command][0]} ")
    alone.update({o: command for o in others if o not in alone or len(others) % 3})
assert set(alone) == set(options), set(options) - set(alone)
for i, (option, command) in enumerate(alone.items()):
    words, how = [command] + ["x"] * 5, spelled(option, True)
    check(how + words if i % 2 else words + how, f"{command}: it does not use: --{option[1]}\n")

rows = [[x.strip() for x in re.match(r'(\w+), ([^,]+),\s.*, "([^"]*)",([A-Z_,\s]*)\)', row, flags=re.S).groups()] for row in table("mode.def", "MODE")]
assert {row[0] for row in rows} == {name.split()[0] for name in MODES}, rows
modes = 0
for name, of, why, listed in rows:
    names = {x.strip().removeprefix("OPT_").lower().replace("_", "-") for x in listed.split(",")}
    for command in commands if of == "ANY" else re.findall(r"OF\((\w+)\)", of):
        mine = [o for o in taken[command] if ("but" in names) != (o[1] in names)]
        line = MODES.get(f"{name} {command}", MODES[name]).split()
        if not mine or of == "ANY" and line and line[0][2:].split("=")[0] not in [o[1] for o in taken[command]]:
            continue
        if all(w.startswith("--") for w in line):
            line += [WORDS.get(w, w.split("|")[0]) for w in arguments[command] if w[0] != "["]
        assert mine or of == "ANY", (name, command)
        for picked in [[o] for o in mine] + [mine] * (len(mine) > 1):
            modes += 1
            said = ", ".join("--" + o[1] for o in picked)
            check([command, *line] + [w for o in picked for w in spelled(o)], f"{command}: {said} {'are' if len(picked) > 1 else 'is'} {why}\n")
print(f"{len(commands)} commands, {len(options)} options: {used} used, {refused} refused, in {len(rows)} modes {modes}, {bad} otherwise")
assert used > 200 and refused > 800 and modes > 150
sys.exit(bad != 0)

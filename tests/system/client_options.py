# SPDX-License-Identifier: Apache-2.0
"""client_options.py GANTRY: each option of option.def with each command of command.def, and more words than any command takes.

A command takes all options that its help shows at once, and says that there is a word too many.  Of all other options given at once it
names each, and every option is also given alone to a command that refuses it, before the command and after it.  Each run ends with 2
and opens no device and no connection."""
import re
import subprocess
import sys

GANTRY = sys.argv[1]
DEFS = "src/client/cmd/common/"
# Arguments that each option with one takes, by the option; others take 1.
ARGUMENT = {"transport": "rc", "path-mtu": "1024", "range": "0-1", "method": "get", "expires": "90", "largest": "64m"}
ENDS = {"version", "help"}  # they have no command


def table(name, macro):
    text = re.sub(r"/\*.*?\*/", "", open(DEFS + name, encoding="utf-8").read(), flags=re.S)
    return re.findall(rf"^{macro}\((.*)", text, flags=re.M)


commands = [row.split(",")[0] for row in table("command.def", "COMMAND")]
options = []
for row in table("option.def", "OPTION"):
    m = re.match(r"\w+, (0|'.'), \"([a-z-]+)\", (NULL|\"[A-Z]+\")", row)
    options.append((m[1].strip("'"), m[2], m[3] != "NULL"))
assert len(commands) > 20 and len(options) > 60, (commands, options)


def run(words):
    p = subprocess.run([GANTRY, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
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
    takes = [o for o in options if o[1] in shown]
    others = [o for o in options if o[1] not in shown]
    used += len(takes)
    refused += len(others)
    words = [command] + ["x"] * 5
    check(words + [w for o in takes for w in spelled(o)], "one word too many")
    check([w for o in takes for w in spelled(o, True)] + words, "one word too many")
    check([w for o in takes + others for w in spelled(o)] + words, f"{command}: it does not use: {', '.join('--' + o[1] for o in others)}\n")
    alone.update({o: command for o in others if o not in alone or len(others) % 3})
assert set(alone) == set(options), set(options) - set(alone)
for i, (option, command) in enumerate(alone.items()):
    words, how = [command] + ["x"] * 5, spelled(option, True)
    check(how + words if i % 2 else words + how, f"{command}: it does not use: --{option[1]}\n")
print(f"{len(commands)} commands, {len(options)} options: {used} used, {refused} refused, {bad} otherwise")
assert used > 200 and refused > 800
sys.exit(bad != 0)

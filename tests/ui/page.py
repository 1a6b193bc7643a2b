#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The status page in a real browser: page.py URL OUTDIR [STATE].

Elements and live numbers are there, no console errors, no overflow at 360 px, both colour schemes.  Screenshots go to
OUTDIR.  Work must be going on while it runs (tests/ui/run.sh sees to that).  With the name of a state (moving, missing, failed, full, reload,
certificate, lost) all that is looked for is what the page says then.
"""
import json
import os
import re
import socket
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))
from waits import until  # noqa: E402

URL, OUT = sys.argv[1], sys.argv[2]
STATE = sys.argv[3] if len(sys.argv) > 3 else ""
failures = []


def check(what, good, detail=""):
    print(("ok    " if good else "FAIL  ") + what + (f": {detail}" if detail and not good else ""))
    if not good:
        failures.append(what)


def browser():
    o = Options()
    o.binary_location = "/usr/bin/chromium"
    for a in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-proxy-server"):
        o.add_argument(a)
    o.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=o)


def view(d, width, height, dark):
    d.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                      {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    d.execute_cdp_cmd("Emulation.setEmulatedMedia",
                      {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    time.sleep(0.3)


def wait(d, what, script, seconds=40):
    try:
        until(what, lambda: d.execute_script("return " + script), seconds, 0.2)
        check(what, True)
    except AssertionError as e:
        check(what, False, "%s; the page says: %s" % (e, d.execute_script("return document.body.innerText")[:2000]))


def text(d, id_):
    return d.execute_script("return document.getElementById(arguments[0]).innerText", id_).replace("\xa0", " ")


def colours(d):
    return d.execute_script("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")


def luminance(rgb):
    v = [int(x) / 255 for x in rgb[rgb.index("(") + 1:-1].split(",")[:3]]
    v = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in v]
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]


def contrast(a, b):
    a, b = sorted((luminance(a), luminance(b)), reverse=True)
    return (a + 0.05) / (b + 0.05)


def overflow(d):
    """Elements that stick out of the window."""
    return d.execute_script("""
        const w = document.documentElement.clientWidth, out = [];
        for (const e of document.querySelectorAll('body *')) {
            const r = e.getBoundingClientRect();
            if (r.width && (r.right > w + 0.5 || r.left < -0.5)) out.push(e.tagName + '#' + e.id + ' ' + r.left + '..' + r.right);
        }
        if (document.documentElement.scrollWidth > w) out.push('document ' + document.documentElement.scrollWidth);
        return out;""")


def broken(d):
    """Words that are on more than one line: what stands between blanks, slashes and hyphens."""
    return d.execute_script("""
        const out = [], range = document.createRange();
        for (const t = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); t.nextNode();) {
            if (t.currentNode.parentElement.closest('script, style')) continue;
            for (const m of t.currentNode.data.matchAll(/[^\\s\\/-]+/g)) {
                range.setStart(t.currentNode, m.index);
                range.setEnd(t.currentNode, m.index + m[0].length);
                if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) out.push(m[0]);
            }
            // A number and its unit are on one line.
            for (const m of t.currentNode.data.matchAll(/[0-9.]+\\u00a0[^\\s]+/g)) {
                range.setStart(t.currentNode, m.index);
                range.setEnd(t.currentNode, m.index + m[0].length);
                if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) out.push(m[0]);
            }
        }
        return out;""")


def top(d, id_):
    """How far below the top of the page an element begins."""
    return d.execute_script("return document.getElementById(arguments[0]).getBoundingClientRect().top + scrollY", id_)


def times(d):
    """Times of day without a zone, and with 12 hours."""
    return d.execute_script("return [...document.body.innerText.matchAll(/\\b\\d{1,2}:\\d{2}:\\d{2}\\b(?!\\sUTC)|\\b\\d{1,2}:\\d{2}\\s*[AP]M/gi)].map(m => m[0])")


def looks(d, name):
    """The page in one state, in each window and colour: nothing is cut off, no word is broken, times have a zone.  Screenshots go to OUT."""
    for dark in (False, True):
        scheme = "dark" if dark else "light"
        for width in (420, 1280, 1600):
            view(d, width, 1000, dark)
            turns = d.execute_script("return Number(document.body.dataset.turns)")
            if d.execute_script("return !document.body.classList.contains('stale')"):
                wait(d, f"{name}, {scheme}, {width} px: drawn", f"Number(document.body.dataset.turns) > {turns}")
            for what, found in (("overflow", overflow(d)), ("word is broken", broken(d)), ("time without a zone", times(d))):
                check(f"{name}, {scheme}, {width} px: no {what}", not found, "; ".join(found[:9]))
            view(d, width, min(4000, d.execute_script("return document.documentElement.scrollHeight")), dark)
            d.save_screenshot(f"{OUT}/{name}-{scheme}-{width}.png")
    view(d, 1280, 1000, False)


def reason(d, code, first, name):
    """A reason stands above, with its code, and its section of the runbook opens there."""
    wait(d, f"{name}: {code} is said above", f"document.getElementById('runbook-{code}') !== null")
    check(f"{name}: not healthy, and the title begins so", text(d, "health") != "healthy" and d.title.startswith(text(d, "health") + ": "), d.title)
    check(f"{name}: its first command", first in d.execute_script("return document.querySelector(arguments[0]).innerText", f"#runbook-{code} summary"),
          text(d, "reasons"))
    d.execute_script("document.querySelector(arguments[0]).click()", f"#runbook-{code} summary")
    turns = d.execute_script("return Number(document.body.dataset.turns)")
    wait(d, f"{name}: the page goes on", f"Number(document.body.dataset.turns) > {turns}")
    opened = d.execute_script("return document.getElementById(arguments[0]).innerText", f"runbook-{code}")
    check(f"{name}: the section is open, and stays so", all(w in opened for w in ("Expect", "Do not", "Wake a person")), opened)
    check(f"{name}: the reasons are above the numbers", top(d, "reasons") < top(d, "t-requests"), "")


d = browser()
try:
    view(d, 1280, 1000, False)
    d.get(URL)
    if STATE == "missing":
        wait(d, "a disk is missing, and the page goes on", "Number(document.body.dataset.turns) >= 2")
        check("it is said above", "missing" in text(d, "reasons") and text(d, "health") != "healthy", text(d, "reasons"))
        check("and in its row", len(re.findall("^missing$", text(d, "disks"), re.M)) == 1 and text(d, "disks").count("serving") == 2, text(d, "disks"))
        check("what has one copy is said", "With one copy" in text(d, "copies") and re.search(r"disk [0-9a-f]{8} /\S+/disk1 is away, replaced in", text(d, "copies")), text(d, "copies"))
        check("no number that is none", "NaN" not in d.execute_script("return document.body.innerText"))
        check("the missing disk is first, and disks are above operations",
              "missing" in d.execute_script("return document.querySelectorAll('#disks tr')[1].innerText") and top(d, "disks") < top(d, "operations"), text(d, "disks"))
        reason(d, "disk_missing", "gantry disk status", "missing")
        looks(d, "missing")
        sys.exit(1 if failures else 0)
    if STATE in ("failed", "full", "reload", "certificate"):
        code, first = {"failed": ("disk_failed", "gantry disk status"), "full": ("disk_full", "gantry disk status"),
                       "reload": ("reload_failed", "gantryd --check-config"), "certificate": ("certificate_ends", "gantry health")}[STATE]
        reason(d, code, first, STATE)
        if STATE == "reload":
            check("the keys that need a restart", text(d, "restart") == "restart needed for: memory.buffers", text(d, "restart"))
        if STATE in ("failed", "full"):
            wait(d, f"{STATE}: the bad disk is first, with the reason", "/failed|disk_full/.test(document.querySelectorAll('#disks tr')[1].innerText)")
        if STATE == "full":
            wait(d, "equal errors are one row", "/507 InsufficientStorage ×[0-9]+\\s+last \\d\\d:\\d\\d:\\d\\d\\sUTC/.test(document.getElementById('events').innerText)")
            t = text(d, "events")
            check("with client and bucket", t.count("507") == 1 and "127.0.0.1" in t and "::ffff" not in t and "bkt" in t, t)
        looks(d, STATE)
        sys.exit(1 if failures else 0)
    if STATE == "lost":
        wait(d, "the page asks", "Number(document.body.dataset.turns) >= 2")
        open(f"{OUT}/stop-it", "w", encoding="utf-8").close()
        wait(d, "no answer, and since when", "/no answer since .*\\sUTC/.test(document.getElementById('health').innerText)")
        check("the title says it", d.title.startswith("no answer: "), d.title)
        check("the numbers are of then", d.execute_script("return document.body.classList.contains('stale')"))
        looks(d, "lost")
        sys.exit(1 if failures else 0)
    if STATE == "moving":
        wait(d, "a disk is drained, and its row says how far it is", "/moving\\s+drains: .* of about .*, .*\\/s, some .* left/.test(document.getElementById('disks').innerText)")
        check("no other does", text(d, "disks").count("drains: ") == 1 and text(d, "disks").count("serving") == 2, text(d, "disks"))
        check("no overflow", not overflow(d), "; ".join(overflow(d)[:5]))
        sys.exit(1 if failures else 0)
    wait(d, "the page asks again and again", "Number(document.body.dataset.turns) >= 4")
    check("healthy", text(d, "health") == "healthy", text(d, "health"))
    host = socket.gethostname()
    check("host and store are in the head", text(d, "host") == host and re.fullmatch("store [0-9a-f]{8}", text(d, "store")), text(d, "host") + text(d, "store"))
    check("and in the title", d.title == f"{host} ({text(d, 'store').split()[1]}) – Gantry", d.title)
    c = text(d, "capacity")
    check("capacity", "free" in c and "used" in c and "not enough history yet" in c, c)
    wait(d, "buckets, with copies and rules", "/bkt\\s+\\d+\\s+[0-9.]+\\s[KM]iB\\s+1\\s+none/.test(document.getElementById('buckets').innerText)")
    check("equal declines are one row", text(d, "events").count("declined: no-rail") == 1, text(d, "events"))
    check("disks are above operations", top(d, "disks") < top(d, "operations"))
    check("it says what runs", "gantryd" in text(d, "about") and "serving" in text(d, "about"), text(d, "about"))
    for id_ in ("t-requests", "t-rdma-in", "t-rdma-out", "t-http-in", "t-http-out", "t-p99", "t-objects"):
        n = text(d, id_)
        check(f"a live number in {id_}", any(c in n for c in "123456789"), n)
    before = text(d, "age"), d.execute_script("return document.querySelector('#throughput path').getAttribute('d')")
    wait(d, "the numbers move", "Number(document.body.dataset.turns) >= 7")
    after = text(d, "age"), d.execute_script("return document.querySelector('#throughput path').getAttribute('d')")
    check("the chart moves", before[0] != after[0] and before[1] != after[1], str((before, after)))
    check("four lines of throughput", d.execute_script("return document.querySelectorAll('#throughput path').length") == 4)
    check("three percentiles", d.execute_script("return document.querySelectorAll('#latency path').length") == 3)
    for id_, words in (("operations", ("PutObject", "GetObject")), ("cores", ("CPU",)), ("rails", ("mlx5_0:1", "up")),
                       ("disks", ("serving", "objects")), ("listeners", ("s3", "scality", "http://127", "https://127", "certificate ends in 30 days")), ("events", ("declined: ",))):
        t = text(d, id_)
        check(f"{id_} shows {', '.join(words)}", all(w in t for w in words), t)
    check("the transports of a rail", text(d, "rails").count("DC, RC") == 2, text(d, "rails"))
    check("connections of RC", "RC: 0 of 3 connections in use, 3 made, 0 wait" in text(d, "rc") and "3 RC connections" in text(d, "rails"), text(d, "rails") + text(d, "rc"))
    check("the limit that refused one", "refused: 1 by the limit per_peer" in text(d, "rc"), text(d, "rc"))
    check("no word of two copies where there are none", d.execute_script("return document.getElementById('copies-card').hidden"))
    check("nothing from elsewhere", d.execute_script(
        "return performance.getEntriesByType('resource').every(e => e.name.startsWith(location.origin) || e.name.startsWith('data:'))"))

    seen = {}
    for dark in (False, True):
        scheme = "dark" if dark else "light"
        for width, height in ((1280, 1150), (1600, 1150), (420, 800), (360, 800)):
            view(d, width, height, dark)
            turns = d.execute_script("return Number(document.body.dataset.turns)")
            wait(d, f"{scheme}, {width} px: drawn", f"Number(document.body.dataset.turns) > {turns}")
            o = overflow(d)
            check(f"{scheme}, {width} px: no overflow", not o, "; ".join(o[:5]))
            b = broken(d)
            check(f"{scheme}, {width} px: no word is broken", not b, " ".join(b[:9]))
            check(f"{scheme}, {width} px: no time without a zone", not times(d), " ".join(times(d)))
            view(d, width, d.execute_script("return document.documentElement.scrollHeight"), dark)
            d.save_screenshot(f"{OUT}/status-{scheme}-{width}.png")
        seen[scheme] = colours(d)
        check(f"{scheme}: text can be read", contrast(*seen[scheme]) >= 7, str(seen[scheme]))
    check("the schemes differ", luminance(seen["light"][0]) > 0.8 and luminance(seen["dark"][0]) < 0.05, str(seen))
    log = [e for e in d.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
    check("no console errors", not log, json.dumps(log)[:2000])
finally:
    d.quit()
sys.exit(1 if failures else 0)

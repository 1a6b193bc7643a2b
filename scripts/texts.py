# SPDX-License-Identifier: Apache-2.0
"""The texts that scripts/check-words and scripts/sample-words read: comments of headers and of the set, and the documents."""
import collections
import glob
import os
import re

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
Comment = collections.namedtuple("Comment", "path line text code")
# heading: the title of the section; lead: the head of the column and the first cell of the row, or the paragraph before a list, else "".
Paragraph = collections.namedtuple("Paragraph", "line text heading lead")
TOKEN = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
WORDS = "Cm|Fl|Ar|Xr|Pa|Em|Sy|Dq|Ql|Sq|Va|Ev|Fn|Fa|Vt|Er|Li|Dv|Sx|Pq|Op|Ic|No"  # macros of mdoc(7) in a sentence
INLINE = re.compile(rf"\.({WORDS}|Po|Pc)\b ?(.*)")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "tests/README.md", "docs/*.md", "man/*.[0-9]")


def sources():
    """Returns the headers and tables of src, and every file of src/set."""
    for folder, _, names in sorted(os.walk("src")):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith((".h", ".def")) or path.startswith("src/set/") and name.endswith(".c"):
                yield path


def comments():
    for path in sources():
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for m in TOKEN.finditer(text):
            if not m.group().startswith("/*") or "SPDX" in m.group() or m.group().startswith("/* ----"):
                continue
            words = re.sub(r"\s+", " ", re.sub(r"\n\s*\*(?= |$)", "\n", m.group()[2:-2], flags=re.M)).strip()
            begin = text.rfind("\n", 0, m.start()) + 1
            code = text[begin:m.start()].strip() or text[m.end():].lstrip().split("\n", 1)[0]
            yield Comment(path, text.count("\n", 0, m.start()) + 1, words, code)


def documents():
    for pattern in DOCUMENTS:
        yield from sorted(glob.glob(pattern))


def mdoc(macro, words):
    """Returns the words of a line of mdoc(7), which begins with macro, as a reader of the manual page sees them."""
    words = f" {macro} {words}".replace('"', "")
    words = words.replace(" Fl Fl ", " --").replace(" Fl ", " -")
    words = re.sub(r" Xr (\S+) (\d)", r" \1(\2)", words)
    words = re.sub(r" Pq (.*?)( [.,;:])?$", r" ( \1)\2", words)
    words = re.sub(r" Po *$", " (", re.sub(r" Pc\b", " )", words))
    while (less := re.sub(rf" (?:{WORDS}|Oo|Oc) ", " ", words)) != words:
        words = less
    words = re.sub(r" Ns ", "", words)
    return re.sub(r" (?=[.,;:]( |$))", "", words).strip()


def joined(lines):
    return re.sub(r" (?=\)[.,;:]?(?:\s|$))|(?<= \() ", "", " ".join(lines)).replace("\\(dq", "\"")


def cells(line):
    return [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def paragraphs(path):
    """Returns each paragraph, list item and cell of a table; no code, no markup of manual pages."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    out, at, fenced, synopsis, name, manual = [], 0, False, False, "", path.startswith("man/")
    heading, lead, heads, item, lead_in = "", "", None, False, ""
    for i, line in enumerate(lines, 1):
        if line.startswith("```") or line.startswith(".Bd -literal") or line == ".Ed":
            fenced = not fenced
            line = ""
        if manual:
            line = line.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\")
        if not fenced and (m := re.match(r"(?:#+|\.S[hs]) (.*)", line)):
            heading, lead_in = m[1].strip(), ""
        if m := re.match(r"\.It (.*)", line):
            lead_in = mdoc("It", m[1]).removeprefix("It ")
        if line.startswith(".Sh"):
            synopsis = line == ".Sh SYNOPSIS"
        if m := re.match(r"\.Nm(?: (\w\S*))?( .*)?$", line):
            name = name or m[1] or ""
            line = f".Li {m[1] or name}{m[2] or ''}"
        if m := INLINE.match(line):
            line = "" if synopsis else mdoc(m[1], m[2])
        if fenced or line.startswith("    ") and not out or not m and line.startswith((".", "#", "'", "<")):
            line = ""
        if line.startswith("|"):
            row = cells(line)
            heads = heads or row
            for nr, cell in enumerate(row):
                if cell.strip(" -:"):
                    head = heads[nr] if nr < len(heads) else ""
                    yield Paragraph(i, cell, heading, "" if row is heads else f"{head} | {row[0]}" if nr else head)
            line = ""
        else:
            heads = None
        begins = re.match(r"\s*([-*]|\d+\.) ", line)
        if not line.strip() or begins:
            if out:
                yield Paragraph(at, joined(out), heading, lead)
                lead_in = lead_in if item or manual else joined(out)
            out = []
        if line.strip():
            if not out:
                item = bool(begins) or line.startswith(" ") and item
                lead = lead_in if item or manual else ""
            at = at if out else i
            # In a manual page the end of a sentence is the end of a line.
            out.append(line.strip() + "\n" * (manual and line.rstrip().endswith((".", "!", "?"))))
    if out:
        yield Paragraph(at, joined(out), heading, lead)


def sentences(text):
    """Returns the sentences of a paragraph. A colon before a capital ends a sentence as well; code in backticks is never divided."""
    whole = re.sub(r"`[^`]*`", lambda m: m.group().replace(" ", "\0"), text)
    return [s.replace("\0", " ").strip() for s in re.split(r"\n|(?<=[.:!?]) +(?=[A-Z`*])", whole)]

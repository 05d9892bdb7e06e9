#!/usr/bin/env python3
"""Counts the lines of production code of each crate, without comments, blank lines and tests.

Usage: tests/production_lines.py [--json]
Counted: *.rs, *.py and *.js of protocol, policies, supervisor and worker. Not counted: files and modules of tests (`tests.rs`, folders
`tests`, `fuzz`, `examples`; from `#[cfg(test)]` before a module to the end of that module), comments and documentation.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("policies", "protocol", "supervisor", "worker")
NOT_COUNTED = {"tests", "fuzz", "examples", "benches", "snapshots"}


def crate_of(path):
    """The folder of the nearest Cargo.toml."""
    for folder in path.parents:
        if (ROOT / folder / "Cargo.toml").exists():
            return str(folder)
    return "."


def without_tests(lines):
    """The lines of a Rust file without its modules of tests."""
    kept, at = [], 0
    while at < len(lines):
        if lines[at].strip() == "#[cfg(test)]" and at + 1 < len(lines) and re.match(r"\s*(pub(\(.*\))? )?mod ", lines[at + 1]):
            indent = len(lines[at + 1]) - len(lines[at + 1].lstrip())
            at += 1
            if not lines[at].rstrip().endswith(";"):
                at += 1
                while at < len(lines) and lines[at].rstrip() != " " * indent + "}":
                    at += 1
        else:
            kept.append(lines[at])
        at += 1
    return kept


def rust(text):
    lines = [line.strip() for line in without_tests(text.splitlines())]
    return sum(1 for line in lines if line and not line.startswith("//"))


def javascript(text):
    lines = [line.strip() for line in re.sub(r"/\*.*?\*/", "", text, flags=re.S).splitlines()]
    return sum(1 for line in lines if line and not line.startswith("//"))


def python(text):
    # A documentation string is an expression statement at the beginning of a line.
    text = re.sub(r'(?m)^[ \t]*"""(?:.|\n)*?"""[ \t]*$', "", text)
    lines = [line.strip() for line in text.splitlines()]
    return sum(1 for line in lines if line and not line.startswith("#"))


COUNTERS = {".rs": rust, ".js": javascript, ".py": python}


def main():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", *FOLDERS], check=True, capture_output=True, text=True).stdout
    counts = defaultdict(int)
    for path in map(Path, listed.splitlines()):
        is_test = NOT_COUNTED & set(path.parts[:-1]) or path.name in ("tests.rs", "test.rs")
        if path.suffix in COUNTERS and not is_test:
            counts[crate_of(path)] += COUNTERS[path.suffix]((ROOT / path).read_text())
    if "--json" in sys.argv[1:]:
        print(json.dumps({"crates": counts, "all": sum(counts.values())}, indent=2, sort_keys=True))
        return
    print("| crate | lines |\n|---|---:|")
    for crate, lines in sorted(counts.items()):
        print(f"| `{crate}` | {lines:,} |")
    print(f"| all | {sum(counts.values()):,} |")


main()

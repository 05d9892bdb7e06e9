"""Measures Lockhouse and its peers in one process: bench_peers.py LOCKHOUSE [--rounds N] [--only NAME …] [--json FILE] [--svg FILE]."""

import argparse
import datetime
import json
import platform
import tempfile
from pathlib import Path

import chart
from measure import measure
from peers import all_peers

COLUMNS = [("1+1 p50", "p50", 2), ("p95", "p95", 2), ("one call", "one call", 2), ("100 calls", "100 calls", 1), ("first", "cold", 0), ("1/s at 8", "per second", 0), ("MB", "memory", 0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lockhouse")
    parser.add_argument("--rounds", type=int, default=8, help="rounds of ten runs of each program (default: 8)")
    parser.add_argument("--only", nargs="+", help="parts of the names of the peers to measure")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        peers, missing = all_peers(options.lockhouse, Path(scratch))
        chosen = [peer for peer in peers if not options.only or any(name.lower() in peer.name.lower() for name in options.only)]
        figures, failed = measure(chosen, options.rounds)
    print(table(figures))
    print(ratios(figures))
    for name, reason in {**missing, **failed}.items():
        print(f"not measured: {name}: {reason}")
    if options.json:
        record = {"date": datetime.date.today().isoformat(), "machine": f"{platform.machine()}, Linux {platform.release()}", "figures": figures, "not measured": {**missing, **failed}}
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    if options.svg:
        options.svg.write_text(chart.draw(figures))


def table(figures):
    """Returns the table of all peers: times in ms, paced by 20 ms; FastMCP's 100 calls are 50, doubled."""
    lines = [f"{'':22}" + "".join(f"{title:>10}" for title, _, _ in COLUMNS) + "  isolation"]
    for name, row in sorted(figures.items(), key=lambda row: row[1]["p50"]):
        cells = (f"{row[key]:10.{digits}f}" if row[key] is not None else f"{'':10}" for _, key, digits in COLUMNS)
        lines.append(f"{name:22}" + "".join(cells) + f"  {row['isolation']}")
    return "\n".join(lines)


def ratios(figures):
    """Returns how many times faster Lockhouse's Python is than each other peer, for `1+1` and for 100 calls."""
    own = figures.get("Lockhouse, Python")
    lines = []
    for name, row in figures.items() if own else ():
        if not name.startswith("Lockhouse"):
            lines.append(f"1+1 against {name}: {row['p50'] / own['p50']:.1f} times faster")
            if row["100 calls"]:
                lines.append(f"100 calls against {name}: {row['100 calls'] / own['100 calls']:.1f} times faster")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

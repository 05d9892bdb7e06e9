"""Runs the naive programs through Lockhouse and FastMCP's CodeMode, and prints how many succeed at the first run.

Usage: run.py LOCKHOUSE [--subset] [--only NAME]... [--gateway lockhouse|fastmcp] [--variant structured|text] [--verbose]
              [--json FILE] [--no-tokens] [--require PERCENT]
With --require, it fails if a column of Lockhouse has fewer successes, or a wrong result without an error.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import codemode_form
import gateways
import tasks
import tokens

VARIANTS = ("structured", "text")
GATEWAYS = ("lockhouse", "fastmcp")
SUBSET = 12
ROW = "{:<10} {:<11} {:<11} {:>8} {:>8} {:>8} {:>6} {:>7} {:>7}"


@dataclass
class Outcome:
    """`kind` is ok, error, wrong (no error, but another value or state than expected), or no form."""

    task: str
    gateway: str
    variant: str
    language: str
    kind: str
    detail: str = ""


def judged(task: tasks.Task, answer: gateways.Answer, states: dict) -> tuple[str, str]:
    if answer.error is not None:
        return "error", answer.error.strip().splitlines()[0]
    if task.printed:
        expected = "\n".join(task.value)
        if not any(expected == text.strip() for text in answer.texts):
            return "wrong", f"printed {answer.texts}, not {expected!r}"
    elif not equals_as_json(answer.value, task.value):
        return "wrong", f"value {json.dumps(answer.value)}, not {json.dumps(task.value)}"
    changed = [server for server in states if states[server] != task.states[server]]
    return ("wrong", f"the state of {', '.join(changed)} differs") if changed else ("ok", "")


def equals_as_json(one, other) -> bool:
    """Compares JSON values: 1 equals 1.0, and neither equals true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equals_as_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equals_as_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def started(name: str, variant: str, place: Path, lockhouse: Path) -> gateways.Gateway:
    folder = place / f"{name}-{variant}"
    return gateways.Lockhouse(variant, folder, lockhouse) if name == "lockhouse" else gateways.FastMcp(variant, folder)


def run_all(gateway, name: str, variant: str, chosen: list, initial: dict, counted: bool) -> tuple[list, list]:
    outcomes, records = [], []
    for language in gateway.languages:
        for task in chosen:
            row = (task.name, name, variant, language)
            record = tokens.record(gateway, row, task, language) if counted else {}
            try:
                answer = gateway.run(task, language)
            except codemode_form.HasNoForm as reason:
                outcomes.append(Outcome(*row, "no form", str(reason)))
                continue
            kind, detail = judged(task, answer, gateway.states(initial))
            outcomes.append(Outcome(*row, kind, detail))
            if counted:
                records.append({**record, "answer": answer.shown})
    return outcomes, records


def print_outcomes(outcomes: list[Outcome], verbose: bool):
    print(ROW.format("gateway", "variant", "language", "programs", "success", "", "errors", "wrong", "no form"))
    for row, kinds in counts(outcomes).items():
        run = sum(kinds.values()) - kinds["no form"]
        share = f"{100 * kinds['ok'] / run:.0f} %" if run else ""
        print(ROW.format(*row, run, kinds["ok"], share, kinds["error"], kinds["wrong"], kinds["no form"]))
    for outcome in outcomes if verbose else []:
        if outcome.kind != "ok":
            where = f"{outcome.gateway} {outcome.variant} {outcome.language}"
            print(f"{outcome.kind}: {where} {outcome.task}: {outcome.detail[:300]}")


def counts(outcomes: list[Outcome]) -> dict[tuple, Counter]:
    found = {}
    for outcome in outcomes:
        row = (outcome.gateway, outcome.variant, outcome.language)
        found.setdefault(row, Counter())[outcome.kind] += 1
    return found


def main() -> int:
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("lockhouse", type=Path)
    options.add_argument("--subset", action="store_true")
    options.add_argument("--only", action="append")
    options.add_argument("--gateway", choices=GATEWAYS)
    options.add_argument("--variant", choices=VARIANTS)
    options.add_argument("--verbose", action="store_true")
    options.add_argument("--no-tokens", action="store_true")
    options.add_argument("--json", type=Path)
    options.add_argument("--require", type=float, default=0)
    given = options.parse_args()

    chosen, initial = tasks.load(given.only), tasks.untouched()
    if given.subset:
        chosen = chosen[:: len(chosen) // SUBSET][:SUBSET]
    outcomes, records = [], []
    with tempfile.TemporaryDirectory(prefix="lockhouse-eval-") as place:
        for name in [given.gateway] if given.gateway else GATEWAYS:
            for variant in [given.variant] if given.variant else VARIANTS:
                gateway = started(name, variant, Path(place), given.lockhouse.resolve())
                rows = run_all(gateway, name, variant, chosen, initial, not given.no_tokens)
                outcomes += rows[0]
                records += rows[1]
                gateway.close()
    print(f"{len(chosen)} tasks, {sum(task.changes for task in chosen)} of which change something")
    print_outcomes(outcomes, given.verbose)
    figures = tokens.table(records)
    if figures:
        tokens.print_table(figures)
    if given.json:
        given.json.write_text(json.dumps({"tokens": figures, "runs": [asdict(outcome) for outcome in outcomes]}, indent=1))
    lockhouse = [kinds for row, kinds in counts(outcomes).items() if row[0] == "lockhouse"] if given.require else []
    enough = all(100 * kinds["ok"] >= given.require * kinds.total() and not kinds["wrong"] for kinds in lockhouse)
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())

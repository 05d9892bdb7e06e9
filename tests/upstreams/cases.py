"""The expected answer of each program in cases/, its number of calls, and the files that it must not change."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from world import SHOWN, ZONES, World

# The smallest limit on a result among AI clients. They truncate larger answers in the middle.
ANSWER_BYTES_MAX = 12_500
# Outcomes of calls that reach no server.
REFUSED = {"denied", "unknown_tool"}


@dataclass
class Run:
    """The answer of one program in one language over one protocol era."""

    world: World
    era: str
    language: str
    answer: dict
    # Results of the upstream server `everything` without Lockhouse in between.
    direct: dict
    source: str

    @property
    def prefix(self) -> str:
        return f"{self.language}-"


@dataclass
class Case:
    name: str
    # Number of calls that reach a server.
    calls: int
    value: Callable[[Run], Any] | None = None
    kept_out_min: int = 0
    status: str = "ok"
    # Further checks, each with a sentence that is true of a good run.
    demands: list[Callable[[Run], list[str]]] = field(default_factory=list)

    def faults(self, run: Run) -> list[str]:
        answer, stats = run.answer, run.answer.get("stats", {})
        found = []
        if answer["status"] != self.status:
            return [f"status {answer['status']}, not {self.status}: {json.dumps(answer.get('error'))}"]
        # Many calls are listed in groups, which is not a truncation.
        if cut := {"value", "stdout", "stderr"} & set(answer.get("truncated", {})):
            found.append(f"{sorted(cut)} is cut: {answer['truncated']}")
        if self.value and answer.get("value") != (expected := self.value(run)):
            found.append(f"answered {json.dumps(answer.get('value'))}\n       expected {json.dumps(expected)}")
        refused = sum(call.get("count", 1) for call in answer["calls"] if call["outcome"] in REFUSED)
        if stats.get("tool_calls", 0) - refused != self.calls:
            found.append(f"{stats.get('tool_calls')} calls, {refused} of them refused, and not {self.calls} others")
        if stats.get("bytes_kept_out", 0) < self.kept_out_min:
            found.append(f"only {stats.get('bytes_kept_out')} bytes kept out, not {self.kept_out_min}")
        size = len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode())
        if size > ANSWER_BYTES_MAX:
            calls_size = len(json.dumps(answer.get("calls"), separators=(",", ":")))
            found.append(f"the answer has {size} bytes, {calls_size} of them in `calls`; the bound is {ANSWER_BYTES_MAX}")
        if run.world.fingerprint() != run.world.before:
            found.append("files or the repository have changed")
        for demand in self.demands:
            found.extend(demand(run))
        return found


def sales(run: Run):
    return run.world.sales_table()


def history(run: Run):
    return {"authors": run.world.authors_table(), "march": run.world.march()}


def graph(run: Run):
    owned = [sum(n * n % 6 == person for n in range(30)) for person in range(6)]
    person, service = f"{run.prefix}person-3", f"{run.prefix}service-7"
    opened = [[person, ["on call", "speaks Welsh"]], [service, ["port 8007"]]]
    return {"made": 36, "relations": 59, "owned": owned, "opened": opened, "found": [person]}


def check_graph_file(run: Run) -> list[str]:
    """Checks the knowledge graph in the server's own file."""
    lines = [json.loads(line) for line in run.world.memory(run.era).read_text().splitlines()]
    of_type = lambda kind: [line for line in lines if line["type"] == kind]
    names = {line["name"] for line in of_type("entity") if line["name"].startswith(run.prefix)}
    wanted = {f"{run.prefix}service-{n}" for n in range(30)} | {f"{run.prefix}person-{n}" for n in range(6)}
    edges = [line for line in of_type("relation") if line["from"] in wanted]
    faults = [] if wanted <= names else [f"not in the server's file: {sorted(wanted - names)}"]
    return faults if len(edges) == 59 else [*faults, f"{len(edges)} relations in the server's file, not 59"]


def check_effects_marked(run: Run) -> list[str]:
    """Checks that calls with effects are marked, so that an AI client does not repeat them."""
    marked = sorted({call["tool"] for call in run.answer["calls"] if call["changes"]})
    changing = {"create_entities", "create_relations", "add_observations"}
    wanted = sorted(changing & {call["tool"] for call in run.answer["calls"]})
    return [] if marked == wanted else [f"marked as changing: {marked}, not {wanted}"]


def deployments(run: Run):
    return run.world.deployments_table()


def kinds(run: Run):
    return {
        "echo": "Echo: Grüße, 水門",
        "sum": "The sum of 19.5 and 22.5 is 42.",
        "slow": "Long running operation completed. Duration: 1 seconds, Steps: 4.",
        **run.direct,
    }


def clocks(run: Run):
    table = {}
    for source, from_utc in ZONES.items():
        for target, to_utc in ZONES.items():
            there = (21 * 60 + 40 - from_utc + to_utc) % (24 * 60)
            hours = (to_utc - from_utc) / 60
            difference = f"{hours:+.1f}h" if hours.is_integer() else f"{hours:+.2f}".rstrip("0") + "h"
            table[f"{source} {target}"] = [f"{there // 60:02}:{there % 60:02}", difference]
    table["wrong"] = ["tool_failed", "time", "convert_time", True]
    return table


def refusals(run: Run) -> list[str]:
    *denied, alias, failed = run.answer["value"]
    wanted = [("filesystem", "write_file", "deny")] * 3 + [("git", "git_commit", "allow")]
    faults = []
    for error, (server, tool, key) in zip(denied, wanted, strict=True):
        place = f"policy.toml:{run.world.policy_line(server, key)}"
        if error[:3] != ["denied", server, tool] or place not in error[3]:
            faults.append(f"{error} does not deny {server}/{tool} at {place}")
    if alias[0] not in ("denied", "unknown_tool"):
        faults.append(f"{alias} is not a refusal")
    if failed[:3] != ["tool_failed", "filesystem", "read_text_file"] or "outside allowed directories" not in failed[3]:
        faults.append(f"{failed} is not the server's own refusal")
    return faults


def check_error_lines(run: Run) -> list[str]:
    """Checks that an error names the line of the program and the line of the policy."""
    error = run.answer["error"]
    line = 1 + next(at for at, text in enumerate(run.source.splitlines()) if "git_commit(" in text)
    place = f"policy.toml:{run.world.policy_line('git', 'allow')}"
    faults = [] if (error.get("code"), error.get("line")) == ("denied", line) else [f"not denied at line {line}: {error}"]
    return faults if place in error["message"] else [*faults, f"{place} is not in {error['message']!r}"]


CASES = [
    Case("files", calls=201, value=sales, kept_out_min=700_000),
    Case("history", calls=2 + SHOWN, value=history, kept_out_min=100_000),
    Case("graph", calls=6, value=graph, kept_out_min=5_000, demands=[check_graph_file, check_effects_marked]),
    Case("chain", calls=1 + 2 * len(ZONES) + 2, value=deployments, kept_out_min=10_000, demands=[check_effects_marked]),
    Case("kinds", calls=8, value=kinds, kept_out_min=4_000),
    Case("clocks", calls=len(ZONES) ** 2 + 1, value=clocks, kept_out_min=3_000),
    Case("denied", calls=1, demands=[refusals]),
    Case("uncaught", calls=0, status="error", demands=[check_error_lines]),
]

"""Runs the multi-turn tasks of the Berkeley Function Calling Leaderboard without a model: the environments are MCP servers
of `lockhouse serve`, and each task's gold actions are converted to a Python and a TypeScript program. The result of every
call, and the final state of every environment, must equal those of direct calls of the environments.

Usage: run.py LOCKHOUSE [--json] [--subset] [--sessions] [--show] [--lanes N] [TASK | CATEGORY]...
With --sessions each turn is a separate program, and all turns of a language run in one session.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

import environments
import programs
from session import Session

HERE = Path(__file__).parent
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
LANGUAGES = ("python", "typescript")
# Every 17th task: about ten tasks, which use every environment.
SUBSET_STEP = 17
# Number of tasks that also run with an empty program, as a control.
CONTROLS = 10
POLICY = "version = 1\n" + "".join(f'[servers.{server}]\nallow = ["*"]\n' for server in environments.CLASSES)
# Results are compared in full, so they must not be truncated.
CONFIG = "[limits]\nshown_bytes = 1048576\n"
ROW = "{:<31} {:<11} {:>5} {:>7}  {}"


@dataclass
class Outcome:
    task: str
    language: str
    calls: int
    refused: int
    changes: bool
    ms: float
    faults: list[str] = field(default_factory=list)


def tasks(only: list[str], subset: bool) -> list[dict]:
    found = []
    for category in CATEGORIES:
        gold = {row["id"]: row for row in environments.lines(f"possible_answer/BFCL_v4_multi_turn_{category}.json")}
        rows = environments.lines(f"BFCL_v4_multi_turn_{category}.json")
        rows = [{**row, "ground_truth": gold[row["id"]]["ground_truth"]} for row in rows]
        found += rows[::SUBSET_STEP] if subset and category == "base" else [] if subset else rows
    chosen = [task for task in found if not only or task["id"] in only or category_of(task) in only]
    if not chosen:
        raise SystemExit(f"no such task; the categories are {', '.join(CATEGORIES)}")
    return chosen


def category_of(task: dict) -> str:
    return task["id"].removeprefix("multi_turn_").rpartition("_")[0]


def equals_as_json(one, other) -> bool:
    """Compares JSON values: 1 equals 1.0, and neither equals true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equals_as_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equals_as_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def shortened(fault: str) -> str:
    return fault if len(fault) < 2000 else f"{fault[:2000]} …"


def to_program_value(value):
    """Converts a value to the form of a program's value: an integer beyond JavaScript's exact range becomes its digits."""
    if isinstance(value, dict):
        return {key: to_program_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_program_value(item) for item in value]
    return str(value) if type(value) is int and abs(value) >= 2**53 else value


class Lane:
    """One `lockhouse serve` with all environments as upstream servers. It runs one task at a time."""

    def __init__(self, lockhouse: Path, place: Path, sessions: bool):
        self.place, self.runs, self.sessions = place, 0, sessions
        place.mkdir()
        program = {"command": sys.executable, "cwd": str(HERE)}
        servers = {
            server: {**program, "args": ["-B", "server.py", server, str(place)]} for server in environments.CLASSES
        }
        self.session = Session(lockhouse, place, servers, POLICY, CONFIG)

    def run(self, task: dict, language: str, schemas: dict, show: bool) -> Outcome:
        turns = programs.actions(task)
        reference = programs.Reference(task, turns, schemas)
        changes = reference.states() != reference.untouched
        pieces = getattr(programs, language)(turns, reference.answers, schemas)
        if not self.sessions:
            pieces = ["\n".join(pieces)]
        started = time.monotonic()
        answer = self._answer(task, language, pieces)
        ms = (time.monotonic() - started) * 1000
        faults = self._faults(reference, turns, answer) + self._differences(reference)
        if show or faults:
            print("\n--\n".join(pieces), file=sys.stderr)
        return Outcome(task["id"], language, sum(map(len, turns)), reference.refused, changes, ms, faults)

    def control(self, task: dict, schemas: dict) -> Outcome | None:
        """Runs an empty program for a task that changes state, and checks that the difference is detected."""
        reference = programs.Reference(task, programs.actions(task), schemas)
        if reference.states() == reference.untouched:
            return None
        self._answer(task, "typescript", ["return [];"])
        faults = [] if self._differences(reference) else ["nothing was done, and nobody noticed"]
        return Outcome(task["id"], "(control)", 0, 0, False, 0, faults)

    def _answer(self, task: dict, language: str, pieces: list[str]) -> dict:
        """Runs the parts and returns the answer of the last one, or of the first that fails."""
        self.runs += 1
        (self.place / "task.json").write_text(json.dumps({**task, "run": self.runs}))
        # Variables persist from turn to turn, and from task to task.
        session = {"session": language} if self.sessions else {}
        for piece in pieces:
            answer = self.session.run_code(language, piece, **session)
            if answer["status"] != "ok":
                break
        return answer

    def _faults(self, reference: programs.Reference, turns: list, answer: dict) -> list[str]:
        if answer["status"] != "ok":
            return [f"{answer['status']}: {json.dumps(answer.get('error'))}"]
        if "value" in answer.get("truncated", {}):
            return [f"the value was cut: {answer['truncated']}"]
        faults = []
        for actions, expected, got in zip(turns, reference.answers, answer["value"], strict=True):
            for action, wanted, was in zip(actions, expected, got, strict=True):
                if not equals_as_json(was, to_program_value(wanted)):
                    faults.append(shortened(f"{action.server}.{action.tool} answered {was}, not {wanted}"))
        return faults

    def _differences(self, reference: programs.Reference) -> list[str]:
        """Compares the final states of the environments with the reference."""
        faults = []
        for server, wanted in reference.states().items():
            was = self._state(server) or reference.untouched[server]
            if not equals_as_json(was, wanted):
                faults.append(shortened(f"{server} ended as {was}, not {wanted}"))
        return faults

    def _state(self, server: str) -> dict | None:
        """Returns the final state of a server, or None if this run did not call it."""
        path = self.place / f"{server}.json"
        written = json.loads(path.read_text()) if path.exists() else {"run": None}
        return written["state"] if written["run"] == self.runs else None


def serve(lane: Lane, waiting: SimpleQueue, schemas: dict, show: bool, report):
    while True:
        try:
            task, language = waiting.get_nowait()
        except Empty:
            return
        try:
            report(lane.run(task, language, schemas, show))
        except Exception as error:  # The failure of one task does not stop the others.
            report(Outcome(task["id"], language, 0, 0, False, 0, [f"{type(error).__name__}: {error}"]))


def main() -> int:
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("lockhouse", type=Path)
    options.add_argument("only", nargs="*")
    options.add_argument("--json", action="store_true")
    options.add_argument("--subset", action="store_true")
    options.add_argument("--sessions", action="store_true")
    options.add_argument("--show", action="store_true")
    options.add_argument("--lanes", type=int, default=2)
    given = options.parse_intermixed_args()

    chosen, outcomes, waiting = tasks(given.only, given.subset), [], SimpleQueue()
    for task in chosen:
        for language in LANGUAGES:
            waiting.put((task, language))
    schemas = {
        (server, tool["name"]): tool["inputSchema"]
        for server in environments.CLASSES
        for tool in environments.tools(server)
    }
    reporting = threading.Lock()

    def report(outcome: Outcome):
        with reporting:
            outcomes.append(outcome)
            if not given.json:
                verdict = "FAIL" if outcome.faults else "pass"
                row = ROW.format(outcome.task, outcome.language, outcome.calls, f"{outcome.ms:.0f}", verdict)
                print(row, flush=True)
                for fault in outcome.faults:
                    print(f"       {fault}", flush=True)

    if not given.json:
        print(ROW.format("task", "language", "calls", "ms", ""))
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lockhouse-bfcl-") as place:
        lanes = [Lane(given.lockhouse.resolve(), Path(place) / str(number), given.sessions) for number in range(given.lanes)]
        threads = [threading.Thread(target=serve, args=(lane, waiting, schemas, given.show, report)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for control in filter(None, (lanes[0].control(task, schemas) for task in chosen[:CONTROLS])):
            report(control)
        for lane in lanes:
            lane.session.close()
    seconds = round(time.monotonic() - started, 1)

    failed = [outcome for outcome in outcomes if outcome.faults]
    equal = {language: sum(o.language == language and not o.faults for o in outcomes) for language in LANGUAGES}
    calls = sum(outcome.calls for outcome in outcomes)
    refused = sum(outcome.refused for outcome in outcomes)
    changed = len({outcome.task for outcome in outcomes if outcome.changes})
    if given.json:
        rows = [vars(outcome) for outcome in outcomes]
        counts = {"tasks": len(chosen), "changed": changed, "calls": calls, "refused": refused}
        print(json.dumps({**counts, "equal": equal, "seconds": seconds, "runs": rows}))
    else:
        summary = ", ".join(f"equal in {language} {equal[language]}" for language in LANGUAGES)
        print(f"{len(chosen)} tasks, {changed} of which change something; {calls} calls, {refused} to be refused")
        print(f"{summary}; {len(failed)} failed; {seconds} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs the programs of `examples/` with their servers, as their READMEs describe, in a copy of their directories.
Usage: check_examples.py LOCKHOUSE [EXAMPLE]..."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from installed import HERE, INSTALLED, MODULES, node
from session import own_environment

EXAMPLES = HERE.parent.parent / "examples"
ROW = "{:<12} {:<15} {:>5} {:>10}  {}"


def environment(place: Path) -> dict[str, str]:
    """Returns environment variables with a PATH that contains the installed servers."""
    programs = [MODULES / ".bin", INSTALLED / "venv/bin", INSTALLED / "venv-older/bin"]
    if node() != "node":
        programs.insert(0, Path(node()).parent)
    found = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    return {"PATH": found, **own_environment(place), "XDG_CACHE_HOME": f"{place}/cache"}


# Examples that the Rust tests run (tests/tests/files_in_out/analyst.rs): they need files and servers of their own.
ELSEWHERE = {"report"}


def faults(answer: dict, readme: str) -> list[str]:
    expected = json.loads(re.search(r"```json\n(.*?)```", readme, re.S)[1])
    if answer["status"] != "ok":
        return [f"{answer['status']}: {json.dumps(answer.get('error'))}"]
    if answer["value"] != expected:
        return [f"answered {json.dumps(answer['value'])}\n       expected {json.dumps(expected)}"]
    return []


def main() -> int:
    lockhouse, only = Path(sys.argv[1]).resolve(), sys.argv[2:]
    failed = 0
    print(ROW.format("example", "program", "calls", "kept out", ""))
    for source in sorted(path for path in EXAMPLES.iterdir() if path.is_dir() and path.name not in ELSEWHERE and (not only or path.name in only)):
        with tempfile.TemporaryDirectory(prefix="lockhouse-example-") as place:
            example, home = Path(place) / source.name, Path(place) / "home"
            shutil.copytree(source, example)
            home.mkdir()
            given = environment(home)
            if (example / "setup.sh").exists():
                subprocess.run([example / "setup.sh"], check=True, env=given)
            for program in sorted([*example.glob("*.py"), *example.glob("*.ts")]):
                files = ["--config", "config.toml", "--policy", "policy.toml"]
                command = [lockhouse, "run", program.name, *files, "--json"]
                done = subprocess.run(command, cwd=example, env=given, capture_output=True, text=True, timeout=120)
                answer = json.loads(done.stdout or '{"status": "no answer"}')
                found = faults(answer, (example / "README.md").read_text())
                stats = answer.get("stats", {})
                counts = stats.get("tool_calls", "-"), stats.get("bytes_kept_out", "-")
                print(ROW.format(source.name, program.name, *counts, "FAIL" if found else "pass"), flush=True)
                for fault in found:
                    print(f"       {fault}\n{done.stderr}", flush=True)
                failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

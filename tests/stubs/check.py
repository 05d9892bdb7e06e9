"""Type checks the stubs of many tools, with programs that import every function. Usage: check.py LOCKHOUSE BUILD"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WRONG = {
    # Controls: programs with type errors, which the checkers must report.
    "python": ("from mcp_tools.hostile import level, list as l\nl(class_=1)\nlevel(of='four', unlisted=1)\n", 2),
    "typescript": (
        'import { level, list } from "mcp_tools/hostile";\nlist({ class: 1 });\nlevel({ of: "four", unlisted: 1 });\n',
        2,
    ),
}
RIGHT = {
    "python": (
        "from mcp_tools.hostile import level, list as l, tree\nfrom mcp_tools import aio\n"
        "l(class_='a', a_b_2=1)\nl({'class': 'a', 'a-b': 1})\nl('a')\nlevel(of=-4, unlisted=[])\n"
        "tree(root={'children': [{'children': []}], 'up': None})['node']\n"
        "async def later() -> None:\n    await aio.hostile.level(None, 1)\n"
    ),
    "typescript": (
        'import { level, list, tree } from "mcp_tools/hostile";\n'
        + 'import github, * as all from "mcp_tools/hostile";\n'
        'list({ class: "a", "a-b": 1 });\nlist("a", 1);\nlevel({ of: -4, unlisted: [] });\n'
        "tree({ root: { children: [{ children: [] }], up: null } }).then((found) => found.pair);\n"
        'all.delete({ constructor: "x" });\ngithub.delete_("x");\nhostile.level({ of: null, unlisted: 1 });\n'
        "mcp_tools.hostile.a_b({});\nconst found: any = await callTool(\"hostile.level\", { of: 1 });\n"
        "console.log(found, (await searchTools(\"x\")).length);\n"
    ),
}


def catalogues(place: Path) -> dict[str, list[str]]:
    """Returns the commands of the catalogue servers by name."""
    folder = os.environ.get("LOCKHOUSE_CATALOGUES")
    files = sorted(Path(folder).glob("*.json")) if folder else []
    return {path.stem: [sys.executable, str(HERE / "catalogue_server.py"), str(path)] for path in files}


def installed(place: Path) -> dict:
    """Returns the configuration entries of the servers that `make test` installs."""
    sys.path.insert(0, str(HERE.parent / "upstreams"))
    from settings import Settings

    from servers import SUBSET
    from traits import Trait

    settings = Settings(SUBSET, place, "127.0.0.1:9", False)
    return {server.name: settings.entry(server) for server in SUBSET if Trait.HANGS not in server.traits}


def write_stubs(lockhouse: str, place: Path, build: Path) -> tuple[dict, float]:
    entries = {name: {"command": command[0], "args": command[1:]} for name, command in catalogues(place).items()}
    if not entries:
        if not (build / "upstreams/stamp").exists():
            sys.exit("tests/stubs: name a folder of catalogues in LOCKHOUSE_CATALOGUES, or run tests/upstreams/prepare.sh --subset")
        entries = installed(place)
    hostile = [str(HERE / "catalogue_server.py"), str(HERE / "hostile.json")]
    entries["hostile"] = {"command": sys.executable, "args": hostile}
    (place / "servers.json").write_text(json.dumps({"mcpServers": entries}))
    policy = [f'[servers.{json.dumps(name)}]\nallow = ["*"]' for name in entries]
    (place / "policy.toml").write_text("\n".join(["version = 1", *policy]))
    (place / "config.toml").write_text("")
    files = {"--config": "config.toml", "--servers": "servers.json", "--policy": "policy.toml"}
    options = [word for option, name in files.items() for word in (option, str(place / name))]
    home = {"HOME": str(place), "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(place / "run")}
    begun = time.monotonic()
    done = subprocess.run(
        [lockhouse, *options, "stubs", "--json", "--out", str(place / "out")], env=home, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"tests/stubs: lockhouse stubs ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout), time.monotonic() - begun


def python_names(path: Path) -> list[str]:
    """Returns the names that a module exports: its functions and their aliases."""
    tree = ast.parse(path.read_text())
    lists = [node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"]
    also = [node.targets[0].id for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)]
    return ast.literal_eval(lists[0]) + also


def write_programs(out: Path):
    """Writes a program for each language that imports every function of every server, and valid and invalid programs."""
    lines, uses = [], []
    for path in sorted((out / "python/mcp_tools").glob("**/*.pyi")):
        if path.name == "__init__.pyi":
            continue
        module = ".".join(path.relative_to(out / "python").with_suffix("").parts)
        for index, name in enumerate(python_names(path)):
            alias = f"{module.replace('.', '_')}_{index}"
            lines.append(f"from {module} import {name} as {alias}")
            uses.append(alias)
    everything = "\n".join([*lines, f"print({', '.join(uses)})", ""])
    (out / "python/everything.py").write_text(everything)
    lines, uses = [], []
    for path in sorted((out / "typescript/mcp_tools").glob("*.d.ts")):
        text = path.read_text()
        server = path.name.removesuffix(".d.ts")
        names = dict.fromkeys(re.findall(r"^  export function (\w+)\(", text, re.M))
        names |= dict.fromkeys(re.findall(r"^    \w+ as (\w+),$", text, re.M))
        for index, name in enumerate(names):
            alias = f"{server.replace('-', '_')}_{index}"
            lines.append(f'import {{ {name} as {alias} }} from "mcp_tools/{server}";')
            uses.append(alias)
    (out / "typescript/everything.ts").write_text("\n".join([*lines, f"console.log({', '.join(uses)});", ""]))
    for language, ending in (("python", "py"), ("typescript", "ts")):
        (out / language / f"right.{ending}").write_text(RIGHT[language])


def check(out: Path, build: Path) -> list[str]:
    """Runs both type checkers on the valid and on the invalid programs."""
    stubs = sorted(str(path) for path in (out / "python").glob("**/*.pyi"))
    mypy = [str(build / "stubs/venv/bin/mypy"), "--strict", "--cache-dir", os.devnull, "--no-error-summary"]
    tsc = ["node", str(build / "stubs/node_modules/typescript/bin/tsc"), "--pretty", "false", "-p", "."]
    faults = []

    def run(name: str, command: list[str], folder: Path) -> str:
        begun = time.monotonic()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        print(f"  {name}: exit {done.returncode}, {time.monotonic() - begun:.1f} s")
        return done.stdout + done.stderr

    for language, name, command in (("python", "mypy", mypy), ("typescript", "tsc", tsc)):
        folder, ending = out / language, {"python": "py", "typescript": "ts"}[language]
        programs = [*stubs, "everything.py", "right.py"] if language == "python" else []
        said = run(f"{name} --strict", command + programs, folder)
        if said.strip():
            faults.append(f"{name}: {said[:6000]}")
        code, errors = WRONG[language]
        (folder / f"wrong.{ending}").write_text(code)
        said = run(f"{name} --strict, two errors", command + (["wrong.py"] if language == "python" else []), folder)
        # Lines with reported errors.
        found = set(re.findall(r"^wrong\.(?:py:|ts\()(\d+)(?::|,\d+\):) error", said, re.M))
        if len(found) != errors:
            faults.append(f"{name} found {len(found)} of {errors} errors: {said[:2000]}")
    return faults


def main(lockhouse: str, build: Path):
    with tempfile.TemporaryDirectory(prefix="lockhouse-stubs-") as place:
        place = Path(os.environ.get("LOCKHOUSE_STUBS_KEEP") or place)
        place.mkdir(parents=True, exist_ok=True)
        written, seconds = write_stubs(lockhouse, place, build)
        size = {
            language: sum(file["bytes"] for file in written["files"] if file["path"].startswith(language))
            for language in ("python", "typescript")
        }
        tools = sum(server["tools"] for server in written["servers"])
        print(
            f"tests/stubs: {tools} tools of {len(written['servers'])} servers in {seconds:.1f} s: "
            f"{size['python']} bytes of Python, {size['typescript']} of TypeScript"
        )
        write_programs(place / "out")
        faults = check(place / "out", build)
    for fault in faults:
        print(fault)
    sys.exit(bool(faults))


main(sys.argv[1], Path(sys.argv[2]))

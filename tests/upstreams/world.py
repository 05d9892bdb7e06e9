"""The data of the cases: files, a git history and a directory for a knowledge graph, equal in every run.

Expected answers are computed from the plans in this file, never from results of a server.
"""

import hashlib
import json
import random
import re
import subprocess
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from pathlib import Path

from installed import INSTALLED, MODULES, node

REGIONS = ["centre", "east", "north", "south", "west"]
WORDS = "lock gate keeper chamber sluice paddle towpath pound weir barge level summit canal water ledger".split()
FILES = 200
COMMITS = 300
SHOWN = 40
AUTHORS = [("Ada Moss", 7), ("Ben Ould", 5), ("Cleo Park", 4), ("Dai Rees", 3), ("Eva Stone", 1)]
FIRST_COMMIT = datetime(2026, 1, 1, 6, 30, tzinfo=timezone.utc)
# Zones without daylight saving time, so that the expected times do not depend on the date.
ZONES = {"Asia/Tokyo": 540, "Asia/Kolkata": 330, "America/Phoenix": -420, "Asia/Kathmandu": 345, "UTC": 0}


class World:
    def __init__(self, place: Path):
        self.place = place
        self.files, self.repository = place / "files", place / "repository"
        self.policy = place / "policy.toml"
        self.random = random.Random(20260731)
        self.sales, self.commits, self.deployments = [], [], []
        self._write_files()
        self._write_history()
        self._write_deployments()
        self.before = self.fingerprint()

    def _prose(self, words: int) -> str:
        return " ".join(self.random.choice(WORDS) for _ in range(words))

    def _write_files(self):
        self.files.mkdir()
        for number in range(FILES):
            sale = {
                "region": self.random.choice(REGIONS),
                "amount": self.random.randint(1, 9_999),
                "note": self._prose(self.random.randint(500, 700)),
            }
            self.sales.append(sale)
            if number % 2:
                text = json.dumps(sale)
            else:
                text = f"region: {sale['region']}\namount: {sale['amount']}\n\n{sale['note']}\n"
            (self.files / f"sale-{number:03}.{'json' if number % 2 else 'txt'}").write_text(text)

    def _write_history(self):
        """Creates 300 commits through one `git fast-import`, which is much faster than single commits."""
        names = [name for name, weight in AUTHORS for _ in range(weight)]
        stream = []
        for number in range(COMMITS):
            author, lines = self.random.choice(names), self.random.randint(20, 60)
            when = FIRST_COMMIT + timedelta(hours=7 * number)
            text = "".join(self._prose(10) + "\n" for _ in range(lines))
            who = f"{author} <{author.split()[0].lower()}@example.org> {int(when.timestamp())} +0000"
            stream.append(f"commit refs/heads/main\nauthor {who}\ncommitter {who}\n")
            stream.append(f"data <<END\nChange {number}\nEND\nM 100644 inline notes/{number:03}.txt\n")
            stream.append(f"data <<END\n{text}END\n\n")
            self.commits.append({"author": author, "when": when, "lines": lines})
        self._git("init", "--quiet", "--initial-branch=main", str(self.repository), at=self.place)
        self._git("fast-import", "--quiet", stdin="".join(stream))
        self._git("reset", "--quiet", "--hard")
        hashes = self._git("log", "--reverse", "--format=%H").split()
        for commit, name in zip(self.commits, hashes, strict=True):
            commit["hash"] = name

    def _write_deployments(self):
        for number, zone in enumerate(ZONES):
            commit = self.commits[40 + 50 * number]
            self.deployments.append({"service": f"service-{number}", "zone": zone, "commit": commit})
        row = lambda made: {"service": made["service"], "zone": made["zone"], "revision": made["commit"]["hash"]}
        rows = [row(made) for made in self.deployments]
        (self.files / "deployments.json").write_text(json.dumps(rows))

    def _git(self, *arguments: str, at: Path | None = None, stdin: str | None = None) -> str:
        command = ["git", "-c", "core.hooksPath=/dev/null", *arguments]
        done = subprocess.run(command, cwd=at or self.repository, input=stdin, text=True, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def fingerprint(self) -> str:
        """Returns a hash of all files that no case may change."""
        digest = hashlib.sha256()
        for path in sorted(path for path in self.files.rglob("*") if path.is_file()):
            digest.update(f"{path} {path.stat().st_mtime_ns}\n".encode() + path.read_bytes())
        digest.update(self._git("log", "--all", "--format=%H").encode() + self._git("status", "--porcelain").encode())
        return digest.hexdigest()

    def memory(self, era: str) -> Path:
        return self.place / f"memory-{era}.jsonl"

    def servers_file(self, era: str) -> Path:
        """Writes the servers in the format of an AI client's file and returns its path."""
        package = lambda name: str(MODULES / f"@modelcontextprotocol/server-{name}/dist/index.js")
        binary = lambda name: str(INSTALLED / "venv/bin" / name)
        servers = {
            "filesystem": {"command": node(), "args": [package("filesystem"), str(self.files)]},
            "memory": {
                "command": node(),
                "args": [package("memory")],
                "env": {"MEMORY_FILE_PATH": str(self.memory(era))},
            },
            "everything": {"command": node(), "args": [package("everything")]},
            "git": {"command": binary("mcp-server-git"), "args": ["--repository", str(self.repository)]},
            "time": {"command": binary("mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        }
        path = self.place / f"servers-{era}.json"
        path.write_text(json.dumps({"theme": "dark", "mcpServers": servers}, indent=2))
        return path

    def write_policy(self, lockhouse) -> None:
        """Writes a policy with `policy init`, then permits some tools with effects and denies others."""
        lockhouse("policy", "init")
        text = self.policy.read_text()
        for tool in ["create_entities", "create_relations", "add_observations"]:
            text, found = re.subn(rf'# "{tool}",', f'"{tool}",', text)
            assert found == 1, f"policy init does not list {tool}"
        text = text.replace("[servers.filesystem]\n", '[servers.filesystem]\ndeny = ["write_file", "edit_file"]\n')
        self.policy.write_text(text)
        lockhouse("policy", "check")

    def policy_line(self, server: str, key: str) -> int:
        lines = self.policy.read_text().splitlines()
        table = lines.index(f"[servers.{server}]")
        return 1 + next(at for at in range(table, len(lines)) if lines[at].startswith(f"{key} ="))

    def sales_table(self) -> list:
        rows = defaultdict(lambda: [0, 0, 0])
        for sale in self.sales:
            row = rows[sale["region"]]
            row[0], row[1], row[2] = row[0] + 1, row[1] + sale["amount"], row[2] + len(sale["note"].split())
        return [[region, *rows[region]] for region in sorted(rows)]

    def authors_table(self) -> list:
        rows = {}
        for number, commit in enumerate(self.commits):
            row = rows.setdefault(commit["author"], [0, 0, None, None])
            row[0] += 1
            row[1] += commit["lines"] if number >= COMMITS - SHOWN else 0
            day = commit["when"].date().isoformat()
            row[2], row[3] = row[2] or day, day
        return [[author, *rows[author]] for author in sorted(rows)]

    def march(self) -> int:
        return sum(commit["when"].month == 3 for commit in self.commits)

    def deployments_table(self) -> list:
        def row(deployment):
            when = deployment["commit"]["when"]
            local = when + timedelta(minutes=ZONES[deployment["zone"]])
            return [deployment["service"], deployment["commit"]["author"], f"{local:%H:%M}", deployment["zone"]]

        return sorted(map(row, self.deployments))

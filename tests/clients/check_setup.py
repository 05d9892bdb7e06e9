"""Tests `lockhouse setup` and `lockhouse setup --undo` on the files that the AI clients' own commands have written.

    check_setup.py LOCKHOUSE

Each client adds two servers with its own `mcp add`, all in one home directory. After setup and undo, each file must have the same bytes.
Then setup runs again, each client adds a third server with its own command, and after undo each file must have the same servers as in a
home directory where setup never ran. Prints a table, and ends with 1 if an outcome is wrong.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib

import ai_clients
from bench import BUILD, HERE, PROGRAMS

CLIENTS = [client for client in ai_clients.CLIENTS if hasattr(client, "file")]
COLUMNS = ["moved", "same bytes", "later stays", "same servers"]
SHOP = [sys.executable, str(HERE / "shop.py")]


class Home:
    """A home directory with the files of all clients."""

    def __init__(self, name):
        self.path = BUILD / "runs" / name
        shutil.rmtree(self.path, ignore_errors=True)
        (self.path / "work").mkdir(parents=True)
        self.environment = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOME": str(self.path), "TERM": "dumb"}
        os.environ["CLIENTS_PATH"] = self.environment["PATH"]

    def run(self, command, environment=None):
        ended = subprocess.run(command, env=self.environment | (environment or {}), cwd=self.path / "work", capture_output=True, text=True,
                               timeout=180, stdin=subprocess.DEVNULL)
        if ended.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}: {(ended.stdout + ended.stderr)[-800:]}")
        return ended.stdout

    def add(self, client, name):
        own = client.environment(ai_clients.Home(self.path, "http://127.0.0.1:9"))
        self.run(client.add_server(SHOP, name), own)

    def bytes(self, client):
        return (self.path / client.file).read_bytes()

    def servers(self, client):
        text = self.bytes(client).decode()
        document = tomllib.loads(text) if client.file.endswith(".toml") else json.loads(text)
        return document.get(client.section, {})


def main():
    lockhouse, with_setup, without = os.path.abspath(sys.argv[1]), Home("setup"), Home("without-setup")
    outcomes = {client.name: {} for client in CLIENTS}
    for home in (with_setup, without):
        for client in CLIENTS:
            home.add(client, "books")
            home.add(client, f"{client.init}-only")

    before = {client: with_setup.bytes(client) for client in CLIENTS}
    shown = with_setup.run([lockhouse, "setup", "--yes"])
    for client in CLIENTS:
        outcomes[client.name]["moved"] = list(with_setup.servers(client)) == ["lockhouse"]
    with_setup.run([lockhouse, "setup", "--undo", "--yes"])
    for client in CLIENTS:
        outcomes[client.name]["same bytes"] = with_setup.bytes(client) == before[client]

    with_setup.run([lockhouse, "setup", "--yes"])
    for home in (with_setup, without):
        for client in CLIENTS:
            home.add(client, "later")
    with_setup.run([lockhouse, "setup", "--undo", "--yes"])
    for client in CLIENTS:
        now, control = with_setup.servers(client), without.servers(client)
        outcomes[client.name]["later stays"] = now.get("later") == control["later"]
        outcomes[client.name]["same servers"] = now == control

    print(f"{'':14}{''.join(f'{column:14}' for column in COLUMNS)}")
    for name, row in outcomes.items():
        print(f"{name:14}{''.join(f'{str(row[column]):14}' for column in COLUMNS)}")
    confined = sum("yes" in line.split() for line in shown.splitlines() if line.split()[:1] in [["books"], *[[f"{c.init}-only"] for c in CLIENTS]])
    print(f"{confined} of {len(CLIENTS) + 1} servers run in the sandbox")
    if not all(all(row.values()) for row in outcomes.values()) or confined != len(CLIENTS) + 1:
        print(shown)
        sys.exit(1)


if __name__ == "__main__":
    main()

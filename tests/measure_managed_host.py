#!/usr/bin/env python3
"""Compares the system's engine for a person with a shared engine of that person, and measures the memory of ten engines.

measure_managed_host.py DIRECTORY     DIRECTORY has lockhouse, lockhouse-worker and liblockhouse_python.so

Requires root: it runs in a mount namespace with an /etc/lockhouse and a /run/lockhouse-engines of its own, and changes nothing else.
In each of ten pairs, both are measured one directly after the other, in an order that changes: the first result of a new client
whose engine runs already, and every 20 ms of a connected client `1+1`, and a file of 10 KB of the person. The ratio is the median of the ratios of the pairs; that of
the shared engine to itself shows how far it deviates from 1 by chance.
"""

import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PAIRS = 10
STARTS = 5
RUNS = 40
PAUSE = 0.02
PEOPLE = 10
FIRST_PERSON = 4001
FIRST_ENGINE = 901
FILE_CHARS = 10_000
OPEN_FILE = "len(open('~/documents/a.txt').read())"
CONFIGURATION = '[sharing]\n{}idle_seconds = 600\n[servers.files]\nread = ["~/documents"]\n'
POLICY = 'version = 1\n[servers.files]\nallow = ["read"]\n'


class Client:
    """An AI client of `lockhouse serve` over standard input and output."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.number = 0
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "measure", "version": "0"}}
        self.request("initialize", info)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, parameters):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.number:
                return message["result"]
        sys.exit("the connection ended")

    def run(self, code="1+1", value=2):
        result = self.request("tools/call", {"name": "run_code", "arguments": {"language": "python", "code": code}})
        if result["structuredContent"].get("value") != value:
            sys.exit(f"another answer: {result}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Person:
    """A person with a home directory, and either a shared engine or one of the system."""

    def __init__(self, number, scratch, programs, has_system_engine):
        self.account, self.engine_account = FIRST_PERSON + number, FIRST_ENGINE + number
        kind = "system" if has_system_engine else "shared"
        self.home = scratch / f"{kind}-{number}"
        self.programs, self.engine = programs, None
        self.configure(self.home, CONFIGURATION.format('engine = "shared"\n'), self.account)
        self.write(self.home / "documents/a.txt", "x" * FILE_CHARS, self.account)
        self.requirements = pathlib.Path("/etc/lockhouse/requirements.toml")
        self.has_system_engine = has_system_engine
        if has_system_engine:
            self.start_engine()

    def configure(self, home, configuration, account):
        self.write(home / ".config/lockhouse/config.toml", configuration, account)
        self.write(home / ".config/lockhouse/policy.toml", POLICY, account)

    @staticmethod
    def write(path, text, account):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for each in [path, *path.parents[: len(path.parents) - 4]]:
            os.chown(each, account, account)

    def start_engine(self):
        sockets = pathlib.Path("/run/lockhouse-engines") / str(self.account)
        sockets.mkdir(parents=True)
        os.chown(sockets, self.engine_account, self.engine_account)
        state = self.home.with_name(self.home.name + "-engine")
        self.configure(state, CONFIGURATION.format(""), self.engine_account)
        with open("/etc/passwd", "a", encoding="utf-8") as accounts:
            print(f"person{self.account}:x:{self.account}:{self.account}::{self.home}:/bin/sh", file=accounts)
        command = ["engine", "--person", str(self.account), "--sockets", str(sockets)]
        self.engine = subprocess.Popen(
            self.command(self.engine_account, state, command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(400):
            with socket.socket(socket.AF_UNIX) as connection:
                if connection.connect_ex(str(sockets / "front.sock")) == 0:
                    return
            time.sleep(0.05)
        sys.exit("the engine does not start")

    def command(self, account, home, arguments):
        as_account = ["setpriv", "--reuid", str(account), "--regid", str(account), "--clear-groups", "env", "-i"]
        environment = [f"HOME={home}", "PATH=/usr/bin:/bin", f"STATE_DIRECTORY={home}/state"]
        return [*as_account, *environment, str(self.programs / "lockhouse"), *arguments]

    def client(self):
        # The requirements decide when a front starts.
        if self.has_system_engine:
            self.requirements.write_text('engine = "system"\n')
        else:
            self.requirements.write_text("")
        return Client(self.command(self.account, self.home, ["serve", "--answer", "structured"]))

    def first_result(self):
        times = []
        for _ in range(STARTS):
            started = time.perf_counter()
            client = self.client()
            client.run()
            times.append(time.perf_counter() - started)
            client.close()
        return statistics.median(times)


def paced(client, *program):
    times = []
    for _ in range(RUNS):
        time.sleep(PAUSE)
        started = time.perf_counter()
        client.run(*program)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def memory_of(process):
    """The proportional memory of a process and of all that it started, in MiB."""
    total, waiting = 0, [process]
    while waiting:
        pid = waiting.pop()
        try:
            rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, StopIteration):
            continue
    return total / 1024


def compare(scratch, programs):
    people = [Person(0, scratch, programs, False), Person(1, scratch, programs, True)]
    clients = [person.client() for person in people]
    for client in clients:
        client.run()
    opens = (OPEN_FILE, FILE_CHARS)
    rows = {
        "first result of a new client": lambda each: people[each].first_result(),
        "1+1, paced by 20 ms": lambda each: paced(clients[each]),
        "a file of 10 KB, paced by 20 ms": lambda each: paced(clients[each], *opens),
    }
    pairs_of = {row: [] for row in rows}
    for pair in range(PAIRS):
        order = [0, 1, 0] if pair % 2 == 0 else [1, 0, 0]
        for row, measure in rows.items():
            times = {0: [], 1: []}
            for each in order:
                times[each].append(measure(each) * 1000)
            pairs_of[row].append((times[0][0], times[0][1], times[1][0]))
    print(f"{'medians in ms; ratios are medians of ten pairs':48}  shared  system   ratio  itself")
    for row, pairs in pairs_of.items():
        shared, system = statistics.median(pair[0] for pair in pairs), statistics.median(pair[2] for pair in pairs)
        ratio = statistics.median(pair[2] / one for pair in pairs for one in pair[:2])
        itself = statistics.median(pair[1] / pair[0] for pair in pairs)
        print(f"{row:48}  {shared:6.2f}  {system:6.2f}  {ratio:6.3f}  {itself:6.3f}")
    for client in clients:
        client.close()
    return people


def main():
    if os.environ.get("IN_NAMESPACE") != "1":
        os.environ["IN_NAMESPACE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    etc, run = pathlib.Path("/etc"), pathlib.Path("/run/lockhouse-engines")
    entries = [entry for entry in etc.iterdir() if entry.name != "lockhouse"]
    # A copy of the files of the host, with a folder of Lockhouse beside them.
    own = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp", prefix="managed-host-etc-"))
    subprocess.run(["cp", "-a", *map(str, entries), str(own)], check=True)
    own.chmod(0o755)
    (own / "lockhouse").mkdir()
    subprocess.run(["mount", "--bind", str(own), "/etc"], check=True)
    for below in ["/run", "/var/lib"]:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", below], check=True)
    run.mkdir()
    scratch = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp", prefix="managed-host-"))
    scratch.chmod(0o755)
    programs = scratch / "programs"
    programs.mkdir()
    for name in ["lockhouse", "lockhouse-worker", "liblockhouse_python.so"]:
        shutil.copy(pathlib.Path(sys.argv[1]) / name, programs)
    people = []
    try:
        people += compare(scratch, programs)
        people += [Person(number, scratch, programs, True) for number in range(2, PEOPLE + 1)]
        engines = [person for person in people if person.engine]
        for person in engines:
            client = person.client()
            client.run()
            client.close()
        memory = [memory_of(person.engine.pid) for person in engines]
        print(f"memory (PSS) of {len(memory)} engines, each after a run: {sum(memory):.0f} MiB, {memory[0]:.0f} of one of them")
        for person in engines[1:]:
            person.engine.kill()
            person.engine.wait()
        print(f"memory of one engine alone: {memory_of(engines[0].engine.pid):.0f} MiB")
    finally:
        for person in people:
            if person.engine:
                person.engine.kill()
        subprocess.run(["pkill", "-f", str(programs)], check=False)
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(own, ignore_errors=True)


if __name__ == "__main__":
    main()

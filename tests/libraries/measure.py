#!/usr/bin/env python3
"""Measures what Python packages cost: time of runs, in turns, and memory of the idle workers.

    tests/libraries/measure.py target/release/lockhouse build/libraries/packages/venv [OTHER_LOCKHOUSE]

Prints the median time of runs without packages, with packages, and with an import, and the proportional memory (PSS) of the zygotes.
With another program, also the time and the CPU time of runs without packages in both, in turns.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 200
PACKAGES = ["numpy", "pandas", "matplotlib"]


class Server:
    """A `lockhouse serve` with a configuration of its own, and an MCP client."""

    def __init__(self, program, configuration):
        self.home = tempfile.TemporaryDirectory()
        folder = os.path.join(self.home.name, "lockhouse")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.toml"), "w") as file:
            file.write(configuration)
        environment = {"PATH": os.environ["PATH"], "HOME": self.home.name}
        for name in ("CONFIG", "STATE", "CACHE"):
            environment[f"XDG_{name}_HOME"] = self.home.name
        environment["XDG_RUNTIME_DIR"] = self.home.name
        self.process = subprocess.Popen([program, "serve"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "m", "version": "0"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self.number:
                return message["result"]

    def run(self, code):
        """Runs a program after the pool has come to rest. Returns the time in milliseconds."""
        time.sleep(0.05)
        began = time.perf_counter()
        result = self.request("tools/call", {"name": "run_code", "arguments": {"language": "python", "code": code}})
        elapsed = (time.perf_counter() - began) * 1000
        if result.get("isError"):
            sys.exit(f"{code!r}: {result}")
        return elapsed

    def tree(self):
        """The process ids of the supervisor and of its descendants."""
        found = [self.process.pid]
        for pid in found:
            try:
                with open(f"/proc/{pid}/task/{pid}/children") as file:
                    found += map(int, file.read().split())
            except OSError:
                pass
        return found

    def cpu_ms(self):
        """CPU time of the supervisor and of all processes that it has reaped or that its zygotes have reaped."""
        ticks = 0
        for pid in self.tree():
            try:
                with open(f"/proc/{pid}/stat") as file:
                    ticks += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:15]))
            except OSError:
                pass
        return ticks * 1000 / os.sysconf("SC_CLK_TCK")

    def pss_mb(self):
        """Proportional memory of each process."""
        sizes = {}
        for pid in self.tree():
            try:
                with open(f"/proc/{pid}/smaps_rollup") as file:
                    pss = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    name = file.read().split(b"\0")[0].decode()
                sizes[f"{pid} {name}"] = round(pss / 1024, 1)
            except (OSError, StopIteration):
                pass  # Not readable without root: the processes are not dumpable.
        return sizes

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def medians(servers_and_codes):
    times = {name: [] for name in servers_and_codes}
    for name, (server, code) in servers_and_codes.items():
        server.run(code)
    for _ in range(RUNS):
        for name, (server, code) in servers_and_codes.items():
            times[name].append(server.run(code))
    for name, values in times.items():
        ordered = sorted(values)
        print(f"{name:40} p50 {statistics.median(values):7.3f} ms   p95 {ordered[int(len(ordered) * 0.95)]:7.3f} ms")


def main():
    program, environment, *others = sys.argv[1:]
    configuration = f"[python]\nenvironment = {json.dumps(os.path.abspath(environment))}\npackages = {json.dumps(PACKAGES)}\n"
    configuration += "[clients]\nruns = \"100000/min\"\nrequests = \"100000/min\"\n"
    server = Server(program, configuration)
    medians({
        "1 + 1 without packages": (server, "1 + 1"),
        "1 + 1 with packages": (server, "# import pandas\n1 + 1"),
        "import pandas; 1 + 1": (server, "import pandas\n1 + 1"),
    })
    print("PSS in MB, idle:", json.dumps(server.pss_mb(), indent=1))
    server.close()
    if others:
        plain = configuration.split("[clients]")[1]
        pair = {"this": Server(program, "[clients]" + plain), "other": Server(others[0], "[clients]" + plain)}
        medians({name: (server, "1 + 1") for name, server in pair.items()})
        for name, server in pair.items():
            print(f"{name}: CPU time of all processes {server.cpu_ms():.0f} ms for {RUNS + 1} runs and the start")
            server.close()


main()

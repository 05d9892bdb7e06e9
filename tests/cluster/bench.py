#!/usr/bin/env python3
"""Measures a cluster of three hosts on this machine: a run at its own host and one that is passed on, against a single host, and the
throughput of one, two and three hosts that are each limited to a quarter of a CPU. As root with control groups of version 1, the last too.

    tests/cluster/bench.py target/release/lockhouse
"""

import atexit
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
NATS = ROOT / "build/cluster/venv/bin/nats-server"
GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")
PAIRS, RUNS = 10, 60
SECONDS, CLIENTS = 10, 12
LIMITS = '[clients]\nrequests = "6000000/min"\nruns = "6000000/min"\nrunning = 64\nwaiting = 64\n'


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


class Host:
    def __init__(self, program, work, name, nats=None, group=None):
        self.program, self.home = program, work / name
        configuration = self.home / "config/lockhouse"
        configuration.mkdir(parents=True)
        cluster = f'[cluster]\nname = "{name}"\nnats = ["{nats}"]\nlisten = "127.0.0.1:{free_port()}"\n' if nats else ""
        (configuration / "config.toml").write_text(f'[http]\ntokens = "{work}/tokens.json"\n{LIMITS}{cluster}')
        (configuration / "policy.toml").write_text("version = 1\n")
        for path in (configuration / "config.toml", configuration / "policy.toml"):
            path.chmod(0o600)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config"),
                            "XDG_STATE_HOME": str(self.home / "state"), "XDG_RUNTIME_DIR": str(self.home)}
        self.port, self.group = free_port(), group

    def start(self):
        def enter():
            if self.group:
                (self.group / "cgroup.procs").write_text(str(os.getpid()))
        log = open(self.home / "log", "wb")
        self.process = subprocess.Popen([self.program, "serve", "--answer", "structured", "--listen", f"127.0.0.1:{self.port}"], env=self.environment,
                                        stdout=log, stderr=log, preexec_fn=enter)
        # Also if the benchmark fails.
        atexit.register(self.process.kill)
        for _ in range(200):
            if "listening at" in (self.home / "log").read_text():
                return self
            time.sleep(0.05)
        sys.exit(f"a host does not start: {(self.home / 'log').read_text()}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)

    def command(self, *arguments):
        return subprocess.run([self.program, *arguments], env=self.environment, check=True, capture_output=True, text=True).stdout


class Client:
    def __init__(self, host, token, where="127.0.0.1"):
        self.connection = http.client.HTTPConnection(where, host.port, timeout=60)
        self.token, self.number = token, 0

    def call(self, tool, arguments):
        self.number += 1
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"}}
        message = {"jsonrpc": "2.0", "id": self.number, "method": "tools/call",
                   "params": {"name": tool, "arguments": arguments, "_meta": meta}}
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28",
                   "Mcp-Method": "tools/call", "Mcp-Name": tool, "Accept": "application/json, text/event-stream"}
        self.connection.request("POST", "/mcp", json.dumps(message), headers)
        response = self.connection.getresponse()
        body = response.read().decode()
        if response.status != 200:
            sys.exit(f"{response.status}: {body}")
        if response.getheader("content-type", "").startswith("text/event-stream"):
            body = [line[6:] for line in body.splitlines() if line.startswith("data: ")][-1]
        answer = json.loads(body)["result"]["structuredContent"]
        if "error" in answer:
            sys.exit(f"no value: {answer}")
        return answer

    def run(self, code, session=None):
        arguments = {"language": "python", "code": code}
        return self.call("run_code", arguments | ({"session": session} if session else {}))


def median_ms(action):
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        action()
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def interleaved(one, other):
    """The median of each action in each of PAIRS rounds, in alternating order."""
    results = ([], [])
    for pair in range(PAIRS):
        for at in (0, 1) if pair % 2 else (1, 0):
            results[at].append(median_ms((one, other)[at]))
    return tuple(statistics.median(result) for result in results)


def report(name, base, other, noise=None):
    line = f"{name}: {base:.2f} ms and {other:.2f} ms, ratio {other / base:.3f}"
    print(line + (f", noise {noise:.3f}" if noise else ""), flush=True)


def messages(monitor):
    with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/varz") as answer:
        return json.load(answer)["in_msgs"]


def latencies(program, work, token, nats, monitor):
    single, second = Host(program, work, "single").start(), Host(program, work, "second").start()
    hosts = [Host(program, work, f"h{number}", nats).start() for number in range(3)]
    one, two = Client(single, token), Client(second, token)
    zero, other = Client(hosts[0], token), Client(hosts[1], token)
    for client in (one, two, zero, other):
        client.run("1 + 1")
    time.sleep(9)  # Each host has heard of the others twice.
    base, again = interleaved(lambda: one.run("1 + 1"), lambda: two.run("1 + 1"))
    noise = again / base
    report("two single hosts, a run", base, again)
    report("single host and host of a cluster, a run", *interleaved(lambda: one.run("1 + 1"), lambda: zero.run("1 + 1")), noise)
    one.run("x = 1", "s"), zero.run("x = 1", "s")
    report("single host and own host, a run in a session",
           *interleaved(lambda: one.run("x", "s"), lambda: zero.run("x", "s")), noise)
    report("own host and another host, a run in a session",
           *interleaved(lambda: zero.run("x", "s"), lambda: other.run("x", "s")), noise)
    kept = zero.run("'x' * 50_000")["truncated"]["value"]["handle"]
    part = {"handle": kept, "offset": 49_990}
    report("own host and another host, get_result",
           *interleaved(lambda: zero.call("get_result", part), lambda: other.call("get_result", part)), noise)
    counts = []
    for active in (False, True):
        before, begun = messages(monitor), time.time()
        while time.time() - begun < 16:
            if active:
                zero.run("1 + 1")
                zero.run("x", "s")
                other.run("x", "s")
            else:
                time.sleep(0.1)
        counts.append(messages(monitor) - before)
    print(f"messages to NATS in 16 s: {counts[0]} without requests, {counts[1]} with requests all the time", flush=True)
    for host in (single, second, *hosts):
        host.stop()


def throughput(program, work, token, nats):
    for count in (1, 2, 3):
        groups, hosts = [], []
        for number in range(count):
            group = GROUPS / f"lockhouse-bench-{count}-{number}"
            group.mkdir(exist_ok=True)
            (group / "cpu.cfs_period_us").write_text("20000")
            (group / "cpu.cfs_quota_us").write_text("5000")
            groups.append(group)
            hosts.append(Host(program, work, f"t{count}{number}", nats, group).start())
        clients = [Client(hosts[number % count], token) for number in range(CLIENTS)]
        for client in clients[:count]:
            client.run("1 + 1")
        time.sleep(9)
        done, end = [0] * CLIENTS, time.time() + SECONDS

        def work_on(number):
            while time.time() < end:
                clients[number].run("1 + 1")
                done[number] += 1

        threads = [threading.Thread(target=work_on, args=[number]) for number in range(CLIENTS)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        rate = sum(done) / SECONDS
        first = rate if count == 1 else first
        print(f"{count} hosts of 0.25 CPU: {rate:.1f} runs/s, {rate / first / count:.2f} of linear", flush=True)
        for host in hosts:
            host.stop()
        for group in groups:
            group.rmdir()


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="lockhouse-bench-"))
    port, monitor = free_port(), free_port()
    server = subprocess.Popen([NATS, "-a", "127.0.0.1", "-p", str(port), "-m", str(monitor), "-js", "-sd", str(work / "nats")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        token = Host(program, work, "tokens").command("token", "create", "bench").strip()
        nats = f"nats://127.0.0.1:{port}"
        latencies(program, work, token, nats, monitor)
        if (GROUPS / "cgroup.procs").exists() and os.geteuid() == 0:
            throughput(program, work, token, nats)
        else:
            print("throughput: left out, since it needs root and control groups of version 1")
    finally:
        server.terminate()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()

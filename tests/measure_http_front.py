#!/usr/bin/env python3
"""Compares `lockhouse serve --http` of two builds, and measures what the processes of the newer one need.

measure_http_front.py BEFORE NOW     two directories with lockhouse, lockhouse-worker and liblockhouse_python.so

Both builds serve at the same time and are measured in turns, in ten pairs whose order changes: every 20 ms `1+1` and a program
with one call on an open connection, a new connection over TLS, and runs of 100 connections at a time. The ratio is the median of
the ratios of the pairs; that of the older build to itself shows how far it deviates from 1 by chance. Then fronts and signers are
killed one after the other.
"""

import asyncio
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

PAIRS = 10
RUNS = 40
PAUSE = 0.02
CONNECTIONS = 100
SECONDS = 3
KILLS = 300
ECHO = pathlib.Path(__file__).parent / "servers/echo.py"
PROGRAMS = {"1+1": ("1+1", 2), "one call": ("from mcp_tools.echo import echo\necho(text='x')", "x")}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Service:
    """A running `lockhouse serve --http`, without and with TLS at two ports."""

    def __init__(self, programs, scratch, certificate):
        self.home, self.port = scratch, free_port()
        scratch.mkdir()
        tls = f'[http.tls]\ncertificate = "{certificate}.pem"\nkey = "{certificate}.key"\n' if certificate else ""
        limits = "[http.limits]\nconnections_per_peer = 1000\ntls_handshakes_per_peer_per_second = 65536\n"
        clients = '[clients]\nrequests = "1000000/s"\nruns = "1000000/s"\nrunning = 100\n[pool]\nqueue = 1000\nqueue_per_client = 1000\n'
        server = f'[servers.echo]\ncommand = "{sys.executable}"\nargs = ["{ECHO}"]\n'
        (scratch / "config.toml").write_text(f'[http]\nauth = "none"\nlisten = ["127.0.0.1:{self.port}"]\n{tls}{limits}{clients}{server}')
        (scratch / "policy.toml").write_text('version = 1\n[servers.echo]\nallow = ["*"]\n')
        files = ["--config", str(scratch / "config.toml"), "--policy", str(scratch / "policy.toml")]
        environment = {"HOME": str(scratch), "PATH": os.environ["PATH"]}
        log = open(scratch / "log", "wb")
        command = [str(pathlib.Path(programs) / "lockhouse"), *files, "serve", "--http", "--answer", "structured"]
        self.process = subprocess.Popen(command, env=environment, stderr=log)
        self.tls = ssl._create_unverified_context() if certificate else None
        for _ in range(400):
            try:
                self.live()
                return
            except OSError:
                time.sleep(0.05)
        sys.exit(f"the service does not start: {(scratch / 'log').read_text()}")

    def connect(self):
        if self.tls:
            return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=30)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def live(self):
        connection = self.connect()
        connection.request("GET", "/live")
        answer = connection.getresponse().read()
        connection.close()
        if answer != b"alive\n":
            raise OSError(f"another answer: {answer}")

    def children(self, command):
        listed = subprocess.run(["pgrep", "-P", str(self.process.pid), "-f", command], capture_output=True, text=True, check=False)
        return [int(pid) for pid in listed.stdout.split()]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def request_of(code):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "measure", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    arguments = {"language": "python", "code": code}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run_code", "arguments": arguments, "_meta": meta}}
    headers = {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "run_code",
    }
    return json.dumps(message).encode(), headers


def check(body, value):
    text = body.decode()
    data = [line[5:] for line in text.splitlines() if line.startswith("data:")] or [text]
    if json.loads(data[-1])["result"]["structuredContent"].get("value") != value:
        sys.exit(f"another answer: {text}")


def paced(service, name):
    code, value = PROGRAMS[name]
    body, headers = request_of(code)
    connection, times = service.connect(), []
    for _ in range(RUNS):
        time.sleep(PAUSE)
        began = time.perf_counter()
        connection.request("POST", "/mcp", body, headers)
        answer = connection.getresponse().read()
        times.append(time.perf_counter() - began)
        check(answer, value)
    connection.close()
    return statistics.median(times)


def new_connection(service):
    times = []
    for _ in range(RUNS):
        time.sleep(PAUSE)
        began = time.perf_counter()
        service.live()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def runs_per_second(service):
    body, headers = request_of("1+1")
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body
    until, count = time.perf_counter() + SECONDS, 0

    async def client():
        nonlocal count
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        while time.perf_counter() < until:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if not head.startswith(b"http/1.1 200"):
                sys.exit(f"another answer: {head}")
            if b"content-length" in head:
                answer = await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
            else:
                answer = await reader.readuntil(b"\r\n0\r\n\r\n")
            if b'"value":2' not in answer.replace(b" ", b""):
                sys.exit(f"another answer: {answer}")
            count += 1
        writer.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return count / SECONDS


def compare(name, measure, before, now):
    """Measures both builds and the older one again, in turns."""
    ratios, control, values = [], [], []
    for pair in range(PAIRS):
        if pair % 2 == 0:
            first, second, again = measure(before), measure(now), measure(before)
        else:
            second, first, again = measure(now), measure(before), measure(before)
        ratios.append(second / first)
        control.append(again / first)
        values.append((first, second))
    figures = [statistics.median(values) for values in zip(*values)]
    print(f"{name}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); before {figures[0]:.6g}, now {figures[1]:.6g}; "
          f"before to itself {statistics.median(control):.2f}", flush=True)


def private_kib(pid):
    fields = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in fields if line.startswith(("Private_Clean:", "Private_Dirty:")))


def kill_one_after_the_other(service):
    times = []
    for number in range(KILLS):
        victims = service.children("tls-signer" if number % 3 == 2 else "http-front")
        if not victims:
            continue
        os.kill(victims[0], signal.SIGKILL)
        killed = time.perf_counter()
        while True:
            try:
                service.live()
                break
            except (OSError, http.client.HTTPException):
                pass
        times.append(time.perf_counter() - killed)
        time.sleep(0.1)
    times.sort()
    print(f"from a kill to the next answer on a new connection over TLS, ms: median {times[len(times) // 2] * 1e3:.0f}, "
          f"p99 {times[len(times) * 99 // 100] * 1e3:.0f}, of {len(times)} kills", flush=True)


def main():
    before_directory, now_directory = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        certificate = scratch / "server"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj",
             "/CN=localhost", "-keyout", f"{certificate}.key", "-out", f"{certificate}.pem"], check=True, capture_output=True)
        before, now = Service(before_directory, scratch / "before", None), Service(now_directory, scratch / "now", None)
        for name in PROGRAMS:
            compare(name, lambda service, name=name: paced(service, name), before, now)
        compare("runs per second, 100 connections", lambda service: asyncio.run(runs_per_second(service)), before, now)
        # Fronts return freed memory every 10 s.
        time.sleep(12)
        print(f"private memory at rest after that, MiB: before {private_kib(before.process.pid) / 1024:.1f}; now engine "
              f"{private_kib(now.process.pid) / 1024:.1f}, front {private_kib(now.children('http-front')[0]) / 1024:.1f}", flush=True)
        before.stop()
        now.stop()
        before = Service(before_directory, scratch / "before-tls", certificate)
        now = Service(now_directory, scratch / "now-tls", certificate)
        compare("a new connection over TLS and one request", new_connection, before, now)
        sizes = [private_kib(now.children(name)[0]) / 1024 for name in ["http-front", "tls-signer"]]
        print(f"private memory with TLS, MiB: front {sizes[0]:.1f}, signer {sizes[1]:.1f}", flush=True)
        kill_one_after_the_other(now)
        before.stop()
        now.stop()


if __name__ == "__main__":
    main()

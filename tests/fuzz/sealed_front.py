#!/usr/bin/env -S python3 -B
"""Fuzzes the front of `lockhouse serve --http` in its sealed process: TCP, TLS, HTTP/1.1, HTTP/2, JSON-RPC and MCP.

sealed_front.py [--seconds N] [--seed S] PROGRAMS     a directory with lockhouse, lockhouse-worker and liblockhouse_python.so
sealed_front.py --seed S --cases FIRST-LAST PROGRAMS  sends these cases of a seed again, one after the other
sealed_front.py --control PROGRAMS                    kills the front once, which must be a finding

Two services, without and with TLS, get mutated inputs on parallel connections. After each batch, requests of an honest client
must be answered right, over HTTP/1.1 and HTTP/2; engine, front and signer must be the processes that they were; the log must have
no panic; and no input without a token may have got a result. At the end, the front must have closed its connections and be idle.
Exit status 1: a finding.
"""

import argparse
import asyncio
import collections
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

from front import cases, honest, sending
from front.service import Service, make_certificate

BATCH = 250
CONNECTIONS = 32
SESSIONS = 4
SETTLE_SECONDS = 30
# Descriptors that the front may have more than at its start: connections of the last check that are being closed.
SPARE_FILES = 8
FINDINGS = pathlib.Path(__file__).resolve().parents[2] / "build" / "sealed-front"


class Finding(Exception):
    """The front or the engine did what it must not do."""


class Fuzzer:
    def __init__(self, options, plain, secure):
        self.options, self.services = options, [plain, secure]
        self.expected = {service.name: honest.expected(service) for service in self.services}
        self.at_start = {service.name: (service.open_files(), service.status("VmRSS")) for service in self.services}
        self.kinds, self.outcomes, self.log = collections.Counter(), collections.Counter(), collections.Counter()
        self.last = []

    def check(self):
        """Checks both services after a batch."""
        for service in self.services:
            if service.pids() != service.expected:
                raise Finding(f"{service.name}: the processes were {service.expected} and are {service.pids()}")
            for ask in [honest.ask_over_http1, honest.ask_over_http2, honest.ask_with_large_bodies]:
                try:
                    answer = ask(service)
                except (OSError, http.client.HTTPException) as error:
                    raise Finding(f"{service.name}: {ask.__name__}: no answer: {error!r}") from error
                if answer != self.expected[service.name]:
                    raise Finding(f"{service.name}: {ask.__name__}: {answer} instead of {self.expected[service.name]}")
            log = service.new_log()
            if "panicked" in log:
                raise Finding(f"{service.name}: a panic: {[line for line in log.splitlines() if 'panicked' in line]}")
            for line in log.splitlines():
                shape = re.sub(r"\S*\d\S*", "N", re.sub(r"^\S+\s+", "", line))
                self.log[f"{service.name}: {shape[:150]}"] += 1

    async def send(self, numbers):
        """Sends cases on parallel connections."""
        plain, secure = self.services
        # More than one, because inputs end them.
        begin = Service.begin_session
        begun = [{service.name: await asyncio.to_thread(begin, service) for service in self.services} for _ in range(SESSIONS)]

        async def connection():
            for number in numbers:
                case = cases.make(self.options.seed, number)
                self.last.append(case)
                outcomes, answer = await sending.run(case, plain, secure, begun[number % SESSIONS])
                self.kinds[case.kind + (" in TLS" if case.is_inner and case.kind != "tls ciphertext" else "")] += 1
                self.outcomes.update(outcomes)
                if b'"result"' in answer and not case.has_token():
                    raise Finding(f"case {number} has no token, and was answered {answer!r}")

        await asyncio.gather(*(connection() for _ in range(self.options.connections)))

    def batch(self, numbers):
        self.last = []
        try:
            asyncio.run(self.send(iter(numbers)))
        except (OSError, http.client.HTTPException) as error:
            # Why is in the processes or in the log.
            self.check()
            raise Finding(f"a connection or a session cannot be opened: {error!r}") from error
        self.check()

    def settle(self):
        """Waits until the fronts have closed what was opened, and use no processor time."""
        until = time.monotonic() + SETTLE_SECONDS
        while True:
            used = {service.name: service.front_seconds() for service in self.services}
            time.sleep(1)
            busy = {service.name: service.front_seconds() - used[service.name] for service in self.services}
            files = {service.name: service.open_files() for service in self.services}
            if all(files[name] <= self.at_start[name][0] + SPARE_FILES and busy[name] < 0.2 for name in files):
                return
            if time.monotonic() > until:
                raise Finding(f"the front does not settle: descriptors {files}, seconds of processor time in one second {busy}")

    def report(self, seconds):
        sent = sum(self.kinds.values())
        print(f"seed {self.options.seed}: {sent} inputs in {seconds:.0f} s, {sent / seconds:.0f} a second")
        print("inputs:   " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items())))
        print("outcomes: " + ", ".join(f"{outcome} {count}" for outcome, count in self.outcomes.most_common()))
        for line, count in self.log.most_common(12):
            print(f"log: {count} × {line}")
        for service in self.services:
            files, resident = self.at_start[service.name]
            print(f"{service.name}: resident KiB of the front {resident} at the start, {service.status('VmRSS')} at the end, "
                  f"{service.status('VmHWM')} at most; descriptors {files}, {service.open_files()}", flush=True)

    def save(self):
        """Saves the inputs of the last batch and the logs, and returns where."""
        folder = FINDINGS / f"{self.options.seed}-{time.time_ns()}"
        folder.mkdir(parents=True)
        with open(folder / "inputs.jsonl", "w", encoding="utf-8") as file:
            for case in self.last:
                file.write(json.dumps(vars(case) | {"parts": [part.hex() for part in case.parts],
                    "pauses": sorted(case.pauses)}) + "\n")
        for service in self.services:
            shutil.copy(service.home / "log", folder / f"{service.name}.log")
        return folder


def fuzz(fuzzer, options):
    """Sends batches until the time is over, or the cases that the options name."""
    if options.cases:
        first, last = options.cases
        for number in range(first, last + 1):
            fuzzer.batch([number])
        return
    until, numbers = time.monotonic() + options.seconds, itertools.count()
    while time.monotonic() < until:
        fuzzer.batch(list(itertools.islice(numbers, BATCH)))
        if options.control:
            os.kill(fuzzer.services[0].expected["front"][0], signal.SIGKILL)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default=str(time.time_ns() % 10**9))
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--cases", type=lambda text: [int(number) for number in text.split("-")])
    parser.add_argument("--control", action="store_true")
    options = parser.parse_args()
    options.connections = 1 if options.cases else options.connections
    return options


def run(fuzzer, options):
    """Returns whether there was no finding. Otherwise prints it."""
    began = time.monotonic()
    try:
        fuzz(fuzzer, options)
        fuzzer.report(time.monotonic() - began)
        fuzzer.settle()
        return True
    except Finding as finding:
        numbers = [case.number for case in fuzzer.last]
        between = f"cases {min(numbers)}-{max(numbers)}" if numbers else "no case"
        print(f"FINDING, seed {options.seed}, {between}: {finding}\ninputs and logs: {fuzzer.save()}")
        for service in fuzzer.services:
            print(f"the end of the log of {service.name}:\n" + "\n".join(service.log_text().splitlines()[-20:]))
        return False


def main():
    options = parse_arguments()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        make_certificate(scratch / "server")
        with contextlib.ExitStack() as ends:
            services = []
            for name, certificate in [("plain", None), ("tls", scratch / "server")]:
                services.append(Service(options.programs, scratch / name, certificate))
                ends.callback(services[-1].stop)
            is_sound = run(Fuzzer(options, *services), options)
    sys.exit(0 if is_sound else 1)


if __name__ == "__main__":
    main()

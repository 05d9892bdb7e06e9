"""A minimal MCP client over the standard streams of a process: it writes and reads JSON lines itself, so its own cost is small."""

import json
import os
import subprocess
import time


class Client:
    """One running MCP server. `run` makes one call of the tool that runs code."""

    def __init__(self, command, tool, arguments_of, environment):
        """Starts the server. `arguments_of` converts a program to the arguments of `tool`."""
        self.tool, self.arguments_of = tool, arguments_of
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
        self.last_id = 0
        information = {"name": "bench-peers", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": information})
        self._send({"method": "notifications/initialized"})

    def _send(self, message):
        self.process.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
        self.process.stdin.flush()

    def _receive(self):
        """Returns the next answer, and skips notifications. Raises RuntimeError if the server has ended."""
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"the server ended with status {self.process.wait()}")
            message = json.loads(line)
            if "id" in message and "method" not in message:
                return message

    def _ask(self, method, parameters):
        self.last_id += 1
        self._send({"id": self.last_id, "method": method, "params": parameters})
        return self._receive()

    def _request(self, program):
        return {"name": self.tool, "arguments": self.arguments_of(program)}

    def run(self, program, expected):
        """Runs a program and returns the seconds from request to answer. Raises RuntimeError if the answer lacks `expected`."""
        started = time.perf_counter()
        answer = self._ask("tools/call", self._request(program))
        took = time.perf_counter() - started
        check(answer, expected)
        return took

    def together(self, program, expected, at_a_time, runs):
        """Runs a program `runs` times with `at_a_time` runs in flight, and returns the seconds for all."""
        started, sent = time.perf_counter(), 0
        for answered in range(runs):
            while sent < min(answered + at_a_time, runs):
                self.last_id, sent = self.last_id + 1, sent + 1
                self._send({"id": self.last_id, "method": "tools/call", "params": self._request(program)})
            check(self._receive(), expected)
        return time.perf_counter() - started

    def close(self):
        """Ends the server."""
        self.process.kill()
        self.process.wait()


def check(answer, expected):
    """Raises RuntimeError unless the result of an answer contains the text `expected` and is no error."""
    result = answer.get("result")
    if not result or result.get("isError") or expected not in json.dumps(result):
        raise RuntimeError(json.dumps(answer)[:300])

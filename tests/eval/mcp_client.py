"""A minimal MCP client over standard input and output."""

import json
import os
import subprocess
from pathlib import Path


class Client:
    """Starts a server as a child process, without the user's configuration. `place` is its home directory."""

    def __init__(self, command: list[str], place: Path, environment: dict | None = None):
        self.said = open(place / "said", "w")
        self.process = subprocess.Popen(
            command,
            cwd=place,
            env={"PATH": os.environ["PATH"], "HOME": str(place), "XDG_RUNTIME_DIR": str(place), **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
        )
        self.last = 0
        client = {"name": "eval", "version": "1"}
        self.initialized = self.request(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        )
        self._write({"method": "notifications/initialized"})

    def _write(self, message: dict):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, parameters: dict) -> dict:
        self.last += 1
        self._write({"id": self.last, "method": method, "params": parameters})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.last and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]
        raise RuntimeError(f"the server has ended: {Path(self.said.name).read_text()[-2000:]}")

    def call(self, tool: str, arguments: dict) -> dict:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.said.close()

"""A minimal JSON-RPC client of `lockhouse serve`, with an environment that excludes the user's configuration."""

import json
import os
import subprocess
from pathlib import Path


class Session:
    def __init__(self, lockhouse: Path, place: Path, servers: dict, policy: str, config: str):
        files = {"servers": json.dumps({"mcpServers": servers}), "policy": policy, "config": config}
        arguments = [str(lockhouse), "serve", "--answer", "structured"]
        for name, text in files.items():
            (place / name).write_text(text)
            arguments += [f"--{name}", str(place / name)]
        self.said = open(place / "said", "w")
        self.process = subprocess.Popen(
            arguments,
            env={"PATH": os.environ["PATH"], "HOME": str(place), "XDG_RUNTIME_DIR": str(place)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
        )
        self.last = 0
        client = {"name": "bfcl", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
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
        raise RuntimeError("lockhouse serve has ended")

    def run_code(self, language: str, code: str, **more) -> dict:
        arguments = {"language": language, "code": code, **more}
        return self.request("tools/call", {"name": "run_code", "arguments": arguments})["structuredContent"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.said.close()

"""Runs fronts and engines of two builds with each other: check.py THIS_BUILD NEXT_BUILD.

An engine only accepts fronts of the same build, so a proxy stands between: it replaces the setup in a front's greeting by the
one that the engine expects, and passes everything else on unchanged."""

import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading

CONFIG = '[sharing]\nengine = "shared"\nidle_seconds = 2\ndirectory = "/"\n'
LINES = """
import time
for number in range(3):
    print("line", number)
[number * number for number in range(5)]
"""


class Client:
    """An AI client at the standard input and output of `lockhouse serve`."""

    def __init__(self, program, root):
        self.log = root / f"front-{os.urandom(4).hex()}.log"
        environment = {"PATH": os.environ["PATH"], "HOME": str(root), "RUST_LOG": "info"}
        for name, folder in [("CONFIG", "config"), ("STATE", "state"), ("CACHE", "cache")]:
            environment[f"XDG_{name}_HOME"] = str(root / folder)
        environment["XDG_RUNTIME_DIR"] = str(root / "run")
        self.process = subprocess.Popen(
            [program, "serve", "--answer", "structured"],
            env=environment, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log.open("w"), text=True,
        )
        self.last = 0
        client = {"name": "skew", "version": "0"}
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method, parameters):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": parameters})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.last:
                return message.get("result") or message["error"]
        raise SystemExit(f"the front ended: {self.log.read_text()}")

    def call(self, tool, **arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments}).get("structuredContent")

    def run(self, code, **arguments):
        return self.call("run_code", code=code, language="python", **arguments)

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


def proxy(path, engine, setup):
    """Listens at `path`, and connects fronts to the socket `engine`, which expects `setup`. Returns the greetings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    greetings = []

    def read_exactly(peer, count):
        received = b""
        while len(received) < count:
            part = peer.recv(count - len(received))
            if not part:
                raise EOFError
            received += part
        return received

    def read_greeting(peer):
        (length,) = struct.unpack(">I", read_exactly(peer, 4))
        return json.loads(read_exactly(peer, length))

    def send_greeting(peer, greeting):
        text = json.dumps(greeting).encode()
        peer.sendall(struct.pack(">I", len(text)) + text)

    def copy(source, target):
        while part := source.recv(1 << 16):
            target.sendall(part)
        target.shutdown(socket.SHUT_RDWR)

    def accept():
        while True:
            front, _ = listener.accept()
            back = socket.socket(socket.AF_UNIX)
            back.connect(str(engine))
            hello = read_greeting(front)
            hello["Hello"]["setup"] = setup
            send_greeting(back, hello)
            reply = read_greeting(back)
            send_greeting(front, reply)
            greetings.append((hello, reply))
            for pair in [(front, back), (back, front)]:
                threading.Thread(target=copy, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return greetings


def check(name, front, engine, version, expected_lines):
    """Runs programs through a front of one build and an engine of another one."""
    failures = []

    def row(what, holds, found=""):
        print(f"  {'pass' if holds else 'FAIL'}  {name}: {what}{'' if holds else f': {found}'}")
        if not holds:
            failures.append(what)

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "config/lockhouse").mkdir(parents=True)
        (root / "config/lockhouse/config.toml").write_text(CONFIG)
        (root / "config/lockhouse/policy.toml").write_text("version = 1\n")
        # The first client starts the engine, and keeps it.
        keeper = Client(engine, root)
        row("the engine's own client", keeper.run("40 + 2")["value"] == 42)
        (path,) = (root / "state/lockhouse/run").glob("engine-*.sock")
        greetings = proxy(root / "run/lockhouse/engine.sock", path, path.stem.removeprefix("engine-"))
        client = Client(front, root)
        answer = client.run(LINES)
        row("a program", answer["value"] == [0, 1, 4, 9, 16] and answer["stdout"] == "line 0\nline 1\nline 2\n", answer)
        answer = client.run("1 / 0")
        row("a program that fails", answer["error"]["type"] == "ZeroDivisionError", answer)
        row("a session", [client.run(code, session="s")["value"] for code in ("x = 20\nx", "x + 22")] == [20, 42])
        answer = client.run("'x' * 100_000")
        handle = json.dumps(answer["truncated"]).split('"')
        handle = next(part for part in handle if len(part) == 32)
        page = client.call("get_result", handle=handle, offset=99_990)
        row("a page of a long result", "xxxxxxxxxx" in json.dumps(page), page)
        answer = client.run("import time\ntime.sleep(20)", timeout_s=1)
        row("a program with a time limit", answer["status"] == "timeout", answer)
        row("a search", "tools" in (client.call("search_tools", query="mail") or {}))
        row("the engine's own client at the end", keeper.run("40 + 2")["value"] == 42)
        used = [reply["Welcome"]["version"] for _, reply in greetings]
        row("one connection of the expected version", used == [version], greetings)
        client.close()
        keeper.close()
        logs = client.log.read_text() + (root / "state/lockhouse/engine.log").read_text()
        for line in expected_lines:
            row(f"the log has {line!r}", line in logs, logs[-3000:])
    return failures


def main():
    this, following = (os.path.abspath(program) for program in sys.argv[1:])
    sent, arrived = "next version: the event Hint is sent", "next version: the event Hint has arrived"
    explained, refused = "Explain is Text(Some(", "Explain is Invalid("
    failures = check("control: this front, this engine", this, this, 3, [])
    failures += check("control: next front, next engine", following, following, 4, [sent, arrived, explained])
    failures += check("next front, this engine", following, this, 3, [refused])
    failures += check("this front, next engine", this, following, 3, [sent])
    sys.exit(1 if failures else 0)


main()

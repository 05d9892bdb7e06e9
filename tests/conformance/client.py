#!/usr/bin/env python3
"""The client that the official conformance suite runs: it drives `lockhouse` against the suite's server.

The suite appends the server's URL and names the scenario in the environment.
"""

import fcntl
import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOCKHOUSE = os.environ.get("LOCKHOUSE", str(ROOT / "target/debug/lockhouse"))
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
# The URL of the client metadata document that the suite names.
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
# Text of Lockhouse's error where a token is missing or its scope is insufficient.
WANTS_LOGIN = "lockhouse server login suite"
LOGIN_SECONDS = 20
LOGINS_MAX = 2

POLICY = 'version = 1\n[servers.suite]\nallow = ["*"]\n'

# Number of concurrent scenarios. The suite starts all scenarios at once.
SLOTS = 3

SAMPLES = {"string": "text", "integer": 2, "number": 3, "boolean": True}

# Calls every tool that is listed, with arguments made from its schema.
CALL_ALL = """
import json
from mcp_tools import call_tool, describe, list_servers
from mcp_tools import suite

SAMPLES = {"string": "text", "integer": 2, "number": 3, "boolean": True, "array": [], "object": {}}
given = json.loads(GIVEN)
calls, schemas = given or [], {}
if not calls:
    for name in [name for name in suite.__all__ if name != "list_tools"]:
        tool = describe(getattr(suite, name))
        schema = tool.get("inputSchema", {})
        properties = schema.get("properties", {})
        if tool["name"] == "json_schema_echo":
            # A scenario that asks for the schema of its other tool, as it was received.
            calls.append({"name": tool["name"], "arguments": {"schema": schemas["json_schema_2020_12_tool"]}})
            continue
        schemas[tool["name"]] = schema
        required = {key: SAMPLES.get(properties.get(key, {}).get("type"), "text") for key in schema.get("required", [])}
        calls.append({"name": tool["name"], "arguments": required})
answers = []
for call in calls:
    try:
        answers.append([call["name"], "ok", str(call_tool("suite", call["name"], call["arguments"]))[:200]])
    except Exception as error:
        answers.append([call["name"], getattr(error, "code", "error"), str(error)])
answers
"""


def configuration(url: str, directory: Path) -> str:
    lines = ["[pool]", "idle = 1", "[servers.suite]", f"url = {json.dumps(url)}", "start_timeout_seconds = 15", "[servers.suite.oauth]"]
    known = {key: CONTEXT[key] for key in ("client_id", "signing_algorithm") if key in CONTEXT}
    for given, key in [("client_secret", "client_secret"), ("private_key_pem", "private_key")]:
        if given in CONTEXT:
            # The configuration refers to secrets and does not contain them.
            (directory / key).touch(mode=0o600)
            (directory / key).write_text(CONTEXT[given])
            known[key] = f"${{file:{directory / key}}}"
    if SCENARIO == "auth/basic-cimd":
        known["client_id"] = CLIENT_METADATA
    if SCENARIO.startswith("auth/client-credentials"):
        known["grant"] = "client_credentials"
    lines += [f"{key} = {json.dumps(value)}" for key, value in known.items()]
    return "\n".join(lines) + "\n"


class Home:
    """Runs `lockhouse` with separate directories."""

    def __init__(self, directory: Path, url: str) -> None:
        self.directory = directory
        settings = directory / "config/lockhouse"
        settings.mkdir(parents=True)
        (settings / "config.toml").write_text(configuration(url, settings))
        (settings / "policy.toml").write_text(POLICY)

    def environment(self) -> dict[str, str]:
        places = {
            "HOME": ".",
            "XDG_CONFIG_HOME": "config",
            "XDG_STATE_HOME": "state",
            "XDG_CACHE_HOME": "cache",
            "XDG_RUNTIME_DIR": "run",
        }
        (self.directory / "run").mkdir(exist_ok=True)
        found = {name: str(self.directory / place) for name, place in places.items()}
        return {"PATH": os.environ["PATH"], **found}

    def ask(self) -> str:
        """Runs the program as an AI client would, and returns the answer as text."""
        with Session(self) as session:
            given = json.dumps(json.dumps(CONTEXT.get("toolCalls", [])))
            arguments = {"language": "python", "code": CALL_ALL.replace("GIVEN", given)}
            answer = session.request("tools/call", {"name": "run_code", "arguments": arguments})
        print("answer:", json.dumps(answer, indent=1), file=sys.stderr)
        return json.dumps(answer)

    def log_in(self) -> bool:
        """Logs in as a user would: opens the printed URL and follows the redirect back to Lockhouse."""
        command = [LOCKHOUSE, "server", "login", "suite", "--no-browser"]
        login = subprocess.Popen(
            command,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            said = ""
            for line in login.stdout:
                said += line
                if address := re.search(r"https?://\S+", line):
                    follow(address.group())
                    break
            rest, _ = login.communicate(timeout=LOGIN_SECONDS)
            print("login:", said, rest, file=sys.stderr)
            return login.returncode == 0
        finally:
            login.kill()


class Session:
    """An AI client of `lockhouse serve` that accepts every elicitation."""

    def __init__(self, home: Home) -> None:
        self.process = subprocess.Popen(
            [LOCKHOUSE, "serve", "--answer", "structured"], env=home.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ids = itertools.count()

    def __enter__(self) -> "Session":
        capabilities = {"elicitation": {"form": {}}}
        us = {"name": "conformance-driver", "version": "0"}
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": us})
        self.send({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(10)
        finally:
            self.process.kill()

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, parameters: dict) -> dict:
        wanted = next(self.ids)
        self.send({"id": wanted, "method": method, "params": parameters})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                print("asked:", line, file=sys.stderr)
                content = agreed(message["params"].get("requestedSchema", {}))
                self.send({"id": message["id"], "result": {"action": "accept", "content": content}})
            elif "method" not in message and message.get("id") == wanted:
                return message.get("result") or message
        raise SystemExit(f"lockhouse ended before it answered {method}")


def agreed(schema: dict) -> dict:
    """Returns the default values of an elicitation form."""
    properties = schema.get("properties", {}).items()
    return {name: field.get("default", SAMPLES.get(field.get("type"))) for name, field in properties}


def follow(address: str) -> None:
    """Follows redirects, as the browser of a user who consents."""
    for _ in range(5):
        parts = urllib.parse.urlsplit(address)
        connection = http.client.HTTPConnection(parts.netloc, timeout=10)
        connection.request("GET", urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, "")))
        answer = connection.getresponse()
        answer.read()
        print("browser:", answer.status, address, file=sys.stderr)
        location = answer.getheader("Location")
        connection.close()
        if location is None:
            return
        address = urllib.parse.urljoin(address, location)


def slot() -> object:
    """Waits for one of the SLOTS and returns its lock file."""
    while True:
        for number in range(SLOTS):
            file = open(Path(tempfile.gettempdir()) / f"lockhouse-conformance-{os.getuid()}-{number}", "w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file
            except BlockingIOError:
                file.close()
        time.sleep(0.2)


def main() -> int:
    with slot(), tempfile.TemporaryDirectory(prefix="lockhouse-conformance-") as directory:
        home = Home(Path(directory), sys.argv[-1])
        answer = home.ask()
        for _ in range(LOGINS_MAX):
            if WANTS_LOGIN not in answer:
                break
            if not home.log_in():
                return 1
            answer = home.ask()
        return 1 if WANTS_LOGIN in answer else 0


if __name__ == "__main__":
    sys.exit(main())

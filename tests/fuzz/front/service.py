"""Starts `lockhouse serve --http` for the fuzzer of its front, and observes its processes, its log and what it answers."""

import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import time

START_SECONDS = 30
ANSWER_SECONDS = 30
VERSION = "2026-07-28"
SESSION_VERSION = "2025-11-25"
# An upstream server whose tool clients call directly, so that their arguments pass through the engine to a server.
ECHO = pathlib.Path(__file__).parents[2] / "servers/echo.py"
# The limits that would slow the fuzzer down are high, and times are short, so that connections that it leaves end soon. The
# front is not replaced after a number of requests, because the fuzzer takes another process id for a crash.
CONFIG = '''
[http]
listen = ["127.0.0.1:{port}"]
hosts = ["localhost"]
{tls}
[http.limits]
connections_per_peer = 1024
unauthenticated_percent = 100
unauthenticated_requests_per_peer_per_second = 65536
tls_handshakes_per_peer_per_second = 65536
tls_seconds = 2
head_seconds = 2
body_seconds = 2
stall_seconds = 2
front_requests = 1000000000
mcp_sessions_per_client = 512
mcp_session_seconds = 60
[clients]
requests = "1000000/s"
runs = "1000000/s"
running = 100
[pool]
queue = 1000
queue_per_client = 1000
[servers.echo]
command = "{python}"
args = ["{echo}", "--arguments"]
expose = "direct"
'''


def make_certificate(path):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
        "-subj",
         "/CN=localhost", "-keyout", f"{path}.key", "-out", f"{path}.pem"], check=True, capture_output=True)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Service:
    """A running `lockhouse serve --http`, with TLS if it gets a certificate."""

    def __init__(self, programs, home, certificate=None):
        self.name, self.home, self.port = home.name, home, free_port()
        home.mkdir()
        tls = f'[http.tls]\ncertificate = "{certificate}.pem"\nkey = "{certificate}.key"' if certificate else ""
        (home / "config.toml").write_text(CONFIG.format(port=self.port, tls=tls, python=sys.executable, echo=ECHO))
        (home / "policy.toml").write_text('version = 1\n[servers.echo]\nallow = ["*"]\n')
        self.command = [str(pathlib.Path(programs) / "lockhouse"), "--config", f"{home}/config.toml", "--policy",
            f"{home}/policy.toml"]
        self.environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
        made = subprocess.run([*self.command, "token", "create", "fuzzer"], env=self.environment, capture_output=True,
            text=True, check=False)
        if made.returncode != 0:
            sys.exit(f"no token is created: {made.stderr}")
        self.token = made.stdout.split()[-1]
        self.log = open(home / "log", "wb+")
        self.process = subprocess.Popen([*self.command, "serve", "--http", "--answer", "structured"], env=self.environment,
            stderr=self.log)
        self.tls = ssl._create_unverified_context() if certificate else None
        self.await_start()
        self.expected = self.pids()
        self.log_read = 0

    def await_start(self):
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                connection = self.connect()
                connection.request("GET", "/live")
                if connection.getresponse().read() == b"alive\n":
                    return
            except OSError:
                time.sleep(0.05)
        sys.exit(f"the service does not start: {self.log_text()}")

    def connect(self):
        if self.tls:
            return http.client.HTTPSConnection("localhost", self.port, context=self.tls, timeout=ANSWER_SECONDS)
        return http.client.HTTPConnection("localhost", self.port, timeout=ANSWER_SECONDS)

    def child(self, command):
        """Returns the ids of the processes with this command that the service has started."""
        listed = subprocess.run(["pgrep", "-P", str(self.process.pid), "-f", command], capture_output=True, text=True,
            check=False)
        return [int(pid) for pid in listed.stdout.split()]

    def pids(self):
        ended = self.process.poll()
        engine = self.process.pid if ended is None else f"ended: {ended}"
        return {"engine": engine, "front": self.child("http-front"), "signer": self.child("tls-signer")}

    def log_text(self):
        return (self.home / "log").read_text(errors="replace")

    def new_log(self):
        """Returns the complete lines that the log has got since the last call."""
        self.log.seek(self.log_read)
        text = self.log.read()
        text = text[: text.rfind(b"\n") + 1]
        self.log_read += len(text)
        return text.decode(errors="replace")

    def answer(self, message, headers):
        connection = self.connect()
        try:
            connection.request("POST", "/mcp", json.dumps(message).encode(),
                headers | {"Authorization": f"Bearer {self.token}"})
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()

    def begin_session(self):
        """Begins an MCP session of an earlier protocol version, and returns its id."""
        client = {"protocolVersion": SESSION_VERSION, "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "fuzzer", "version": "0"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        status, headers, body = self.answer(message, {"Content-Type": "application/json",
            "Accept": "application/json, text/event-stream"})
        if status != 200:
            raise OSError(f"initialize was answered with {status}: {body}")
        return headers["mcp-session-id"]

    def status(self, field):
        """Returns a size of the front in KiB, such as VmRSS."""
        text = pathlib.Path(f"/proc/{self.expected['front'][0]}/status").read_text()
        return int(re.search(rf"^{field}:\s*(\d+)", text, re.MULTILINE)[1])

    def open_files(self):
        return len(os.listdir(f"/proc/{self.expected['front'][0]}/fd"))

    def front_seconds(self):
        """Returns the CPU time of the front."""
        fields = pathlib.Path(f"/proc/{self.expected['front'][0]}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()

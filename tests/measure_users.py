#!/usr/bin/env python3
"""Compares calls with credentials of each user with calls that use those of the service, and measures what many users cost.

measure_users.py PROGRAMS     a directory with lockhouse, lockhouse-worker and liblockhouse_python.so

One service has the same upstream server twice, once with `auth = "per_user"`. One user calls both in turns, in ten pairs whose order
changes; the ratio is the median of the ratios of the pairs, and that of the server without it to itself shows the deviation by chance.
Then a thousand users make a call each, so that connections are opened, and closed again for others.
"""

import http.server
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from measure_http_front import PAUSE, RUNS, check, compare, free_port, private_kib, request_of

USERS = 1000
KEY = "0123456789abcdef0123456789abcdef"


class Upstream(http.server.BaseHTTPRequestHandler):
    """An MCP server whose one tool answers with the header of the caller."""

    protocol_version = "HTTP/1.1"
    # Head and body in one packet: the kernel would delay the second one.
    wbufsize = 65536
    disable_nagle_algorithm = True

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        result = {}
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}
        elif message["method"] == "tools/list":
            result = {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]}
        elif message["method"] == "tools/call":
            result = {"content": [{"type": "text", "text": self.headers.get("X-User", "nobody")}]}
        elif message["method"] == "server/discover":
            self.answer(404, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})
            return
        if "id" not in message:
            self.answer(202, None)
            return
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def do_GET(self):
        self.answer(405, None)

    do_DELETE = do_GET

    def answer(self, status, body):
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Service:
    def __init__(self, programs, scratch):
        self.scratch, self.port = scratch, free_port()
        self.program = str(pathlib.Path(programs) / "lockhouse")
        upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        url = f'url = "http://127.0.0.1:{upstream.server_port}/mcp"\n'
        (scratch / "credentials").mkdir()
        (scratch / "credentials" / "users").write_text(KEY)
        (scratch / "config.toml").write_text(
            f'[http]\nlisten = ["127.0.0.1:{self.port}"]\n[clients]\nrequests = "1000000/s"\nruns = "1000000/s"\n'
            f'[users]\nkey = "${{cred:users}}"\nurl = "http://127.0.0.1:{self.port}"\n[servers.all]\n{url}'
            f'[servers.own]\n{url}auth = "per_user"\nuser_secret = "X-User"\n')
        (scratch / "policy.toml").write_text('version = 1\n[servers.all]\nallow = ["*"]\n[servers.own]\nallow = ["*"]\n')
        self.environment = {"HOME": str(scratch), "PATH": os.environ["PATH"], "CREDENTIALS_DIRECTORY": str(scratch / "credentials")}
        self.files = ["--config", str(scratch / "config.toml"), "--policy", str(scratch / "policy.toml")]

    def start(self):
        log = open(self.scratch / "log", "wb")
        command = [self.program, *self.files, "serve", "--http", "--answer", "structured"]
        self.process = subprocess.Popen(command, env=self.environment, stderr=log)
        for _ in range(400):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ready").read()
                return
            except OSError:
                time.sleep(0.05)
        sys.exit(f"the service does not start: {(self.scratch / 'log').read_text()}")

    def token(self, name):
        made = subprocess.run([self.program, *self.files, "token", "create", name], env=self.environment, capture_output=True, text=True, check=True)
        return made.stdout.strip()

    def log_in(self, token, secret):
        form = urllib.parse.urlencode({"token": token, "secret": secret}).encode()
        page = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/login/own", form).read().decode()
        if "is stored" not in page:
            sys.exit(f"no login: {page}")

    def call(self, token, server, user):
        body, headers = request_of(f"from mcp_tools import call_tool\ncall_tool('{server}', 'who', {{}})")
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/mcp", body, {**headers, "Authorization": f"Bearer {token}"})
        began = time.perf_counter()
        answer = urllib.request.urlopen(request).read()
        took = time.perf_counter() - began
        check(answer, user)
        return took


def paced(service, token, server, user):
    times = []
    for _ in range(RUNS):
        time.sleep(PAUSE)
        times.append(service.call(token, server, user))
    return statistics.median(times)


def main():
    with tempfile.TemporaryDirectory() as directory:
        service = Service(sys.argv[1], pathlib.Path(directory))
        tokens = [(f"user-{number}", service.token(f"user-{number}")) for number in range(USERS)]
        service.start()
        ada = tokens[0][1]
        service.log_in(ada, "user-0")
        users = {"all": "nobody", "own": "user-0"}
        compare("a call with the user's own credential", lambda server: paced(service, ada, server, users[server]), "all", "own")

        for user, token in tokens[1:]:
            service.log_in(token, user)
        before = private_kib(service.process.pid)
        few = [service.call(token, "own", user) for user, token in tokens[1:61]]
        with_few = private_kib(service.process.pid)
        rest = [service.call(token, "own", user) for user, token in tokens[61:]]
        again = [service.call(token, "own", user) for user, token in tokens[:60]]
        after = private_kib(service.process.pid)
        print(f"the first call of a user: median {statistics.median(few) * 1e3:.1f} ms; when the connection of another one is closed for it "
              f"{statistics.median(rest) * 1e3:.1f} ms; when it was closed meanwhile {statistics.median(again) * 1e3:.1f} ms", flush=True)
        print(f"memory of the engine: {(with_few - before) / len(few):.0f} KiB for each connection; {before / 1024:.1f} MiB before, "
              f"{after / 1024:.1f} MiB after calls of {USERS} users", flush=True)
        service.process.terminate()
        service.process.wait()


if __name__ == "__main__":
    main()

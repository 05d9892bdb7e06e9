"""Three hosts of a cluster behind HAProxy on this machine, as packaging/balancers/haproxy.cfg has it, and their AI clients."""

import atexit
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import tempfile
import time

from bench import LIMITS, NATS, ROOT, Host, free_port

BALANCERS = ROOT / "build/balancers/root"
NAME = "lockhouse.example.com"
LATEST = "2026-07-28"
# HAProxy asks each host every 2 s, and uses it after two answers.
SETTLED_SECONDS = 6
META = "io.modelcontextprotocol/"
CONFIG = (LIMITS + 'sessions = 64\n[sessions]\nmax = 64\n[runs]\nwait_seconds = 20\n[servers.arxiv]\ncommand = "python3"\n'
          f'args = ["-B", "{ROOT}/tests/servers/canned.py", "arxiv", "WORK", "any"]\n')
POLICY = 'version = 1\n[servers.arxiv]\nallow = ["*"]\n'


def wait_for(what, condition, seconds=90):
    end = time.time() + seconds
    while not (found := condition()):
        if time.time() > end:
            raise TimeoutError(what)
        time.sleep(0.02)
    return found


class BalancedHost(Host):
    """A host behind the balancer. `nats` is None for a host that is no member of the cluster."""

    def __init__(self, program, work, name, nats=None, config=CONFIG, policy=POLICY):
        super().__init__(program, work, name, nats)
        directory = self.home / "config/lockhouse"
        text = (directory / "config.toml").read_text().replace(LIMITS, config.replace("WORK", str(work)))
        http = f'hosts = ["{NAME}", "127.0.0.1"]\nbehind_proxy = true\ntrusted_proxies = ["127.0.0.1"]\n'
        (directory / "config.toml").write_text(text.replace("[http]\n", f"[http]\n{http}"))
        (directory / "policy.toml").write_text(policy)
        self.name, self.process = name, None

    def log(self):
        return (self.home / "log").read_text()

    def begin(self):
        """Starts the process, and does not wait until it listens."""
        with open(self.home / "log", "wb") as log:
            self.process = subprocess.Popen([self.program, "serve", "--answer", "structured", "--listen", f"127.0.0.1:{self.port}"],
                                            env=self.environment, stdout=log, stderr=log)
        atexit.register(self.process.kill)

    def start(self):
        self.begin()
        wait_for("a host listens", lambda: "listening at" in self.log() or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} does not start: {self.log()}")
        return self

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(60)

    def records(self):
        segments = sorted(self.home.glob("state/lockhouse/audit/**/*.jsonl"))
        lines = [line for segment in segments if segment.name != "segments.jsonl" for line in segment.read_text().splitlines(True)]
        return [json.loads(line) for line in lines if line.endswith("\n")]


class Haproxy:
    """HAProxy with the packaged configuration, changed by pairs of texts."""

    def __init__(self, work, hosts, changes=(), has_affinity=False, has_tls=True):
        text = (ROOT / "packaging/balancers/haproxy.cfg").read_text()
        if not has_affinity:
            text = "".join(line for line in text.splitlines(True) if not line.strip().startswith("stick"))
            changes = [("balance hdr(X-Affinity)", "balance roundrobin"), *changes]
        self.work, self.port, self.has_tls = work, free_port(), has_tls
        tls = f" ssl crt {work}/lockhouse.pem alpn http/1.1" if has_tls else ""
        servers = "".join(f"    server {host.name} 127.0.0.1:{host.port}\n" for host in hosts)
        changes = [("bind :443 ssl crt /etc/haproxy/lockhouse.pem alpn http/1.1", f"bind 127.0.0.1:{self.port}{tls}"),
                   ("    server one 10.0.0.1:7300\n", servers), ("    server two 10.0.0.2:7300\n", ""), *changes]
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        make_certificate(work)
        file = work / f"haproxy-{self.port}.cfg"
        file.write_text(text)
        libraries = {"LD_LIBRARY_PATH": str(BALANCERS / "usr/lib/x86_64-linux-gnu")}
        log = open(work / f"haproxy-{self.port}.log", "wb")
        self.process = subprocess.Popen([BALANCERS / "usr/sbin/haproxy", "-db", "-f", file], env=os.environ | libraries, stdout=log, stderr=log)
        atexit.register(self.process.kill)
        time.sleep(SETTLED_SECONDS)

    def url(self):
        return f"{'https' if self.has_tls else 'http'}://127.0.0.1:{self.port}/mcp"

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


def make_certificate(work):
    if not (work / "lockhouse.pem").exists():
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME},IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
                        "-keyout", work / "key.pem", "-out", work / "certificate.pem"], check=True, capture_output=True)
        (work / "lockhouse.pem").write_text((work / "certificate.pem").read_text() + (work / "key.pem").read_text())


class Service:
    """NATS, three hosts and HAProxy. `programs` are those of the hosts."""

    def __init__(self, programs, config=CONFIG, policy=POLICY):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="lockhouse-balanced-"))
        self.config, self.policy, port = config, policy, free_port()
        self.server = subprocess.Popen([NATS, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", self.work / "nats"], stderr=subprocess.DEVNULL)
        atexit.register(self.server.kill)
        self.nats = f"nats://127.0.0.1:{port}"
        self.hosts = [self.new_host(program, f"h{number + 1}") for number, program in enumerate(programs)]
        self.token, self.other = (self.hosts[0].command("token", "create", name).strip() for name in ("desk", "other"))
        time.sleep(1)
        [host.start() for host in self.hosts]
        self.balancer = Haproxy(self.work, self.hosts)
        # Each host has heard of the others twice.
        time.sleep(4)

    def new_host(self, program, name):
        return BalancedHost(program, self.work, name, self.nats, self.config, self.policy)

    def __enter__(self):
        return self

    def balance(self, *changes, **options):
        """Replaces the balancer by one with another configuration."""
        self.balancer.stop()
        self.balancer = Haproxy(self.work, self.hosts, changes, **options)
        return self.balancer

    def __exit__(self, kind, error, _):
        self.balancer.stop()
        [host.process.kill() for host in self.hosts]
        self.server.kill()
        if error:
            print(f"what was logged: {self.work}", flush=True)
        else:
            shutil.rmtree(self.work, ignore_errors=True)

    def client(self, token=None, host=None):
        return AiClient(self, token or self.token, host)

    def calls(self):
        """Returns how often each program has called the upstream server of the hosts, by what it asked for."""
        file, counts = self.work / "calls", {}
        for line in file.read_text().splitlines() if file.exists() else ():
            query = json.loads(line)["arguments"]["query"]
            counts[query] = counts.get(query, 0) + 1
        return counts


class Reply:
    """The answer to a request; `status` is 0 without one."""

    def __init__(self, status, text, headers=None):
        self.status, self.text, self.headers, self.message = status, text, headers or {}, {}
        lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
        try:
            self.message = json.loads(lines[-1] if lines else text)
        except ValueError:
            pass
        result = self.message.get("result") or {}
        self.answer = result.get("structuredContent") or {}
        self.value = self.answer.get("value")
        self.error = (self.answer.get("error") or self.message.get("error") or {}).get("message", "")

    def __repr__(self):
        return f"{self.status} {self.error or (self.text[:200] if self.value is None else self.value)!r}"


class AiClient:
    """An AI client at the balancer, or at a host, with one connection at a time. It sends nothing again."""

    def __init__(self, service, token, host=None):
        self.port = host.port if host else service.balancer.port
        tls = None if host else ssl.create_default_context(cafile=service.work / "certificate.pem")
        self.connect = lambda: (http.client.HTTPConnection("127.0.0.1", self.port, timeout=120) if host
                                else http.client.HTTPSConnection("127.0.0.1", self.port, timeout=120, context=tls))
        self.token, self.number, self.connection = token, 0, self.connect()

    def request(self, method, parameters, version=LATEST, session=None, key=None):
        """Returns the headers and the body of a request."""
        self.number += 1
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if version == LATEST:
            capabilities = {"extensions": {META + "tasks": {}}} if method.startswith("tasks/") else {}
            parameters = parameters | {"_meta": {META + "protocolVersion": version, META + "clientCapabilities": capabilities,
                                                 META + "clientInfo": {"name": "balanced", "version": "0"}}}
            name = parameters.get("name") or parameters.get("uri") or parameters.get("taskId")
            headers |= {"Mcp-Method": method} | ({"Mcp-Name": name} if name else {})
        if version == LATEST or session:
            headers |= {"MCP-Protocol-Version": version}
        headers |= ({"Mcp-Session-Id": session} if session else {}) | ({"Idempotency-Key": key} if key else {})
        return headers, json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters})

    def send(self, *request, **options):
        headers, body = self.request(*request, **options)
        try:
            self.connection.request("POST", "/mcp", body, headers)
            response = self.connection.getresponse()
            return Reply(response.status, response.read().decode(), response.headers)
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            self.connection = self.connect()
            return Reply(0, repr(error))

    def run(self, code, session=None, key=None):
        arguments = {"language": "python", "code": code} | ({"session": session} if session else {})
        return self.send("tools/call", {"name": "run_code", "arguments": arguments}, key=key)

    def result(self, handle, **arguments):
        return self.send("tools/call", {"name": "get_result", "arguments": {"handle": handle} | arguments})

#!/usr/bin/env python3
"""Three hosts, each with a NATS server of one NATS cluster, in network namespaces of their own: the leader of NATS is killed, and the
link of a host is cut and restored. As root:

    tests/cluster/partition.py target/debug/lockhouse
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from bench import NATS, Client, Host  # noqa: E402

NAMES = ("h1", "h2", "h3")
SWITCH, CLIENTS = "lockhouse-switch", "lockhouse-clients"
# A fence of 20 s, and at most one interval and one attempt to renew a lease after it.
ENDS_WITHIN = 20 + 5
# A lease of 30 s, and the time in which NATS elects leaders.
LOST_WITHIN = 30 + 15
# Another host is silent for at most 15 s.
ANSWERED_WITHIN = 15 + 5
status = 0


def row(name, is_right, found):
    global status
    status |= not is_right
    print(f"{'pass' if is_right else 'FAIL'}  {name}: {found}", flush=True)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def namespace(number):
    return f"lockhouse-h{number}"


def address(number):
    return f"10.77.0.{number}"


def remove_network():
    for name in (SWITCH, CLIENTS, *map(namespace, (1, 2, 3))):
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def make_network():
    remove_network()
    ip("netns", "add", SWITCH)
    ip("-n", SWITCH, "link", "add", "bridge", "type", "bridge")
    ip("-n", SWITCH, "link", "set", "bridge", "up")
    for number, name in ((1, namespace(1)), (2, namespace(2)), (3, namespace(3)), (9, CLIENTS)):
        ip("netns", "add", name)
        ip("link", "add", "eth", "netns", name, "type", "veth", "peer", "name", f"port{number}", "netns", SWITCH)
        ip("-n", SWITCH, "link", "set", f"port{number}", "master", "bridge")
        ip("-n", SWITCH, "link", "set", f"port{number}", "up")
        ip("-n", name, "address", "add", f"{address(number)}/24", "dev", "eth")
        ip("-n", name, "link", "set", "eth", "up")
        ip("-n", name, "link", "set", "lo", "up")


def cut(number, state):
    ip("-n", SWITCH, "link", "set", f"port{number}", state)


class NatsServer:
    def __init__(self, work, number):
        text = (work / "account/nats-server.conf").read_text()
        text = text.replace("port: 4222", f"host: {address(number)}\nport: 4222\nhttp: {address(number)}:8222\nserver_name: n{number}")
        text = text.replace("/etc/nats/server", f"{work}/nats").replace("/var/lib/nats", f"{work}/store{number}")
        routes = ", ".join(f"nats://{address(other)}:6222" for other in (1, 2, 3))
        # The routes of a real cluster use TLS too; these have no other traffic than the test's.
        text += f"cluster {{ name: lockhouse, host: {address(number)}, port: 6222, routes: [{routes}] }}\n"
        text += "system_account: SYSTEM\n"
        text = text.replace("accounts {\n", "accounts {\n  SYSTEM {}\n")
        self.file, self.number, self.log = work / f"nats{number}.conf", number, work / f"nats{number}.log"
        self.file.write_text(text)

    def start(self):
        log = open(self.log, "ab")
        self.process = subprocess.Popen(["ip", "netns", "exec", namespace(self.number), NATS, "--config", self.file],
                                        stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()


def has_leader(server):
    """Whether JetStream accepts requests, as a server sees it."""
    try:
        with urllib.request.urlopen(f"http://{address(server)}:8222/jsz", timeout=2) as answer:
            return bool(json.load(answer).get("meta_cluster", {}).get("leader"))
    except OSError:
        return False


def leader(servers):
    for number in servers:
        try:
            with urllib.request.urlopen(f"http://{address(number)}:8222/jsz?streams=1&accounts=1", timeout=2) as answer:
                details = json.load(answer)["account_details"]
        except OSError:
            continue
        for account in details:
            for stream in account.get("stream_detail") or []:
                if stream["name"] == "KV_lockhouse_hosts" and stream["cluster"].get("leader"):
                    return int(stream["cluster"]["leader"][1:])
    return None


class ClusterHost(Host):
    def __init__(self, program, work, number):
        self.number = number
        super().__init__(program, work, f"h{number}")
        servers = ", ".join(f'"tls://{address(other)}:4222"' for other in (1, 2, 3))
        configuration = self.home / "config/lockhouse/config.toml"
        text = configuration.read_text().replace("[http]\n", f'[http]\nbehind_proxy = true\nhosts = ["{address(number)}"]\n')
        configuration.write_text(text + f'[cluster]\nname = "h{number}"\nnats = [{servers}]\nnats_ca = "{work}/nats.pem"\n'
                                 f'nkey = "${{file:{work}/account/h{number}.nkey}}"\nreplicas = 3\nlisten = "{address(number)}:7303"\n')
        self.port, self.where = 7300, address(number)

    def start(self):
        log = open(self.home / "log", "wb")
        command = ["ip", "netns", "exec", namespace(self.number), self.program, "serve", "--answer", "structured", "--listen",
                   f"{self.where}:7300"]
        self.process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        for _ in range(600):
            if "listening at" in (self.home / "log").read_text():
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit(f"a host does not start: {(self.home / 'log').read_text()}")


class Load:
    """Runs programs at hosts all the time, and keeps their times and errors."""

    def __init__(self, hosts, token):
        self.times, self.errors, self.ends = [], [], False
        self.threads = [threading.Thread(target=self.work, args=[host, token]) for host in hosts]
        [thread.start() for thread in self.threads]

    def work(self, host, token):
        client = Client(host, token, host.where)
        while not self.ends:
            begun = time.perf_counter()
            try:
                client.run("1 + 1")
                client.run("x", f"own-{host.number}")
            except (Exception, SystemExit) as error:
                self.errors.append(str(error))
                client = Client(host, token, host.where)
            self.times.append((time.perf_counter() - begun) * 1000)

    def end(self):
        self.ends = True
        [thread.join() for thread in self.threads]
        times = sorted(self.times)
        return statistics.median(times), times[int(len(times) * 0.99)], len(times), self.errors


def answer_of(host, token, handle):
    try:
        Client(host, token, host.where).call("get_result", {"handle": handle})
        return "a value"
    except SystemExit as error:
        return str(error)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    if len(sys.argv) < 3:
        if os.geteuid() != 0:
            sys.exit("left out, since network namespaces need root")
        make_network()
        try:
            sys.exit(subprocess.run(["ip", "netns", "exec", CLIENTS, sys.executable, __file__, program, "inside"]).returncode)
        finally:
            remove_network()
    work = pathlib.Path(tempfile.mkdtemp(prefix="lockhouse-partition-"))
    hosts, servers = [], {}
    try:
        first = Host(program, work, "tokens")
        first.command("cluster", "account", *NAMES, "--out", str(work / "account"))
        names = ",".join(f"IP:{address(number)}" for number in (1, 2, 3))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        "/CN=nats", "-addext", f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", work / "nats.key", "-out", work / "nats.pem"],
                       check=True, capture_output=True)
        token = first.command("token", "create", "bench").strip()
        for number in (1, 2, 3):
            servers[number] = NatsServer(work, number)
            servers[number].start()
        until = time.monotonic() + 60
        while not all(has_leader(number) for number in servers):
            if time.monotonic() > until:
                sys.exit("the servers of NATS have no leader after 60 s")
            time.sleep(0.1)
        hosts = [ClusterHost(program, work, number).start() for number in (1, 2, 3)]
        for host in hosts:
            Client(host, token, host.where).run("x = 1", f"own-{host.number}")
        time.sleep(10)
        play(hosts, servers, token)
    finally:
        for host in hosts:
            host.process.kill()
        for server in servers.values():
            server.process.kill()
        if status == 0:
            shutil.rmtree(work, ignore_errors=True)
        else:
            print(f"what was logged: {work}")
    sys.exit(status)


def start_as_a_service(host):
    """Starts a host again while NATS does not accept it yet, as a service manager does."""
    for _ in range(10):
        try:
            return host.start()
        except SystemExit as error:
            last = error
            time.sleep(2)
    raise last


def play(hosts, servers, token):
    load = Load(hosts, token)
    time.sleep(10)
    median, slow, count, errors = load.end()
    row("without faults", not errors, f"{count} pairs of runs, median {median:.1f} ms, p99 {slow:.1f} ms {errors[:1]}")

    first = leader(servers)
    load = Load(hosts, token)
    servers[first].kill()
    time.sleep(20)
    _, during, count, errors = load.end()
    row(f"the leader n{first} of NATS is killed", not errors and during <= 1.5 * slow, f"{count} pairs, p99 {during:.1f} ms {errors[:1]}")
    row("no host has ended", all(host.process.poll() is None for host in hosts), [host.process.poll() for host in hosts])
    servers[first].start()
    time.sleep(15)

    third = hosts[2]
    client = Client(third, token, third.where)
    handle = client.run("'x' * 50_000")["truncated"]["value"]["handle"]
    row("control: a value of h3 at h1", answer_of(hosts[0], token, handle) == "a value", "")
    client.run("1", "cut")
    answers = []

    def passed_on():
        try:
            answers.append(Client(hosts[0], token, hosts[0].where).run("import time; time.sleep(90)", "cut"))
        except SystemExit as error:
            answers.append(str(error))
        answers.append(time.time())

    waiting = threading.Thread(target=passed_on)
    waiting.start()
    time.sleep(2)
    load = Load(hosts[:2], token)
    cut(3, "down")
    begun, ends = time.time(), []
    ending = threading.Thread(target=lambda: (third.process.wait(), ends.append(time.time())))
    ending.start()
    lost = None
    while time.time() - begun < LOST_WITHIN + 5 and lost is None:
        if "no host of the cluster has" in answer_of(hosts[0], token, handle):
            lost = time.time() - begun
        time.sleep(0.5)
    waiting.join(30)
    ended = ends[0] - begun if ends else None
    answered = answers[1] - begun if answers else None
    is_true = bool(answers) and "The program may have run" in str(answers[0])
    row("a run that it had from another host is answered", is_true and answered <= ANSWERED_WITHIN, f"after {answered} s: {answers[:1]}")
    row("the host that is cut off ends", ended is not None and ended <= ENDS_WITHIN, f"after {ended} s, status {third.process.poll()}")
    row("its value is lost for others", lost is not None and lost <= LOST_WITHIN and (ended is None or lost > ended), f"after {lost} s")
    _, during, count, errors = load.end()
    row("the others meanwhile", not errors and during <= 1.5 * slow, f"{count} pairs, p99 {during:.1f} ms {errors[:1]}")

    load = Load(hosts[:2], token)
    cut(3, "up")
    time.sleep(25)
    _, during, count, errors = load.end()
    row("the others when NATS rejoins", not errors and during <= 1.5 * slow, f"{count} pairs, p99 {during:.1f} ms {errors[:1]}")
    row("no other host has ended", all(host.process.poll() is None for host in hosts[:2]), "")
    start_as_a_service(third)
    time.sleep(6)
    value = Client(third, token, third.where).run("y = 5", "new")["status"]
    again = Client(hosts[0], token, hosts[0].where).run("y", "new")["value"]
    row("the host joins again", (value, again) == ("ok", 5), (value, again))


if __name__ == "__main__":
    main()

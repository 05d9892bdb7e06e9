#!/usr/bin/env python3
"""Three hosts of a cluster behind HAProxy that sends each request to the next host: restarts and versions under load, clocks that are
wrong, a balancer that repeats requests, the conformance suite, and what another AI client gets.

    tests/cluster/balanced.py target/debug/lockhouse [--next LOCKHOUSE_OF_ANOTHER_VERSION] [restart|versions|clock|repeat|conformance|isolation]...

Needs tests/cluster/prepare.sh and tests/balancers/prepare.sh, for `clock` the package libfaketime of Debian, and for `conformance`
tests/conformance/prepare.sh.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from datetime import datetime, timezone

import partition
from haproxy import BALANCERS, CONFIG, NATS, POLICY, ROOT, SETTLED_SECONDS, Reply, Service, wait_for
from partition import row

ENDED = "has ended: the host that had it has ended. Its variables are lost"
CALLING = "from mcp_tools import call_tool\nimport time\ncall_tool('arxiv.search', {{'query': '{0}'}})\ntime.sleep({1})\n'{0}'"
COUNTING = "from mcp_tools import call_tool\ncall_tool('arxiv.search', {{'query': '{0}'}})\ntry: n += 1\nexcept NameError: n = 1\nn"
FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
CLIENTS, SESSIONS, ROUNDS = 3, 3, 20
RESTARTS_OF_EACH, STARTS = 2, 12
ALL_RETRIES = ("retry-on conn-failure 503", "retry-on all-retryable-errors")
KEEP_ALIVE = ("    option httpclose\n", "")
ONCE = ["once_after_500", "once_after_502", "once_after_504", "once_without_answer"]


class Load:
    """AI clients that run programs all the time, some of them in a session. Each program calls the upstream server once."""

    def __init__(self, service, name, seconds=0.1):
        self.service, self.name, self.seconds, self.ends = service, name, seconds, False
        self.plain, self.sessions = {}, {f"{name}-s{number}": {} for number in range(SESSIONS)}
        self.threads = [threading.Thread(target=self.run_plain, args=[number]) for number in range(CLIENTS)]
        self.threads += [threading.Thread(target=self.run_session, args=[session]) for session in self.sessions]
        [thread.start() for thread in self.threads]

    def run_plain(self, client):
        connection = self.service.client()
        for number in itertools.takewhile(lambda _: not self.ends, itertools.count()):
            tag = f"{self.name}-{client}-{number}"
            self.plain[tag] = connection.run(CALLING.format(tag, self.seconds))

    def run_session(self, session):
        connection = self.service.client()
        for number in itertools.takewhile(lambda _: not self.ends, itertools.count()):
            tag = f"{session}-{number}"
            self.sessions[session][tag] = connection.run(COUNTING.format(tag), session)
            time.sleep(0.1)

    def end(self):
        """Returns the answers to failed programs without a session, with how often each called the upstream server."""
        self.ends = True
        [thread.join() for thread in self.threads]
        self.calls = self.service.calls()
        return [(self.calls.get(tag, 0), reply) for tag, reply in self.plain.items() if reply.value != tag]

    def not_once(self):
        """Returns programs that ran twice, or that were answered and did not run."""
        return [tag for tag, reply in self.plain.items() if self.calls.get(tag, 0) != 1 and (reply.value == tag or self.calls.get(tag, 0) > 1)]


def judge(replies, calls):
    """Returns how often a session has ended, how many answers say that nothing was run, and which answers are wrong. The number of the
    session goes on, or one answer says that it has ended, and it begins again."""
    number, ends, refused, was_said, wrong = 0, 0, 0, False, []
    for tag, reply in replies.items():
        ran = calls.get(tag, 0)
        if ENDED in reply.error and not was_said and ran == 0:
            number, ends, was_said = 0, ends + 1, True
        elif "othing was run" in reply.error and ran == 0:
            refused += 1
        elif reply.value == number + 1 and ran == 1:
            number, was_said = reply.value, False
        else:
            wrong.append((ran, reply))
            number = reply.value if isinstance(reply.value, int) else number
    return ends, refused, wrong


def report(name, load, ends_max):
    failed, not_once = load.end(), load.not_once()
    row(f"{name}: programs without a session", load.plain and not failed, f"{len(load.plain)}, {len(failed)} failed; calls and answer: {failed[:3]}")
    row(f"{name}: each of them ran once", not not_once, not_once[:3])
    judged = [judge(replies, load.calls) for replies in load.sessions.values()]
    (ends, refused), wrong = (sum(found[at] for found in judged) for at in (0, 1)), [reply for found in judged for reply in found[2]]
    row(f"{name}: programs in sessions", not wrong, f"{sum(map(len, load.sessions.values()))}, {len(wrong)} wrong; calls and answer: {wrong[:3]}")
    row(f"{name}: each session that is lost is answered once", all(1 <= found[0] <= ends_max for found in judged),
        f"{ends} lost, and {refused} further answers that nothing was run")


def roll(service, program):
    for host in service.hosts:
        begun = time.time()
        host.stop()
        row(f"{host.name} ends after SIGTERM", host.process.returncode == 0, f"after {time.time() - begun:.1f} s, status {host.process.returncode}")
        host.program = program
        host.start()
        time.sleep(SETTLED_SECONDS)


def first_answers(service):
    """Starts a host again and again. Returns its first answers to runs in the session of another host that are not from there."""
    first, owner, wrong = service.hosts[0], service.client(host=service.hosts[1]), []
    for number in range(STARTS):
        owner.run("x = 'here'", f"first-{number}")
        first.stop()
        first.begin()
        connection = service.client(host=first)
        answer = wait_for("the host answers", lambda: (reply := connection.run("x", f"first-{number}")).status and reply)
        if answer.value != "here":
            wrong.append((answer.error, "and at the other host:", owner.run("x", f"first-{number}").value))
        wait_for("the host listens", lambda: "listening at" in first.log())
    return wrong


def drain(service):
    """Stops a host with a program under way. Returns its answer, and the answers to runs of another host in a session meanwhile."""
    host, other, answers, kept = service.hosts[0], service.client(host=service.hosts[1]), [], []
    service.client(host=host).run("1", "drained")
    running = threading.Thread(target=lambda: kept.append(service.client(host=host).run(CALLING.format("drained", 4))))
    running.start()
    wait_for("the program runs", lambda: "drained" in service.calls())
    host.process.send_signal(signal.SIGTERM)
    wait_for("the host drains", lambda: "draining" in host.log())
    while host.process.poll() is None and running.is_alive():
        answers.append(other.run("1", "drained"))
        time.sleep(0.2)
    running.join()
    host.process.wait(60)
    host.start()
    time.sleep(SETTLED_SECONDS)
    return kept[0], answers


def restart(program, _):
    with Service([program] * 3) as service:
        wrong = first_answers(service)
        row("the first answer of a host that was started again, for a session of another host", not wrong, f"{len(wrong)} of {STARTS} wrong {wrong[:1]}")
        time.sleep(SETTLED_SECONDS)
        kept, answers = drain(service)
        row("control: a host that drains ends its program first", kept.value == "drained", kept)
        begun = [reply for reply in answers if reply.value == 1]
        row("a host that drains begins no program for another host", answers and not begun, f"{len(begun)} of {len(answers)} began; others: "
            f"{sorted({reply.error for reply in answers if reply.value != 1})}")
        load = Load(service, "restart")
        time.sleep(4)
        for _ in range(RESTARTS_OF_EACH):
            roll(service, program)
        report("rolling restart", load, 3 * RESTARTS_OF_EACH)

        load = Load(service, "kill", 1)
        time.sleep(3)
        service.hosts[0].stop(signal.SIGKILL)
        time.sleep(2)
        service.hosts[0].start()
        time.sleep(SETTLED_SECONDS)
        failed, not_once = load.end(), load.not_once()
        row("control: with SIGKILL, programs fail", failed, f"{len(failed)} of {len(load.plain)}; calls and answer: {failed[:1]}")
        row("with SIGKILL, none ran twice", not not_once, not_once[:3])
        lost = {tag: Reply(200, json.dumps({"result": {"structuredContent": {"value": value}}})) for tag, value in (("a", 1), ("b", 2), ("c", 1))}
        row("control: a session that is lost without a word is found", len(judge(lost, dict.fromkeys("abc", 1))[2]) == 1, "")


def versions(program, next_program):
    if not next_program:
        print("left out: versions, since --next names no build of another version", flush=True)
        return
    with Service([program, program, next_program]) as service:
        clients = [service.client(host=host) for host in service.hosts]
        wrong = []
        for owner, client in enumerate(clients):
            handle = client.run("'x' * 50_000 + 'end'").answer["truncated"]["value"]["handle"]
            client.run(f"x = {owner}", f"versions-{owner}")
            for number, other in enumerate(clients):
                found = other.result(handle, offset=49_990).value, other.run("x", f"versions-{owner}").value
                wrong += [(owner, number, found)] if found != ("x" * 10 + "end", owner) else []
        row("two versions: each value and session from each host", not wrong, wrong[:3])
        for name, to in (("upgrade", next_program), ("downgrade", program)):
            load = Load(service, name)
            time.sleep(4)
            roll(service, to)
            report(name, load, 3)


def with_clock(host, shift):
    host.clock = host.home / "clock"
    host.clock.write_text(shift)
    host.environment |= {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(host.clock), "FAKETIME_NO_CACHE": "1",
                         "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    return host


def seconds_ahead(host):
    """Returns how far the clock of a host is ahead, by the time of the last record of its audit log."""
    made = datetime.fromisoformat(host.records()[-1]["time"].replace("Z", "+00:00"))
    return (made - datetime.now(timezone.utc)).total_seconds()


def clock(program, _):
    if not FAKETIME.exists():
        print("left out: clock, since there is no libfaketime: apt-get install libfaketime", flush=True)
        return
    # The default rate of a client.
    with Service([program] * 3, CONFIG.replace('runs = "6000000/min"', 'runs = "120/min"')) as service:
        for number, shift in enumerate(("+1h", "-1h")):
            host = with_clock(service.new_host(program, f"wrong{number}"), shift)
            host.begin()
            status = host.process.wait(60)
            reason = next((line for line in host.log().splitlines() if "the clocks of this host" in line), host.log())
            row(f"a host whose clock is {shift} is refused", status == 7 and any(f"differ by {seconds} s" in reason for seconds in (3599, 3600)),
                f"status {status}, {reason[:120]}")
        shifted = service.hosts[2]
        shifted.stop()
        with_clock(shifted, "+1h")
        read = [sys.executable, "-c", "import time; print(time.clock_gettime(time.CLOCK_BOOTTIME), time.time())"]
        boot, wall = map(float, subprocess.run(read, env=shifted.environment, check=True, capture_output=True, text=True).stdout.split())
        boot, wall = boot - time.clock_gettime(time.CLOCK_BOOTTIME), wall - time.time()
        row("control: the settings change the wall clock only", abs(boot) < 5 and abs(wall - 3600) < 5, f"{wall:.0f} s, and CLOCK_BOOTTIME {boot:.0f} s")
        shifted.clock.write_text("+0")
        shifted.start()
        time.sleep(SETTLED_SECONDS)
        # Each client has a rate of its own.
        for shift, token in (("+1h", service.token), ("-1h", service.other)):
            jump(service, shifted, shift, token)


def jump(service, shifted, shift, token):
    """Sets the clock of a host that has joined, and lets a client run programs at each host for 45 s."""
    shifted.clock.write_text("+0")
    clients = [service.client(token, host) for host in service.hosts]
    clients[2].run("x = 7", "clock")
    before = seconds_ahead(shifted)
    shifted.clock.write_text(shift)
    begun, runs, wrong, limited = time.time(), 0, [], {}
    while time.time() - begun < 45:
        for host, client in zip(service.hosts, clients):
            for code, session, expected in (("1 + 1", None, 2), ("x", "clock", 7)):
                reply, runs = client.run(code, session), runs + 1
                if "rate limit" in reply.error:
                    limited.setdefault(f"session of {shifted.name}" if session else host.name, []).append(reply.error)
                elif reply.value != expected:
                    wrong.append(reply)
        time.sleep(4)
    after = seconds_ahead(shifted)
    row(f"control: the clock of {shifted.name} jumps {shift}", abs(before) < 60 and abs(abs(after) - 3600) < 60, f"by its audit log from {before:.0f} s to {after:.0f} s")
    row(f"{shift}: the host goes on for 45 s and serves", shifted.process.poll() is None and not wrong, f"{runs} programs, {len(wrong)} wrong {wrong[:1]}")
    hosts = json.loads(service.hosts[0].command("cluster", "status", "--json"))["hosts"]
    row(f"{shift}: its lease is renewed", "was not renewed" not in shifted.log() and shifted.name in [host["name"] for host in hosts], "")
    # Until the host learns that its clock is wrong, with its next renewal, it uses up the rate of the others, up to the whole burst.
    longest = max((float(re.search(r"retry in ([0-9.]+) s", error)[1]) for found in limited.values() for error in found), default=0)
    row(f"{shift}: a rate of 120 a minute refuses 72 programs in 45 s for a moment only", longest < 20, {name: (len(found), found[0]) for name, found in limited.items()})


def doctor(service, balancer):
    token = service.work / "token"
    token.write_text(service.token)
    host = service.hosts[0]
    found = subprocess.run([host.program, "doctor", "--json", "--balancer", balancer.url(), "--token-file", token],
                           env=host.environment | {"SSL_CERT_FILE": str(service.work / "certificate.pem")}, capture_output=True, text=True)
    return found.returncode, [check["check"] for check in json.loads(found.stdout)["checks"] if not check["passes"]]


def own_runs(host):
    """The runs of a host, without those of the others, which the list has too."""
    return [run for run in json.loads(host.command("runs", "list", "--json")) if "host" not in run]


def kill_under_programs(service, name, with_keys):
    """Kills a host with four programs. Returns how often each of the four called the upstream server."""
    tags = [f"{name}-{number}" for number in range(12)]
    threads = [threading.Thread(target=service.client().run, args=[CALLING.format(tag, 8), None, str(uuid.uuid4()) if with_keys else None]) for tag in tags]
    for thread in threads:
        thread.start()
        time.sleep(0.2)
    wait_for("the programs run", lambda: all(tag in service.calls() for tag in tags))
    host = service.hosts[0]
    had = len(own_runs(host))
    host.stop(signal.SIGKILL)
    [thread.join() for thread in threads]
    host.start()
    time.sleep(SETTLED_SECONDS)
    calls = service.calls()
    return had, [calls[tag] for tag in tags]


def kill_under_second_request(service, tag):
    """curl sends two requests on one connection, and the host of the second program is killed. Returns how often that called the server."""
    command = ["curl"]
    for at, seconds in ((f"{tag}-first", 0), (tag, 8)):
        arguments = {"language": "python", "code": CALLING.format(at, seconds)}
        headers, body = service.client().request("tools/call", {"name": "run_code", "arguments": arguments})
        command += ["--next"] if at == tag else []
        command += ["--silent", "--output", "/dev/null", "--cacert", service.work / "certificate.pem", "--data", body, service.balancer.url()]
        command += [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    running = subprocess.Popen(command)
    wait_for("the program runs", lambda: tag in service.calls())
    host = next(host for host in service.hosts if own_runs(host))
    host.stop(signal.SIGKILL)
    running.wait(60)
    host.start()
    time.sleep(SETTLED_SECONDS)
    return service.calls()[tag]


def repeat(program, _):
    with Service([program] * 3) as service:
        had, calls = kill_under_programs(service, "packaged", False)
        row("as packaged: a host is killed under programs, none runs twice", had == 4 and calls == [1] * 12, f"{had} of 12 programs, calls {calls}")
        if shutil.which("curl"):
            count = kill_under_second_request(service, "second")
            row("as packaged: the same under the second request on a connection of curl", count == 1, f"the program ran {count} times")
            service.balance(KEEP_ALIVE)
            count = kill_under_second_request(service, "kept")
            print(f"      without option httpclose in the frontend, it ran {count} times", flush=True)
        balancer = service.balance(ALL_RETRIES)
        for with_keys in (False, True):
            had, calls = kill_under_programs(service, f"retries-{with_keys}", with_keys)
            print(f"      with all-retryable-errors, which is forbidden, and {'an' if with_keys else 'no'} Idempotency-Key: {sum(count > 1 for count in calls)} of "
                  f"{had} programs of the killed host ran twice", flush=True)
        found = doctor(service, balancer)
        row("doctor finds all-retryable-errors, round robin", found[0] == 7 and set(ONCE) <= set(found[1]), found)
        found = doctor(service, service.balance())
        row("doctor finds nothing in the balancer of a cluster, round robin", found == (0, []), found)
        found = doctor(service, service.balance(ALL_RETRIES, has_affinity=True))
        row("doctor finds all-retryable-errors, with affinity", found == (7, ONCE), found)
        found = doctor(service, service.balance(has_affinity=True))
        row("control: doctor finds nothing, with affinity", found == (0, []), found)


def passed_scenarios(url, revision, results):
    """Returns the scenarios that pass, and the reasons of failed checks by their scenarios."""
    environment = os.environ | {"PATH": f"{ROOT}/build/conformance/node_modules/.bin:{os.environ['PATH']}"}
    found = subprocess.run(["conformance", "server", "--url", url, "--requirements", revision, "-o", results], env=environment,
                           capture_output=True, text=True, timeout=600)
    lines = [line.strip() for line in found.stdout.splitlines()]
    reasons = {}
    for file in results.glob("*/checks.json"):
        name = file.parent.name.removeprefix("server-").split("-20")[0]
        reasons[name] = [check.get("errorMessage", "")[:160] for check in json.loads(file.read_text()) if check["status"] == "FAILURE"]
    return {re.split(r"[:(]", line[2:])[0].strip() for line in lines if line.startswith("✓ ")}, reasons


def conformance(program, _):
    for revision, era in (("2025-11-25", "--legacy"), ("2026-07-28", "--modern")):
        config = (CONFIG + '[catalogue]\nfirst_list_seconds = 10\n[servers.fixture]\ncommand = "python3"\nexpose = "direct"\nprefix = ""\n'
                  f'args = ["-B", "{ROOT}/tests/servers/conformance.py", "{era}"]\n')
        policy = POLICY + '[servers.fixture]\nallow = ["*"]\nresources = ["*"]\nprompts = ["*"]\n'
        with Service([program] * 3, config, policy) as service:
            single = service.new_host(program, "single")
            file = single.home / "config/lockhouse/config.toml"
            lines = file.read_text().split("[cluster]")[0].splitlines(True)
            lines = [line for line in lines if not line.startswith(("tokens", "hosts", "behind_proxy", "trusted_proxies"))]
            file.write_text("".join(lines).replace("[http]\n", '[http]\nauth = "none"\n'))
            single.start()
            alone, _ = passed_scenarios(f"http://127.0.0.1:{single.port}/mcp", revision, service.work / "alone")
            single.stop()
            # The suite has no tokens.
            header = "    http-request del-header Client-Cert\n"
            balancer = service.balance((header, f'{header}    http-request set-header Authorization "Bearer {service.token}"\n'), has_tls=False)
            through, reasons = passed_scenarios(balancer.url(), revision, service.work / "through")
            row(f"conformance, {revision}", alone and alone <= through, f"{len(alone)} scenarios pass at a single host, {len(through)} through the balancer")
            print("".join(f"      {name}: {reasons.get(name)}\n" for name in sorted(alone - through)), end="", flush=True)


def isolation(program, _):
    config = CONFIG.replace("wait_seconds = 20", "wait_seconds = 0.5")
    with Service([program] * 3, config) as service:
        owner, other = service.client(), service.client(service.other)
        names = ("value", "file", "session", "background run", "task", "cancelled task", "MCP session")
        leaks, gets, wrong = dict.fromkeys(names, 0), dict.fromkeys(names, 0), []
        for number in range(ROUNDS):
            secret = f"SECRET-{number}-{uuid.uuid4().hex}"
            handle = owner.run(f"'x' * 50_000 + '{secret}'").answer["truncated"]["value"]["handle"]
            file = owner.run(f"open('/out/a.txt', 'w').write('{secret}')\n1").answer["files"][0]["handle"]
            session = f"isolation-{number}"
            owner.run(f"x = '{secret}'", session)
            running = owner.run(f"import time\nprint('{secret}', flush=True)\ntime.sleep(100)").answer["handle"]
            begun = owner.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "0"}}, "2025-11-25")
            mcp = begun.headers["mcp-session-id"]
            attempts = {
                "value": lambda client: client.result(handle, offset=49_990),
                "file": lambda client: client.send("resources/read", {"uri": f"lockhouse://result/{file}"}),
                "session": lambda client: client.run("x", session),
                "background run": lambda client: client.result(running, wait_s=0),
                "task": lambda client: client.send("tasks/get", {"taskId": running}),
                "cancelled task": lambda client: client.send("tasks/cancel", {"taskId": running}),
                "MCP session": lambda client: client.send("tools/list", {}, "2025-11-25", mcp),
            }
            for name, attempt in attempts.items():
                reply = attempt(other)
                is_refused = reply.status == 404 or (reply.error and reply.status in (200, 400))
                if secret in reply.text or not is_refused:
                    leaks[name] += 1
                    wrong.append((name, reply))
            for name, attempt in attempts.items():
                reply = attempt(owner)
                # The other client has not cancelled it.
                is_working = name != "task" or reply.message["result"]["status"] == "working"
                has_it = reply.status == 200 and not reply.error and is_working and (name in ("task", "cancelled task", "MCP session") or secret in reply.text)
                gets[name] += has_it
                wrong += [] if has_it else [("control", name, reply)]
        for name in names:
            row(f"{name}: another client gets nothing, its own client gets it", (leaks[name], gets[name]) == (0, ROUNDS), f"{leaks[name]} and {gets[name]} of {ROUNDS}")
        print("".join(f"      {found}\n" for found in wrong[:5]), end="", flush=True)


PARTS = (restart, versions, clock, repeat, conformance, isolation)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lockhouse")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--next")
    arguments = parser.parse_args()
    if not NATS.exists() or not (BALANCERS / "usr/sbin/haproxy").exists():
        sys.exit("run tests/cluster/prepare.sh and tests/balancers/prepare.sh first")
    for part in PARTS:
        if not arguments.parts or part.__name__ in arguments.parts:
            print(part.__name__, flush=True)
            part(str(pathlib.Path(arguments.lockhouse).resolve()), arguments.next and str(pathlib.Path(arguments.next).resolve()))
    sys.exit(partition.status)


if __name__ == "__main__":
    main()

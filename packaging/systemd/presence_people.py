"""Two people of a managed host, for overlay-presence: their terminals, AI clients and watchers, and the records of their engines."""

import json
import os
import pty
import select
import subprocess
import termios
import time

PASSWORDS = {1500: "first-password", 1501: "second-password"}
CALL = "from tickets import echo\necho(value={})"
# How long a program may take to print what is waited for. polkit delays the answer to a wrong password.
SECONDS = 30


def account(person):
    """Returns the arguments of subprocess that run a program in the account of a person."""
    environment = {"HOME": f"/home/person{person}" if person else "/root", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm"}
    return {"user": person, "group": person, "extra_groups": [], "env": environment, "cwd": "/"}


class Terminal:
    """A program on a terminal of its own, in the account of a person."""

    def __init__(self, person, *words):
        self.output, self.seen = "", 0
        self.controller, terminal = pty.openpty()
        streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal, "start_new_session": True}
        # /dev/tty, where the agent asks, is the controlling terminal.
        words = ["setsid", "--ctty", *words]
        self.process = subprocess.Popen(words, **streams, **account(person))
        os.close(terminal)

    def wait_for(self, words):
        """Waits until the program has printed these words after those of the last time. Returns whether it has."""
        end = time.monotonic() + SECONDS
        while words not in self.output[self.seen :]:
            left = end - time.monotonic()
            if left < 0 or not select.select([self.controller], [], [], left)[0]:
                return False
            try:
                self.output += os.read(self.controller, 65536).decode(errors="replace")
            except OSError:
                return False
        self.seen = self.output.index(words, self.seen) + len(words)
        return True

    def give(self, password, prompt="Password:"):
        """Types a password when it is asked for: the echo is switched off then, and what was typed before is discarded."""
        asked = self.wait_for(prompt)
        while asked and termios.tcgetattr(self.controller)[3] & termios.ECHO:
            time.sleep(0.02)
        os.write(self.controller, password.encode() + b"\n")
        return asked

    def answer(self, line):
        """Answers the next question."""
        asked = self.wait_for("Approve?")
        os.write(self.controller, line.encode() + b"\n")
        return asked

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.controller)


def client(person, value):
    """Starts an AI client of a person with a program whose call asks somebody."""
    words = ["timeout", "120", "python3", "/opt/client.py", CALL.format(value)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **account(person))


def result(running):
    """Returns the whole structured answer of a client, without what differs from run to run."""
    answer = json.loads(running.communicate()[0])["result"]
    structured = answer["structuredContent"]
    return {"is_error": answer.get("isError", False)} | {key: structured.get(key) for key in ("status", "value", "error")}


def expected(value):
    """Returns the whole answer of a client whose call was approved."""
    return {"is_error": False, "status": "ok", "value": {"value": value}, "error": None}


class Watcher:
    """`lockhouse approvals --json` of an account: shows the questions, and answers without a proof."""

    def __init__(self, person):
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(["lockhouse", "approvals", "--json"], **streams, **account(person))

    def next(self, name):
        for line in self.process.stdout:
            message = json.loads(line)
            if name in message:
                return message
        return None

    def answer(self, question, **further):
        asked = question["ask"]
        answer = {"id": asked["id"], "digest": asked["digest"], "decision": "approve", "scope": "once", **further}
        self.send(question, answer)
        return self.next("refused")["refused"]["reason"]

    def decline(self, question):
        asked = question["ask"]
        self.send(question, {"id": asked["id"], "digest": asked["digest"], "decision": "decline"})
        self.next("taken")

    def send(self, question, answer):
        print(json.dumps({"supervisor": question["supervisor"], "answer": answer}), file=self.process.stdin, flush=True)

    def end(self):
        self.process.kill()
        self.process.wait()


def answers_without_proof(person):
    """Makes a call of a person, which that person and root approve without a proof. Returns why neither counts, and the answer."""
    watchers = [Watcher(person), Watcher(0)]
    for watcher in watchers:
        watcher.next("watching")
    running = client(person, 7)
    questions = [watcher.next("ask") for watcher in watchers]
    reasons = [watcher.answer(question) for watcher, question in zip(watchers, questions, strict=True)]
    watchers[0].decline(questions[0])
    for watcher in watchers:
        watcher.end()
    return reasons, result(running)


def records(person):
    """Returns the answers in the audit log of a person's engine: outcome, method, account and credential."""
    found = []
    directory = f"/var/log/private/lockhouse-engines/{person}"
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".jsonl"):
            continue
        for line in open(os.path.join(directory, name), encoding="utf-8"):
            record = json.loads(line)
            if record["event"] == "approval" and record["outcome"] != "asked":
                found.append({key: record.get(key) for key in ("outcome", "presence", "uid", "credential")})
    return found

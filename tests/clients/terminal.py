"""Programs on a terminal, with a person who answers their questions."""

import os
import pty
import signal
import subprocess
import threading
import time


def run_on_terminal(command, answers, **options):
    """Runs a command on a terminal and answers its questions. Returns the exit status and what the terminal showed."""
    controller, terminal = pty.openpty()
    child = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, **options)
    os.close(terminal)
    shown, questions, at = b"", list(answers), 0
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
        for number, (question, answer) in enumerate(questions):
            found = shown.find(question.encode(), at)
            if found >= 0:
                at = found + len(question)
                os.write(controller, answer.encode() + b"\n")
                del questions[number]
                break
    return child.wait(), shown.decode(errors="replace")


class Watcher:
    """A person who runs `lockhouse approvals` on a terminal and approves what is asked."""

    def __init__(self, command, environment):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, environment)
        self.shown = b""
        threading.Thread(target=self.answer, daemon=True).start()

    def answer(self):
        answered = 0
        while True:
            try:
                part = os.read(self.terminal, 65536)
            except OSError:
                return
            self.shown += part
            if self.shown.count(b"Approve? [") > answered:
                answered += 1
                # What was typed before the question does not count as an answer.
                time.sleep(0.3)
                os.write(self.terminal, b"y\n")

    def close(self):
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)

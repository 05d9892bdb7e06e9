"""Runs a command on a terminal of its own, and types a line whenever it is asked for one.

    terminal.py LINE... -- COMMAND...

A LINE may be several, with ends of lines between them. The variable PROMPT is the regular expression of a question.
What the terminal showed goes to standard output, and the command's exit status is this program's.
"""

import os
import pty
import re
import sys

PROMPT = re.compile(os.environ.get("PROMPT", r"Approve\? \[.*?\] ").encode())

at = sys.argv.index("--")
lines, command = sys.argv[1:at], sys.argv[at + 1 :]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
shown, seen = b"", 0
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part:
        break
    shown += part
    asked = PROMPT.search(shown, seen)
    if asked and lines:
        seen = asked.end()
        os.write(terminal, lines.pop(0).encode() + b"\n")
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(status))

"""How the kernel schedules a run that computes for long: priority.py URL TOKEN yields|shares. Fails if it is the other of the two."""
import json
import os
import sys
import threading
import time

from request import run

url, token, expected = sys.argv[1:]
SCHED_IDLE = 5
said = []


def idle():
    """The processes that are scheduled as idle work."""
    found = set()
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.sched_getscheduler(int(number)) == SCHED_IDLE:
                found.add(number)
        except ProcessLookupError:
            pass
    return found


code = "import time\nend = time.process_time() + 2\nwhile time.process_time() < end: pass\n'computed'"
before = idle()
running = threading.Thread(target=lambda: said.append(run(url, token, "python", code)))
running.start()
yielding = set()
while running.is_alive():
    yielding |= idle() - before
    time.sleep(0.02)
if not said or said[0].get("value") != "computed":
    sys.exit(f"it did not compute: {json.dumps(said)}")
seen = "yields" if yielding else "shares"
if seen != expected:
    sys.exit(f"it {seen}")

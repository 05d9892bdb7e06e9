"""Checks the scheduling of a CPU-intensive run: priority.py URL TOKEN yields|shares. `yields` expects idle scheduling (SCHED_IDLE),
`shares` expects default scheduling."""
import json
import os
import sys
import threading
import time

from request import run

url, token, expected = sys.argv[1:]
SCHED_IDLE = 5
results = []


def idle():
    """Returns the ids of processes with idle scheduling."""
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
running = threading.Thread(target=lambda: results.append(run(url, token, "python", code)))
running.start()
yielding = set()
while running.is_alive():
    yielding |= idle() - before
    time.sleep(0.02)
if not results or results[0] != "computed":
    sys.exit(f"the run failed: {json.dumps(results)}")
seen = "yields" if yielding else "shares"
if seen != expected:
    sys.exit(f"the run {seen} the CPUs, expected: {expected}")

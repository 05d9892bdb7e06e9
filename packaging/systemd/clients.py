"""Sends requests while a service is restarted: clients.py URL TOKEN SECONDS. Three clients run a program repeatedly, each time on a
new connection, and count the outcomes. Fails if a request is lost or refused without Retry-After."""
import collections
import json
import sys
import threading
import time
import urllib.error

from request import run

url, token, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
outcomes = collections.Counter()
until = time.monotonic() + seconds


def ask(number):
    try:
        answer = run(url, token, "python", f"{number} + 1")
        return "answered" if answer == str(number + 1) else f"wrong value: {json.dumps(answer)[:300]}"
    except urllib.error.HTTPError as error:
        return f"rejected with Retry-After ({error.code})" if error.headers.get("Retry-After") else f"HTTP {error.code}"
    except urllib.error.URLError as error:
        return f"not connected: {error.reason}"
    except OSError as error:
        return f"lost: {error}"


def client(first):
    number = first
    while time.monotonic() < until:
        outcomes[ask(number)] += 1
        number += 1
        time.sleep(0.1)


threads = [threading.Thread(target=client, args=(index * 1000,)) for index in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(dict(outcomes))
bad = [outcome for outcome in outcomes if not outcome.startswith(("answered", "rejected with Retry-After"))]
sys.exit(1 if bad or not outcomes["answered"] else 0)

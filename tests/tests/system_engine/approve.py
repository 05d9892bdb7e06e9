"""Approves the next question at the control sockets of a directory, with lines that any program can send."""

import glob
import json
import os
import socket
import sys
import threading

done = threading.Event()


def approve(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(5)
    try:
        connection.connect(path)
        connection.sendall(b'{"watch":1}\n')
        for line in connection.makefile():
            question = json.loads(line).get("ask")
            if question:
                answer = {"id": question["id"], "digest": question["digest"], "decision": "approve", "scope": "once"}
                connection.sendall(json.dumps({"answer": answer}).encode() + b"\n")
                # The answer to that: it was taken.
                connection.recv(1)
                done.set()
    except OSError:
        return


known = set()
for _ in range(100):
    for path in set(glob.glob(sys.argv[1] + "/control*.sock")) - known:
        known.add(path)
        threading.Thread(target=approve, args=[path], daemon=True).start()
    if done.wait(0.05):
        break
os._exit(0 if done.is_set() else 1)

"""A proxy before an MCP server over stdio that records all messages. Usage: recording.py FILE COMMAND...

FILE gets a line of JSON for each message in order: {"to": "server" | "client", "message": ...}.
"""

import subprocess
import sys
import threading

written = threading.Lock()


def pass_on(source, target, to, file):
    for line in source:
        if line.strip():
            with written:
                file.write(b'{"to":"' + to + b'","message":' + line.strip() + b"}\n")
                file.flush()
        target.write(line)
        target.flush()
    target.close()


with open(sys.argv[1], "ab") as file:
    server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    back = threading.Thread(target=pass_on, args=(server.stdout, sys.stdout.buffer, b"client", file))
    back.start()
    pass_on(sys.stdin.buffer, server.stdin, b"server", file)
    back.join()
sys.exit(server.wait())

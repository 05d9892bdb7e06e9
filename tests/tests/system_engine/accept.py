"""Starts a server for each connection to a socket, as a socket unit of systemd with Accept=yes does.

accept.py SOCKET OWNER PROGRAM [ARGUMENT ...]
"""

import os
import socket
import subprocess
import sys

path, owner, *command = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.chown(path, int(owner), int(owner))
os.chmod(path, 0o600)
listener.listen()
while True:
    connection, _ = listener.accept()
    subprocess.Popen(command, stdin=connection, stdout=connection, stderr=subprocess.DEVNULL)
    connection.close()

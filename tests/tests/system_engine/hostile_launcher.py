"""A launcher that does not keep to the protocol.

hostile_launcher.py SOCKET MODE
"""

import array
import json
import os
import socket
import struct
import sys
import time

path, mode = sys.argv[1:]


def connect():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def take(connection):
    """Takes the request of the engine. Returns the command, and the descriptors of the server's streams."""
    length, control, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(12))
    descriptors = array.array("i")
    for _, _, data in control:
        descriptors.frombytes(data)
    text = b""
    while len(text) < struct.unpack(">I", length)[0]:
        text += connection.recv(65536)
    return json.loads(text), list(descriptors)


def report(connection, value, descriptors=()):
    text = json.dumps(value).encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    connection.sendmsg([struct.pack(">I", len(text)) + text], rights)


connection = connect()
print("connected", flush=True)
if mode == "many connections":
    others = [connect() for _ in range(500)]
    connection.close()
    time.sleep(3600)
command, (stdin, stdout, stderr) = take(connection)
if mode == "takes the secret":
    print(command["Server"]["command"]["environment"]["TOKEN"], flush=True)
elif mode == "garbage":
    connection.send(b"\0\0\0\7garbage")
elif mode == "an endless report":
    connection.send(b"\xff\xff\xff\xff")
    while True:
        connection.send(b"x" * 65536)
elif mode == "an end before the start":
    report(connection, {"Ended": {"method": "Exited", "status": 0}})
elif mode == "control characters":
    report(connection, {"Failed": "\x1b[2Jgone\r\n" + "x" * 5000})
elif mode == "descriptors":
    pipes = [os.pipe()[0] for _ in range(100)]
    report(connection, "Started", pipes)
elif mode == "blocking pipes":
    import fcntl

    for descriptor in (stdin, stdout, stderr):
        fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
    report(connection, "Started")
elif mode == "endless output":
    report(connection, "Started")
    while True:
        os.write(stdout, b"x" * 65536)
elif mode == "wild status":
    report(connection, "Started")
    report(connection, {"Ended": {"method": "Sigkill", "status": 2147483647}})
elif mode.startswith("files: "):
    report(connection, "Started")
    import hostile_helper

    hostile_helper.answer(mode.removeprefix("files: "), stdin, stdout)
time.sleep(3600)

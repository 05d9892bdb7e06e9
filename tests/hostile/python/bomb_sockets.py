# attack: open pairs of sockets without end
# outcome: error Too many open files
# control: none: limits of hosts differ
# limits: timeout_seconds = 20, memory_mib = 64

import socket

kept = []
while True:
    kept.append(socket.socketpair())

# attack: pass the channel on to the supervisor itself
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: there is no channel outside

import array
import socket

import _lockhouse

channel = socket.socket(fileno=_lockhouse.fileno())
channel.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])

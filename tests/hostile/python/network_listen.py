# attack: listen
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import _socket

server = _socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()

# attack: resolve an address that is a number already
# outcome: ok "127.0.0.1"
# control: outside

# Nothing leaves the process for that.
import _socket

_socket.getaddrinfo("127.0.0.1", 80, flags=_socket.AI_NUMERICHOST)[0][4][0]

# attack: resolve a name
# outcome: error not available in the Lockhouse sandbox: there is no network
# control: outside

import socket

socket.getaddrinfo("localhost", 80)

# attack: connect over TCP
# outcome: error not available in the Lockhouse sandbox: there is no network
# control: outside

import socket

socket.create_connection(("127.0.0.1", {TCP})).close()

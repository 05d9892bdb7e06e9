# attack: begin an encrypted connection
# outcome: error not available in the Lockhouse sandbox: there is no network
# control: outside
# preload: ssl

import socket
import ssl

context = ssl.create_default_context()
socket.create_connection(("127.0.0.1", {TCP}), timeout=5).close()

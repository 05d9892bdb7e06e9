# attack: fetch a page with the module loaded by the administrator
# outcome: error not available in the Lockhouse sandbox: there is no network
# control: outside
# preload: http.client

import http.client

connection = http.client.HTTPConnection("127.0.0.1", {TCP}, timeout=5)
connection.request("GET", "/")
connection.close()

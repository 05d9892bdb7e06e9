# attack: let OpenSSL write a file
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside
# preload: ssl

import ssl

context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.keylog_filename = "{DIR}/new"

# attack: read /etc/passwd
# outcome: error not available in the Lockhouse sandbox: files cannot be opened
# control: outside

open("/etc/passwd").read()

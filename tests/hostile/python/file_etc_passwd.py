# attack: read /etc/passwd
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

open("/etc/passwd").read()

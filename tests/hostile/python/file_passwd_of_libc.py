# attack: let the C library read /etc/passwd
# outcome: error name not found
# control: outside

import pwd

pwd.getpwnam("root")

# attack: run a program with subprocess
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import subprocess

subprocess.run(["/bin/true"], check=True)

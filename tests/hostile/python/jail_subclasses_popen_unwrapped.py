# attack: take the words of the seal off Popen and start a program
# outcome: error not available in the Lockhouse sandbox
# control: outside

import subprocess

start = getattr(subprocess.Popen.__init__, "__wrapped__", subprocess.Popen.__init__)
process = subprocess.Popen.__new__(subprocess.Popen)
start(process, ["/bin/true"])
assert process.wait() == 0

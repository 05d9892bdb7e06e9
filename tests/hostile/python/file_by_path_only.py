# attack: hold a directory by O_PATH and open a file below it
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

directory = os.open("{DIR}", os.O_PATH)
os.read(os.open("file", os.O_RDONLY, dir_fd=directory), 100)

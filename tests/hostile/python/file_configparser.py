# attack: read a file as configuration
# outcome: error nothing was read
# control: outside

import configparser

text = "[a]\nb = 1\n"
try:
    with open("{DIR}/new", "w") as file:
        file.write(text)
except PermissionError:
    pass
assert configparser.ConfigParser().read("{DIR}/new"), "nothing was read"

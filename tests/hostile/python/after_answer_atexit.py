# attack: go on at the exit of the interpreter
# outcome: ok "done"
# control: none: outside it would not end

import atexit


@atexit.register
def go_on():
    while True:
        pass


"done"

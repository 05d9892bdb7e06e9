# attack: go on in a handler of the signal that ends others
# outcome: ok "done"
# control: none: outside it would not end

import signal


def go_on(number, frame):
    while True:
        pass


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, go_on)
"done"

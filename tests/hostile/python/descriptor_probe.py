# attack: find a descriptor that somebody forgot to close
# outcome: ok []
# control: none: a control has the descriptors of its parent process

import fcntl

# Three pipes that lead nowhere, the channel, what waits for the channel, and an event loop with its wake-up.
OWN = range(9)


def is_open(descriptor):
    try:
        fcntl.fcntl(descriptor, fcntl.F_GETFL)
    except OSError:
        return False
    return True


[descriptor for descriptor in range(256) if is_open(descriptor) and descriptor not in OWN]

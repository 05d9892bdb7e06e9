# attack: write to every descriptor that is there
# outcome: killed broke the protocol
# control: none: it would write to what the person sees

import os

for descriptor in range(64):
    try:
        os.write(descriptor, b"\xff" * 64)
    except OSError:
        pass
while True:
    pass

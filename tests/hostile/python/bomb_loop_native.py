# attack: compute without end below the interpreter, which then hears no signal
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1

import itertools

sum(itertools.repeat(0))

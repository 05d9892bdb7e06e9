# attack: warn without end
# outcome: limit output limit of 1024 KiB reached
# control: none: it would not end

import warnings

warnings.simplefilter("always")
while True:
    warnings.warn("x" * 1000)

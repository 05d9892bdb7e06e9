# attack: print a million empty lines
# outcome: limit output limit of 1024 KiB reached
# control: none: it would not end
# limits: timeout_seconds = 60

while True:
    print()

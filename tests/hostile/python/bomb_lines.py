# attack: print a million empty lines
# outcome: limit output limit of 1024 KiB reached
# control: none: it would not end

while True:
    print()

# attack: send a million pieces of output
# outcome: limit output limit of 1024 KiB reached
# control: none: it would not end

while True:
    print("x", flush=True)

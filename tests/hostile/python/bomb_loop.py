# attack: compute without end
# outcome: timeout did not end within 2 s
# control: none: it would not end
# limits: timeout_seconds = 2

while True:
    pass

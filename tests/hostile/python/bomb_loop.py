# attack: compute without end
# outcome: timeout did not end within 1 s
# control: none: it would not end
# limits: timeout_seconds = 1
# endurance: ends at its deadline

while True:
    pass

# attack: compute without end and catch every interrupt
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1
# endurance: ends at its deadline

while True:
    try:
        while True:
            pass
    except BaseException:
        pass

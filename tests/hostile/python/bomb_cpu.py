# attack: use more processor time than agreed
# outcome: limit CPU time limit of 1 s reached
# control: none: it would not end
# limits: timeout_seconds = 20, memory_mib = 64, cpu_seconds = 1

while True:
    pass

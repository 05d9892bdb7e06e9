# attack: leave no memory for the interpreter to find the handler of an error with, which CPython from 3.11 on tries for ever
# outcome: timeout the code did not end within 3 s
# outcome: limit memory limit of 64 MiB reached
# outcome: killed for want of memory
# control: none: it would take the machine down
# limits: timeout_seconds = 3, memory_mib = 64

steps = "".join(f"    a = a | {n % 7}\n" for n in range(400))
exec(f"""
def fill():
    a = 0
{steps}
    kept = [None] * 4_000_000
    n = 0
    try:
        while True:
            kept[n] = n + 100_000
            n = n + 1
    except MemoryError:
        b = n + 200_000
        c = n + 200_001
        d = n + 200_002
        e = n + 200_003
""")
fill()

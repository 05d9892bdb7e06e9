# attack: call itself without end
# outcome: error maximum recursion depth exceeded
# control: none: outside it ends with an error as well
# limits: timeout_seconds = 20, memory_mib = 64

def again():
    again()


again()

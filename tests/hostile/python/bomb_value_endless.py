# attack: give a value that contains itself
# outcome: ok ["[Circular]"]
# control: none: there is no answer outside
# limits: timeout_seconds = 20, memory_mib = 64

value = []
value.append(value)
value

# attack: double a text without end
# outcome: limit memory limit of 64 MiB reached
# control: none: it would take the machine down
# limits: timeout_seconds = 20, memory_mib = 64

text = "x"
while True:
    text += text

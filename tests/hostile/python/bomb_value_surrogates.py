# attack: give a value that is no valid text
# outcome: ok "�x�"
# control: none: there is no answer outside
# limits: timeout_seconds = 20, memory_mib = 64

"\ud800x\udfff"

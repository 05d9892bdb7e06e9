# attack: enter the debugger
# outcome: ok null
# control: none: a debugger without input ends with an error outside too

breakpoint()

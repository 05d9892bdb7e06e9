# attack: enter the debugger
# outcome: error not available in the Lockhouse sandbox
# control: none: a debugger without input ends with an error outside too

breakpoint()

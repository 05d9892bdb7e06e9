# attack: take away every built-in
# outcome: error is not defined
# control: none: there is no engine outside

vars(__builtins__).clear()

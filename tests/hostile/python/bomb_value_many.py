# attack: give a value of a million parts
# outcome: error the result exceeds the limit
# control: none: there is no answer outside

["x" * 100] * 100_000

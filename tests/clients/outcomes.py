"""The outcomes of checks: `pass`, `FAIL: …`, or a figure that is only reported."""


def compare(read, expected):
    """The outcome of a check that a model read exactly what it must."""
    if read == expected:
        return "pass"
    common = next((index for index, (one, other) in enumerate(zip(read, expected)) if one != other), min(len(read), len(expected)))
    begin = max(0, common - 40)
    return f"FAIL: read {read[begin : begin + 300]!r} instead of {expected[begin : begin + 300]!r} at character {common} of {len(read)}"


def compare_all(names, read, expected, missing):
    """The outcomes of a conversation. Results that did not arrive are failures; `missing` says why, if it is known."""
    outcomes = {}
    for index, name in enumerate(names):
        outcomes[name] = compare(read[index], expected[index]) if index < len(read) else f"FAIL: no result {missing[:1]}"[:300]
    return outcomes


def report(title, outcomes, table):
    """Prints the outcomes of one client, and returns the number of failures."""
    table[title] = outcomes
    wrong = {name: text for name, text in outcomes.items() if str(text).startswith("FAIL")}
    passed = sum(text == "pass" for text in outcomes.values())
    print(f"{title}: {passed} pass, {len(wrong)} fail", flush=True)
    for name, text in outcomes.items():
        if text != "pass":
            print(f"    {name}: {text}", flush=True)
    return len(wrong)

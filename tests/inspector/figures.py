"""The figures of one load, on one line."""

import json
import sys

text = open(sys.argv[1]).read()
of = json.loads(text[text.index("{") :])["result"]
took = of["latencyMs"]
print(
    f"{of['ok']} of {of['requests']} calls, {of['throughput']:.0f} per second, "
    f"p50 {took['p50']:.0f} ms, p99 {took['p99']:.0f} ms"
)
sys.exit(of["ok"] != of["requests"])

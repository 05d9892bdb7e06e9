# attack: watch the engine by an audit hook, and stop it
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import sys

seen = []
sys.addaudithook(lambda event, arguments: seen.append(event))
import posix

try:
    posix.open("{DIR}/file", 0)
finally:
    assert "open" in seen or "import" in seen or seen

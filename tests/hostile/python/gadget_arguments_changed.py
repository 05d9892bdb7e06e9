# attack: change the arguments while they are on their way
# outcome: ok true
# control: none: there is no MCP server outside

# What is checked is what is sent: the supervisor has its own copy.
import threading

import _lockhouse

arguments = bytearray(b'{"value": "aaaa"}')
held = bytes(arguments)
ended = threading.Event()


def change():
    while not ended.is_set():
        arguments[11:15] = b"bbbb"


threading.Thread(target=change, daemon=True).start()
done, payload = _lockhouse.call("fixture", "echo", held)
ended.set()
done and "aaaa" in payload

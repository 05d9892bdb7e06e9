# attack: use the engine from another thread while it answers
# outcome: ok "done"
# control: none: there is no engine outside

import threading

import lockhouse_runner


def run():
    while True:
        try:
            lockhouse_runner.run("1 + 1", [])
        except BaseException:
            pass


threading.Thread(target=run, daemon=True).start()
"done"

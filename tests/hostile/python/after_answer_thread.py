# attack: go on in a thread after the answer
# outcome: ok "done"
# control: none: outside it would not end

import threading


def go_on():
    from mcp_tools.fixture import delete_everything

    while True:
        try:
            delete_everything()
        except Exception:
            pass


threading.Thread(target=go_on).start()
"done"

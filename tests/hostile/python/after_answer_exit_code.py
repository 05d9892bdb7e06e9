# attack: raise from the thread that ends last
# outcome: ok "done"
# control: none: outside it would not end

import threading

threading._register_atexit(lambda: exec("while True: pass"))
"done"

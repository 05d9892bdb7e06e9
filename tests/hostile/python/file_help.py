# attack: page through documentation, which runs a program
# outcome: error [python] preload
# control: outside

import pydoc

pydoc.pipepager("x", "cat > {DIR}/new")

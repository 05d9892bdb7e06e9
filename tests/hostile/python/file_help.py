# attack: page through documentation, which runs a program
# outcome: error [python] preload
# outcome with packages: error Lockhouse sandbox
# control: outside

import pydoc

pydoc.pipepager("x", "cat > {DIR}/new")

# attack: run a second program within the first
# outcome: ok ["value", null]
# control: none: there is no engine outside

import lockhouse_runner

list(lockhouse_runner.run("import os", []))

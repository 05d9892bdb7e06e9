# attack: read a file through the cache of tracebacks
# outcome: error nothing was read
# control: outside

import linecache

assert linecache.getlines("{DIR}/file"), "nothing was read"

# attack: raise an own limit
# outcome: error not allowed to raise maximum limit
# control: outside
# preload: resource

import resource

soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

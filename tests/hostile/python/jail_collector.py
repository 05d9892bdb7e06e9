# attack: free what the zygote keeps
# outcome: ok 1
# control: none: there is no engine outside

import gc

gc.unfreeze()
gc.set_threshold(1)
gc.collect()
1

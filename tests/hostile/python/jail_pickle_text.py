# attack: run a shell by a pickle from elsewhere
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import pickle

assert pickle.loads(b"cos\nsystem\n(S'true'\ntR.") == 0

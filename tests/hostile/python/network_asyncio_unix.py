# attack: connect to a unix socket with asyncio
# outcome: error not available in the Lockhouse sandbox: there is no network
# control: outside

import asyncio

asyncio.new_event_loop().run_until_complete(asyncio.open_unix_connection("{DIR}/socket"))

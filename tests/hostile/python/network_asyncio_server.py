# attack: listen with asyncio
# outcome: error nothing listens
# outcome: error could not bind
# outcome: error not available in the Lockhouse sandbox
# control: outside

import asyncio

server = asyncio.new_event_loop().run_until_complete(asyncio.start_server(print, "127.0.0.1", 0))
assert server.sockets, "nothing listens"

# attack: run a program with asyncio
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import asyncio


async def run():
    process = await asyncio.create_subprocess_exec("/bin/true")
    assert await process.wait() == 0


asyncio.new_event_loop().run_until_complete(run())

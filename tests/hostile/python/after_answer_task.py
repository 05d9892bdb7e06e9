# attack: go on in a task of the event loop
# outcome: ok "done"
# control: none: outside it would not end

import asyncio


async def go_on():
    while True:
        await asyncio.sleep(0)


kept = asyncio.ensure_future(go_on())
await asyncio.sleep(0)
"done"

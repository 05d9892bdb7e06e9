# attack: swallow the interrupt in coroutines
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1

import asyncio


async def again():
    while True:
        try:
            await asyncio.sleep(3600)
        except BaseException:
            pass


await asyncio.gather(*(again() for _ in range(10)))

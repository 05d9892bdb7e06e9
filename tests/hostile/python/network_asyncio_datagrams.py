# attack: send over UDP with asyncio
# outcome: error not available in the Lockhouse sandbox: there is no network
# control: outside

import asyncio


async def send():
    loop = asyncio.get_running_loop()
    address = ("127.0.0.1", {UDP})
    transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=address)
    transport.sendto(b"x")


asyncio.new_event_loop().run_until_complete(send())

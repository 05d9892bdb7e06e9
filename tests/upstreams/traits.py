"""Checks without Lockhouse that a server still has the traits for which it is in the table. Once a trait is fixed, the row
tests nothing."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator

from server import Server, Trait

# Maximum time until the first message of a server, on a busy machine.
WORDS_SECONDS_MAX = 60
# Time after the end of the input: the maximum after which Lockhouse sends a signal, doubled.
LEAVE_SECONDS = 1
DISCOVER, INITIALIZE, LIST = 1, 2, 3
INFO = {"name": "lockhouse-tests", "version": "1"}
REQUESTS = {
    DISCOVER: {
        "method": "server/discover",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": INFO,
            }
        },
    },
    INITIALIZE: {
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO},
    },
    LIST: {"method": "tools/list"},
}
# The error of Python servers for an unsupported protocol version.
UNSUPPORTED_VERSION = -32022


class Bare:
    """A server that was started without Lockhouse."""

    def __init__(self, process: asyncio.subprocess.Process):
        self.process = process
        # Whether the server has printed a line that is not a message, and whether that was before its first message.
        self.printed_first = self.printed_between = self.spoken = False

    def ask(self, *requests: int):
        for request in requests:
            line = json.dumps({"jsonrpc": "2.0", "id": request, **REQUESTS[request]})
            self.process.stdin.write(f"{line}\n".encode())

    async def answer(self, request: int, seconds: float = WORDS_SECONDS_MAX) -> dict | None:
        """Returns the response to a request and skips all other output. None: the server exited or timed out."""
        with contextlib.suppress(asyncio.TimeoutError):
            return await asyncio.wait_for(self._answer(request), seconds)
        return None

    async def _answer(self, request: int) -> dict | None:
        while line := await self.process.stdout.readline():
            message = parsed(line)
            if message is None:
                self.printed_first |= not self.spoken
                self.printed_between |= self.spoken
                continue
            self.spoken = True
            if message.get("id") == request and "method" not in message:
                return message
        return None

    async def stays(self, seconds: float) -> bool:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.process.wait(), seconds)
        return self.process.returncode is None


@contextlib.asynccontextmanager
async def started(entry: dict, place: str) -> AsyncIterator[Bare]:
    process = await asyncio.create_subprocess_exec(
        entry["command"],
        *entry["args"],
        env={"PATH": os.environ["PATH"], "HOME": place, **entry["env"]},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=4 * 1024 * 1024,
        start_new_session=True,
    )
    try:
        yield Bare(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def parsed(line: bytes) -> dict | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


async def crashes_on_discover(bare: Bare, _: Server) -> bool:
    # The server notices its crash when it reads the next line.
    bare.ask(DISCOVER, INITIALIZE)
    answer = await bare.answer(INITIALIZE)
    return answer is None and not await bare.stays(WORDS_SECONDS_MAX) and bare.process.returncode != 0


async def refuses_initialize(bare: Bare, _: Server) -> bool:
    bare.ask(DISCOVER, INITIALIZE)
    found, answer = await bare.answer(DISCOVER) or {}, await bare.answer(INITIALIZE) or {}
    return "result" in found and answer.get("error", {}).get("code") == UNSUPPORTED_VERSION


async def ignores_eof(bare: Bare, _: Server) -> bool:
    bare.ask(INITIALIZE)
    answer = await bare.answer(INITIALIZE)
    bare.process.stdin.close()
    return answer is not None and await bare.stays(LEAVE_SECONDS)


async def hangs(bare: Bare, server: Server) -> bool:
    bare.ask(INITIALIZE)
    return await bare.answer(INITIALIZE, server.start_timeout_s) is None and bare.process.returncode is None


async def prints_first(bare: Bare, _: Server) -> bool:
    bare.ask(INITIALIZE)
    return await bare.answer(INITIALIZE) is not None and bare.printed_first


async def prints_between(bare: Bare, _: Server) -> bool:
    bare.ask(INITIALIZE, LIST)
    return await bare.answer(LIST) is not None and bare.printed_between


SHOWN = {
    Trait.CRASHES_ON_DISCOVER: crashes_on_discover,
    Trait.REFUSES_INITIALIZE: refuses_initialize,
    Trait.IGNORES_EOF: ignores_eof,
    Trait.HANGS: hangs,
    Trait.PRINTS_FIRST: prints_first,
    Trait.PRINTS_BETWEEN: prints_between,
}


async def missing_traits(server: Server, entry: dict, place: str) -> list[str]:
    """Returns the expected traits that the server does not have."""
    missing = []
    for trait in filter(server.traits.__contains__, Trait):
        async with started(entry, place) as bare:
            if not await SHOWN[trait](bare, server):
                missing.append(f"without Lockhouse it is not true that it {trait.value}")
    return missing

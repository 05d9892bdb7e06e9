"""Sends a case of the fuzzer on a connection of its own, and says what became of it."""

import asyncio
import random
import re
import socket
import ssl
import struct

from . import http2, tls
from .mutation import mutate

# How long a connection waits for the first bytes of an answer and for further ones, and how long a pause within an input is.
FIRST_SECONDS, NEXT_SECONDS, PAUSE_SECONDS = 0.3, 0.04, 0.02
# Above the times of the configuration after which the server gives up.
WRITE_SECONDS = 8
ANSWER_BYTES_MAX = 4_000_000
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)


class Wire:
    """A TCP connection to a service."""

    def __init__(self, connection):
        self.connection, self.loop = connection, asyncio.get_running_loop()

    @classmethod
    async def open(cls, port):
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
        return cls(connection)

    async def send(self, data):
        await asyncio.wait_for(self.loop.sock_sendall(self.connection, data), WRITE_SECONDS)

    async def receive(self, seconds):
        """Returns bytes, none at the end of the connection, or None if nothing arrives in time."""
        try:
            return await asyncio.wait_for(self.loop.sock_recv(self.connection, 65_536), seconds)
        except asyncio.TimeoutError:
            return None

    def half_close(self):
        self.connection.shutdown(socket.SHUT_WR)

    def close(self, with_reset=False):
        if with_reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class TlsWire(Wire):
    """A connection whose bytes are within TLS; with `corruption`, its ciphertext is changed."""

    async def shake_hands(self, protocol, corruption):
        context = ssl._create_unverified_context()
        if protocol:
            context.set_alpn_protocols([protocol])
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.generator = random.Random(corruption) if corruption else None
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await super().send(self.outgoing.read())
            data = await super().receive(WRITE_SECONDS)
            if not data:
                raise ConnectionError("no handshake")
            self.incoming.write(data)

    async def send(self, data):
        for at in range(0, len(data), 16_000):
            self.tls.write(data[at : at + 16_000])
        data = self.outgoing.read()
        await super().send(mutate(self.generator, data) if self.generator and self.generator.random() < 0.7 else data)

    async def receive(self, seconds):
        while True:
            try:
                return self.tls.read(65_536)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                return b"" if isinstance(error, ssl.SSLZeroReturnError) else f"TLS: {error.reason}".encode()
            data = await super().receive(seconds)
            if not data:
                return data
            self.incoming.write(data)

    def half_close(self):
        if self.generator is None or self.generator.random() < 0.5:
            try:
                self.tls.unwrap()
            except ssl.SSLError:
                pass
            try:
                self.connection.send(self.outgoing.read())
            except BlockingIOError:
                pass
        super().half_close()


def is_whole(data):
    """Returns whether the bytes are one complete answer of HTTP/1.1."""
    head, _, body = data.partition(b"\r\n\r\n")
    length = LENGTH.search(head + b"\r\n")
    if length:
        return len(body) >= int(length[1])
    return b"transfer-encoding: chunked" in head.lower() and body.endswith(b"0\r\n\r\n")


async def _read(wire, case):
    """Reads until the connection ends or is silent. Returns the bytes, and how they ended."""
    data, seconds = b"", FIRST_SECONDS
    while len(data) < ANSWER_BYTES_MAX:
        part = await wire.receive(seconds)
        if part is None:
            return data, "open"
        if not part:
            return data, "closed"
        data, seconds = data + part, NEXT_SECONDS
        if case.kind in ("http1 request", "http1 message") and case.end == "wait" and is_whole(data):
            return data, "answered"
        if case.end == "slowly":
            await asyncio.sleep(PAUSE_SECONDS)
    return data, "endless"


def _outcomes(case, data, ended):
    if case.kind in ("tls hello", "tls records"):
        return {tls.outcome(data) if data else f"tls {ended}"}
    if data.startswith(b"TLS: "):
        return {data.decode()}
    found = {f"http {status.decode()}" for status in STATUS.findall(data)}
    if not found and data:
        found = http2.statuses(data)
    return found or {f"no answer, {ended}"}


async def _exchange(case, wire, service, session):
    for number, part in enumerate(case.final_parts(service.token, session)):
        await wire.send(part)
        if number in case.pauses:
            await asyncio.sleep(PAUSE_SECONDS)
    if case.end == "close":
        return b"", "closed by us"
    if case.end == "reset":
        await asyncio.sleep(PAUSE_SECONDS / 2)
        return b"", "closed by us"
    if case.end == "half-close":
        wire.half_close()
    return await _read(wire, case)


async def _rest(wire):
    """Reads what the server answered before it closed the connection."""
    try:
        return await wire.receive(NEXT_SECONDS) or b""
    except (OSError, AttributeError):
        return b""


async def run(case, plain, secure, sessions):
    """Sends a case to the service that it is for. Returns its outcomes, and the bytes of the answer."""
    service = secure if case.is_inner or case.kind.startswith("tls") else plain
    wire = await (TlsWire if case.is_inner else Wire).open(service.port)
    data, ended = b"", "reset"
    try:
        if case.is_inner:
            await wire.shake_hands(case.protocol, case.corruption)
        data, ended = await _exchange(case, wire, service, sessions[service.name])
    except asyncio.TimeoutError:
        ended = "not read"
    except (OSError, ssl.SSLError):
        data = await _rest(wire)
    finally:
        wire.close(case.end == "reset")
    return _outcomes(case, data, ended), data

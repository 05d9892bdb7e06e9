# attack: find what earlier programs left in the memory
# outcome: ok ["find what earlier programs left in the memory"]
# control: none: there are no earlier programs outside
# preload: ctypes

# Every program begins with a header: of all that were run before, none but its own may be there.
import ctypes
import os
import re

PAGE = 4096
HEADER = re.compile(rb"# [a]ttack: ([a-z][ -~]+)\n")
libc = ctypes.CDLL(None, use_errno=True)
libc.write.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t
libc.sbrk.restype = ctypes.c_void_p
reads, writes = os.pipe()


def page_at(address):
    if libc.write(writes, address, PAGE) != PAGE:
        return None
    return os.read(reads, PAGE)


def around(address):
    """What is mapped around an address, in both directions."""
    start = address & ~(PAGE - 1)
    for step in (PAGE, -PAGE):
        place, before = start, b""
        for _ in range(4_000):
            page = page_at(place)
            if page is None:
                break
            yield before[-256:] + page if step > 0 else page + before[:256]
            place, before = place + step, page


local = ctypes.c_int()
starts = [libc.sbrk(0) - 1, id(object()), id(b"x" * 100_000), ctypes.addressof(local), id(None)]
found = {header for start in starts for page in around(start) for header in HEADER.findall(page)}
sorted(header.decode() for header in found)

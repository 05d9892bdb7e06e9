# attack: unpack a megabyte into more than there is room for
# outcome: limit memory limit of 64 MiB reached
# control: none: it would take the memory of the machine
# limits: timeout_seconds = 20, memory_mib = 64

import zlib

packer = zlib.compressobj(1)
packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
len(zlib.decompress(packed))

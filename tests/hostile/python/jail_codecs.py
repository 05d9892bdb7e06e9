# attack: register a codec that does more than decoding
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import codecs
import posix


def decode(data, errors="strict"):
    return str(posix.open("{DIR}/file", 0)), len(data)


codecs.register(lambda name: codecs.CodecInfo(decode, decode, name=name) if name == "planted" else None)
b"x".decode("planted")

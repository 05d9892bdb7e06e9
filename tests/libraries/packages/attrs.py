# package: attrs
# value: {"a":1}
import attrs
@attrs.define
class A:
    a: int
attrs.asdict(A(1))

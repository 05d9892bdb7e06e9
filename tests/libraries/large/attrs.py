# package: attrs
# value: [100000, 20000000]
import attrs
@attrs.define
class Row:
    number: int
    text: str
@attrs.define
class Rows:
    rows: list[Row]
rows = attrs.asdict(Rows([Row(number, "x" * 200) for number in range(100_000)]))["rows"]
[len(rows), sum(len(row["text"]) for row in rows)]

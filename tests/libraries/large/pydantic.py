# package: pydantic
# value: [true, 200000]
import json
import pydantic
class Row(pydantic.BaseModel):
    number: int
    text: str
class Rows(pydantic.BaseModel):
    rows: list[Row]
text = json.dumps({"rows": [{"number": number, "text": "x" * 80} for number in range(200_000)]})
[len(text) > 20_000_000, len(Rows.model_validate_json(text).rows)]

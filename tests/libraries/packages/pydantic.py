# package: pydantic
# value: [{"n":1,"tags":["a"]}, 1]
from pydantic import BaseModel, ValidationError
class Item(BaseModel):
    n: int
    tags: list[str] = []
try:
    Item.model_validate({"n": "x"})
except ValidationError as error:
    count = error.error_count()
[Item.model_validate_json('{"n": "1", "tags": ["a"]}').model_dump(), count]

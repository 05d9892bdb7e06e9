# package: python-dateutil
# value: [true, 40000]
from dateutil import parser
text = "\n".join(f"2020-01-{number % 28 + 1:02d} 10:00:00 +01:00 {'x' * 500}" for number in range(40_000))
[len(text) > 20_000_000, len([parser.parse(line[:26]) for line in text.split("\n")])]

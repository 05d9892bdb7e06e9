"""The figures of one load, on one line; a call that failed makes it fail."""

import json
import sys

text = open(sys.argv[1]).read()
figures = json.loads(text[text.index("{"):])
print(json.dumps(figures)[:400])

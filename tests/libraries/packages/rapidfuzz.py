# package: rapidfuzz
# value: ["apple", 100.0]
from rapidfuzz import fuzz, process
[process.extractOne("appel", ["apple", "pear"])[0], fuzz.ratio("a", "a")]

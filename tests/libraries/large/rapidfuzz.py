# package: rapidfuzz
# value: [true, 0, 9000000]
from rapidfuzz import process
names = [f"name {number * 7919 % 1000003:07d}" * 3 for number in range(600_000)]
[sum(map(len, names)) > 20_000_000, process.extractOne("name 0000000", names)[2], process.cdist(names[:1_500], names[:1_500], workers=4).nbytes]

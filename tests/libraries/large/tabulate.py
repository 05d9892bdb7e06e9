# package: tabulate
# value: true
from tabulate import tabulate
len(tabulate([[number, "x" * 200] for number in range(100_000)], headers=["number", "text"])) > 20_000_000

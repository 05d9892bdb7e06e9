# package: tabulate
# value: "|   a |\n|----:|\n|   1 |"
from tabulate import tabulate
tabulate([[1]], headers=["a"], tablefmt="pipe")

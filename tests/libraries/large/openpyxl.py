# package: openpyxl
# value: [18000, 18000, 18000]
import openpyxl
book = openpyxl.Workbook(write_only=True)
sheet = book.create_sheet()
for number in range(18_000):
    sheet.append([number, f"{number:08d}" * 140])
book.save("large.xlsx")
def rows(path, read_only):
    book = openpyxl.load_workbook(path, read_only=read_only)
    count = sum(1 for row in book.active.iter_rows(values_only=True) if len(row[1]) == 1_120)
    book.save("again.xlsx") if not read_only else book.close()
    return count
[rows("large.xlsx", True), rows("large.xlsx", False), rows("again.xlsx", True)]

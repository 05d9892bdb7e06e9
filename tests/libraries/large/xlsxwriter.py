# package: xlsxwriter
# value: [18000, 18000, true]
import re, zipfile
import xlsxwriter
def written(path, options):
    book = xlsxwriter.Workbook(path, options)
    sheet = book.add_worksheet()
    for number in range(18_000):
        sheet.write_row(number, 0, [number, f"{number:08d}" * 140])
    book.close()
    with zipfile.ZipFile(path) as parts:
        return sum(len(re.findall(b"<row ", parts.read(name))) for name in parts.namelist() if "sheet1" in name), sum(part.file_size for part in parts.infolist())
(usual, size), (constant, _) = written("large.xlsx", {}), written("constant.xlsx", {"constant_memory": True})
[usual, constant, size > 20_000_000]

"""openpyxl: writes each worksheet to a temporary file, which is replaced by memory."""

import io
import zipfile


class _Archive(zipfile.ZipFile):
    """Also accepts a file in memory as the source of an entry."""

    def write(self, filename, arcname=None, *args, **kwargs):
        if isinstance(filename, io.BytesIO):
            return self.writestr(arcname, filename.getvalue(), zipfile.ZIP_DEFLATED)
        return super().write(filename, arcname, *args, **kwargs)


def install():
    from openpyxl.worksheet import _writer
    from openpyxl.writer import excel

    _writer.create_temporary_file = lambda suffix="": io.BytesIO()
    _writer.WorksheetWriter.cleanup = lambda self: None
    excel.ZipFile = _Archive


def rehearse():
    import openpyxl
    from openpyxl import chart, styles

    install()
    book = openpyxl.Workbook()
    book.active["A1"] = 1
    book.active["A1"].font = styles.Font(bold=True)
    book.active.add_chart(chart.BarChart(), "C1")
    buffer = io.BytesIO()
    book.save(buffer)
    openpyxl.load_workbook(io.BytesIO(buffer.getvalue()), read_only=True).active["A1"].value
    openpyxl.load_workbook(io.BytesIO(buffer.getvalue()))

"""xlsxwriter: writes the parts of a workbook to temporary files, unless its option says to use memory."""


def install():
    from xlsxwriter import workbook

    original = workbook.Workbook.__init__

    def __init__(self, filename=None, options=None):
        original(self, filename, {"in_memory": True, **(options or {})})

    workbook.Workbook.__init__ = __init__

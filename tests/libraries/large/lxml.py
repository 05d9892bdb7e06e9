# package: lxml
# value: [true, 200000, 200000, 20000000, true, 3]
import os
from lxml import etree
with open("large.xml", "wb") as file:
    file.write(b"<rows>")
    for number in range(200_000):
        file.write(b"<row id='%d'><text>%s</text></row>" % (number, b"x" * 80))
    file.write(b"</rows>")
def streamed(path):
    count = 0
    for _, element in etree.iterparse(path, tag="row"):
        count += 1
        element.clear()
    return count
root = etree.parse("large.xml").getroot()
with etree.xmlfile("small.xml") as file, file.element("rows"):
    for number in range(3):
        file.write(etree.Element("row"))
[
    os.path.getsize("large.xml") > 20_000_000,
    len(root),
    streamed("large.xml"),
    len(etree.fromstring(b"<a>" + b"x" * 20_000_000 + b"</a>", etree.XMLParser(huge_tree=True)).text),
    len(etree.tostring(root)) > 20_000_000,
    len(etree.parse("small.xml").getroot()),
]

# package: lxml
# value: [["a", "b"], "Hi there", "<r><x>1</x></r>", ["1"], "r"]
import io
from lxml import etree, html
tree = etree.parse(io.BytesIO(b"<r><i n='a'/><i n='b'/></r>"))
page = html.fromstring("<p>Hi <b>there</b></p>")
style = etree.XSLT(etree.fromstring('<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><o><xsl:value-of select="r/x"/></o></xsl:template></xsl:stylesheet>'))
document = etree.fromstring("<r><x>1</x></r>")
with open("a.xml", "w") as file:
    file.write("<r/>")
[tree.xpath("//i/@n"), page.text_content(), etree.tostring(document).decode(), style(document).xpath("//o/text()"), etree.parse("a.xml").getroot().tag]

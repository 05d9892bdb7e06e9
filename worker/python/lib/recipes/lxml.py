"""lxml: its compiled modules are imported at first use."""

MODULES = "lxml.etree lxml.objectify lxml.html lxml.builder lxml.cssselect lxml.html.clean lxml.html.diff lxml.sax lxml._elementpath"


def first_use():
    from lxml import etree, html

    etree.fromstring("<a><b>1</b></a>").xpath("//b/text()"), html.fromstring("<p>a</p>").text_content()


def install():
    from lockhouse_path_arguments import read, write
    from lxml import etree, objectify

    read(etree, "parse iterparse")
    write(etree, "xmlfile htmlfile", 0, "output_file", closes=False)
    read(objectify, "parse", 0, "f")

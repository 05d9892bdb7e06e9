# attack: include a file by an external entity of XML
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import xml.parsers.expat

parser = xml.parsers.expat.ParserCreate()
parser.SetParamEntityParsing(xml.parsers.expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
found = []


def include(context, base, path, public):
    inner = parser.ExternalEntityParserCreate(context)
    inner.CharacterDataHandler = found.append
    with open(path, "rb") as file:
        inner.ParseFile(file)
    return 1


parser.ExternalEntityRefHandler = include
parser.Parse('<!DOCTYPE a [<!ENTITY b SYSTEM "{DIR}/file">]><a>&b;</a>', True)
assert found

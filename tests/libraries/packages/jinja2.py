# package: jinja2
# value: "1, 2"
from jinja2 import Template
Template("{{ items | join(', ') }}").render(items=[1, 2])

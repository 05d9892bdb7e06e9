# package: jinja2
# value: true
import jinja2
template = jinja2.Template("{% for number in numbers %}{{ number }} {{ text }}\n{% endfor %}")
len(template.render(numbers=range(200_000), text="x" * 100)) > 20_000_000

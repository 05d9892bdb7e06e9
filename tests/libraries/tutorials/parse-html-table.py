# task: Extract a table and its links from HTML
# value: {"rows":[{"city":"Bonn","people":330000},{"city":"Ulm","people":126000}],"links":["/bonn","/ulm"]}
import io
import pandas as pd
from bs4 import BeautifulSoup
page = """<table><tr><th>city</th><th>people</th></tr>
<tr><td><a href="/bonn">Bonn</a></td><td>330000</td></tr><tr><td><a href="/ulm">Ulm</a></td><td>126000</td></tr></table>"""
rows = pd.read_html(io.StringIO(page))[0]
links = [a["href"] for a in BeautifulSoup(page, "lxml").select("td a")]
{"rows": rows, "links": links}

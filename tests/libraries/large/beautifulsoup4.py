# package: beautifulsoup4
# value: [true, 10000, 10000]
from bs4 import BeautifulSoup
text = "<html><body>" + "".join(f"<p class='c'>{'x' * 2_000}</p>" for _ in range(10_000)) + "</body></html>"
[len(text) > 20_000_000, *(len(BeautifulSoup(text, parser).find_all("p")) for parser in ("html.parser", "lxml"))]

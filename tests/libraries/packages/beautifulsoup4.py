# package: beautifulsoup4, lxml
# value: [["One", "Two"], "/a", 2]
from bs4 import BeautifulSoup
page = "<ul><li><a href='/a'>One</a></li><li><a href='/b'>Two</a></li></ul>"
soup, other = BeautifulSoup(page, "html.parser"), BeautifulSoup(page, "lxml")
[[a.get_text() for a in soup.select("li > a")], soup.a["href"], len(other.find_all("a"))]

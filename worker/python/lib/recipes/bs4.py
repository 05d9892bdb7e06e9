"""beautifulsoup4: parsers are imported when they are installed."""

MODULES = "html5lib soupsieve bs4.builder._lxml bs4.builder._html5lib"


def first_use():
    from bs4 import BeautifulSoup

    BeautifulSoup("<p class='a'>b</p>", "html.parser").select("p.a")

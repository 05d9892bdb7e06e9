# attack: fetch a page
# outcome: error there is no network
# control: none: the port answers no request

import urllib.request

urllib.request.urlopen("http://127.0.0.1:{TCP}/")

# attack: use the library that everybody uses
# outcome: error there is no network
# control: none: it may not be installed

import requests

requests.get("http://127.0.0.1:{TCP}/")

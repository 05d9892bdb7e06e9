# attack: load native code into a database
# outcome: error not authorized
# control: none: many builds of Python leave extensions out
# preload: sqlite3

import sqlite3

connection = sqlite3.connect(":memory:")
connection.execute("select load_extension('{DIR}/file')").fetchall()

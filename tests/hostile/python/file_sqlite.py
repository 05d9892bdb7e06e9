# attack: keep a database on disk
# outcome: error unable to open database file
# control: outside
# preload: sqlite3

import sqlite3

connection = sqlite3.connect("{DIR}/new")
connection.execute("create table t (a)")
connection.commit()

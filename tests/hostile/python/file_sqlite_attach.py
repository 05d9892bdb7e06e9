# attack: write a file from a database in memory
# outcome: error unable to open database
# control: outside
# preload: sqlite3

import sqlite3

connection = sqlite3.connect(":memory:")
connection.execute("attach database '{DIR}/new' as disk")
connection.execute("create table disk.t (a)")

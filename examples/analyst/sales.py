# Loads a file of orders into a database, a hundred rows at a time, and asks the database.
import ast
import csv
import io

from mcp_tools import ToolError, files, sqlite

orders = list(csv.DictReader(io.StringIO(files.read_text_file(path="orders.csv")["content"])))

sqlite.create_table(
    "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, day TEXT, country TEXT, product TEXT, quantity INTEGER, price INTEGER)"
)
for start in range(0, len(orders), 100):
    rows = ", ".join(
        f"({o['id']}, '{o['day']}', '{o['country']}', '{o['product']}', {o['quantity']}, {o['price']})"
        for o in orders[start : start + 100]
    )
    sqlite.write_query(query=f"INSERT OR REPLACE INTO orders VALUES {rows}")


def rows(query):
    # This server answers rows as Python writes them.
    return ast.literal_eval(sqlite.read_query(query))


try:
    sqlite.write_query("DELETE FROM orders")
    removed = True
except ToolError as error:
    removed = error.code

{
    "orders": rows("SELECT count(*) AS n FROM orders")[0]["n"],
    "by_country": {
        row["country"]: row["worth"]
        for row in rows("SELECT country, sum(quantity * price) AS worth FROM orders GROUP BY country ORDER BY country")
    },
    "best_quarter": rows(
        "SELECT (substr(day, 6, 2) + 2) / 3 AS quarter, sum(quantity * price) AS worth FROM orders GROUP BY 1 ORDER BY 2 DESC"
    )[0]["quarter"],
    "removed": removed,
}

// Loads a file of orders into a database, a hundred rows at a time, and asks the database.
const [head, ...lines] = (await files.read_text_file({ path: "orders.csv" })).content.trim().split("\n");
const orders = lines.map((line) => line.split(","));

await sqlite.create_table(
  "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, day TEXT, country TEXT, product TEXT, quantity INTEGER, price INTEGER)",
);
for (let start = 0; start < orders.length; start += 100) {
  const rows = orders
    .slice(start, start + 100)
    .map(([id, day, country, product, quantity, price]) => `(${id}, '${day}', '${country}', '${product}', ${quantity}, ${price})`);
  await sqlite.write_query({ query: `INSERT OR REPLACE INTO orders VALUES ${rows.join(", ")}` });
}

// This server answers rows as Python writes them.
const rows = async (query: string) => JSON.parse((await sqlite.read_query(query)).replaceAll("'", '"'));

const removed = await sqlite.write_query("DELETE FROM orders").then(() => true, (error) => error.code);
const countries = await rows("SELECT country, sum(quantity * price) AS worth FROM orders GROUP BY country ORDER BY country");
const quarters = await rows(
  "SELECT (substr(day, 6, 2) + 2) / 3 AS quarter, sum(quantity * price) AS worth FROM orders GROUP BY 1 ORDER BY 2 DESC",
);
return {
  orders: (await rows("SELECT count(*) AS n FROM orders"))[0].n,
  by_country: Object.fromEntries(countries.map(({ country, worth }) => [country, worth])),
  best_quarter: quarters[0].quarter,
  removed,
};

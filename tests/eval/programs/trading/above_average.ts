const strong: string[] = [];
for (const symbol of ["AAPL", "TSLA", "QUAS", "ZETA", "NEPT"]) {
  const info = await trading.get_stock_info({ symbol });
  if (info.price > info["MA(5)"] && info["MA(5)"] > info["MA(20)"]) strong.push(symbol);
}
let result;
for (const stock of strong) result = await trading.add_to_watchlist({ stock });
return result.watchlist;

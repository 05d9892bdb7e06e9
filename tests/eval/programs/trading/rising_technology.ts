const { stock_list } = await trading.get_available_stocks({ sector: "Technology" });
const infos = await Promise.all(stock_list.map((symbol) => trading.get_stock_info({ symbol })));
return stock_list
  .map((symbol, i) => [symbol, infos[i].percent_change])
  .filter(([, change]) => change > 0.1)
  .sort((a, b) => b[1] - a[1]);

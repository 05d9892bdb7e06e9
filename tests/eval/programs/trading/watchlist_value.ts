const { watchlist } = await trading.getWatchlist();
const prices = {};
for (const symbol of watchlist) {
  const info = await trading.getStockInfo({ symbol });
  prices[symbol] = info.price;
}
const total = Object.values(prices).reduce((a, b) => a + b, 0);
return { prices, total: Math.round(total * 100) / 100 };

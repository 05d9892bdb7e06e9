const account = await trading.getAccountInfo();
const stock = await trading.getStockInfo({ symbol: "NVDA" });
const amount = Math.floor(account.balance / stock.price);
const order = await trading.placeOrder({ order_type: "Buy", symbol: "NVDA", price: stock.price, amount });
const details = await trading.getOrderDetails({ order_id: order.order_id });
return [details.symbol, details.amount, details.status];

const { symbol } = await trading.getSymbolByName({ name: "Nvidia" });
const { price } = await trading.getStockInfo({ symbol });
const tweet = await twitter.postTweet({ content: `${symbol} is at ${price}`, tags: ["#" + symbol] });
return tweet.content;

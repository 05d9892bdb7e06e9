"""What the programs must return or print, and do: the leaderboard's stock trading."""

from tasks import task


@task("prices of the stocks in my watchlist")
def watchlist_value(t):
    trading = t.environment("trading")
    prices = {symbol: trading.stocks[symbol]["price"] for symbol in trading.watch_list}
    return {"prices": prices, "total": round(sum(prices.values()), 2)}


@task("stocks of a sector that go up")
def rising_technology(t):
    stocks = t.environment("trading").stocks
    changes = [[symbol, stocks[symbol]["percent_change"]] for symbol in ("AAPL", "GOOG", "MSFT", "NVDA")]
    return sorted((pair for pair in changes if pair[1] > 0.1), key=lambda pair: -pair[1])


@task("account balance, stock price, place an order")
def buy_what_i_can(t):
    t.trading.place_order(order_type="Buy", symbol="NVDA", price=220.34, amount=45)
    return ["NVDA", 45, "Open"]


@task("stock symbol of a company name")
def symbols_of_companies(t):
    return "AAPL ZETA NEPT"


@task("compare prices with moving averages")
def above_average(t):
    stocks = t.environment("trading").stocks
    for symbol in ("AAPL", "TSLA", "QUAS", "ZETA", "NEPT"):
        if stocks[symbol]["price"] > stocks[symbol]["MA(5)"] > stocks[symbol]["MA(20)"]:
            t.trading.add_to_watchlist(stock=symbol)
    return t.environment("trading").watch_list

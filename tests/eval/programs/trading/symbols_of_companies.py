from mcp_tools.trading import get_symbol_by_name

companies = ["Apple", "Zeta Corp", "Neptune Systems"]
symbols = list(map(lambda name: get_symbol_by_name(name=name)["symbol"], companies))
" ".join(symbols)

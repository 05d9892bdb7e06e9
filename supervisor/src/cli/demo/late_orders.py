from collections import Counter
from mcp_tools.shop import list_orders, list_customers, list_tickets

def every(tool, key, **filters):
    rows, offset = [], 0
    while offset is not None:
        page = tool(offset=offset, limit=500, **filters)
        rows += page[key]
        offset = page["next_offset"]
    return rows

customers = {c["id"]: c for c in every(list_customers, "customers")}
late = {o["id"]: o for o in every(list_orders, "orders") if o["status"] == "late"}
asked = Counter(t["order_id"] for t in every(list_tickets, "tickets") if t["order_id"] in late)
print(len(customers), "customers,", len(late), "late orders,", sum(asked.values()), "tickets about them")

by_country = Counter(customers[o["customer_id"]]["country"] for o in late.values())
[{"country": c, "late": n, "tickets": sum(k for o, k in asked.items()
  if customers[late[o]["customer_id"]]["country"] == c)} for c, n in by_country.most_common(4)]

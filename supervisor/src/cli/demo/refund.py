from mcp_tools import call_tool
call_tool("shop", "refund_order", {"order_id": "O-10001", "reason": "the customer is always right"})

"""Serves pydantic-monty over MCP (stdio): the tool `run_code` evaluates a program in a worker process of one pool, without tools."""

import json
import sys

import pydantic_monty


def result_of(message, pool):
    """Returns the result of a request, or None for an unknown method."""
    method, parameters = message["method"], message.get("params", {})
    if method == "initialize":
        return {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "monty", "version": "1"}}
    if method == "tools/call":
        with pool.checkout() as session:
            value = session.feed_run(parameters["arguments"]["code"])
        return {"content": [{"type": "text", "text": json.dumps(value)}]}
    return None


with pydantic_monty.Monty() as workers:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result_of(message, workers)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()

"""An MCP server over stdio for the programs of `tests/mistakes`: `crm` or `billing`, without output schemas and annotations, as
most servers are. Results are JSON as text, text, or an image.

Usage: accounts.py crm|billing [--more]
--more  the server has further tools, for the programs of `own.toml`
"""

import base64
import json
import sys
import zlib

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
CONTACTS = [
    {"id": f"c{number:05}", "name": name, "email": f"{name.lower()}@example.com", "country": country, "plan": plan, "created": f"2024-0{number + 1}-01"}
    for number, name, country, plan in [(0, "Ada", "DE", "pro"), (1, "Grace", "US", "free"), (2, "Linus", "FI", "pro")]
]
INVOICES = [
    {"id": f"i{number:05}", "contact_id": f"c{number:05}", "amount": 100 + number, "currency": currency}
    for number, currency in [(0, "EUR"), (1, "USD"), (2, "EUR")]
]
RATES = {"USD": 1.0, "EUR": 1.08, "CHF": 1.13}


class Failed(Exception):
    """The tool reports this as its error."""


def list_contacts(cursor=None, limit=50):
    start = int(cursor or 0)
    end = start + limit
    return json.dumps({"contacts": CONTACTS[start:end], "next_cursor": str(end) if end < len(CONTACTS) else None})


def get_contact(contact_id):
    found = [contact for contact in CONTACTS if contact["id"] == contact_id]
    if not found:
        raise Failed(f"there is no contact {contact_id!r}")
    return json.dumps(found[0])


def merge_contacts(keep, duplicates):
    return "null"


def get_photo(contact_id):
    return png()


def get_rate(currency):
    if currency not in RATES:
        raise Failed(f"there is no rate for {currency!r}; there are USD, EUR, CHF")
    return str(RATES[currency])


def list_invoices(page=1, currency=None):
    return json.dumps([invoice for invoice in INVOICES if currency in (None, invoice["currency"])])


def read_note(file_path, offset=0):
    return f"note {file_path}" if file_path == "terms.txt" else ""


def refund(invoice_id, amount):
    return json.dumps({"refunded": amount})


def png():
    """A picture of one red pixel."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = chunk(b"IHDR", b"\0\0\0\1\0\0\0\1\x08\x02\0\0\0")
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")


# Of each server: its tools, each with its parameters and those that are required. The further tools are those after the number.
SERVERS = {
    "crm": (3, [
        (list_contacts, {"cursor": TEXT, "limit": NUMBER}, []),
        (get_contact, {"contact_id": TEXT}, ["contact_id"]),
        (merge_contacts, {"keep": TEXT, "duplicates": TEXT}, ["keep", "duplicates"]),
        (get_photo, {"contact_id": TEXT}, ["contact_id"]),
    ]),
    "billing": (2, [
        (get_rate, {"currency": TEXT}, ["currency"]),
        (list_invoices, {"page": NUMBER, "currency": TEXT}, []),
        (read_note, {"file_path": TEXT, "offset": NUMBER}, ["file_path"]),
        (refund, {"invoice_id": TEXT, "amount": NUMBER}, ["invoice_id", "amount"]),
    ]),
}


def definition(function, properties, required):
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": function.__name__, "description": function.__name__.replace("_", " "), "inputSchema": schema}


def result(function, arguments):
    try:
        value = function(**arguments)
    except (Failed, ValueError) as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    if isinstance(value, bytes):
        return {"content": [{"type": "image", "data": base64.b64encode(value).decode(), "mimeType": "image/png"}]}
    return {"content": [{"type": "text", "text": value}]}


def answer(tools, method, parameters):
    match method:
        case "initialize":
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "accounts", "version": "1"}}
        case "tools/list":
            return {"tools": [definition(*tool) for tool in tools]}
        case "tools/call":
            function = next(tool[0] for tool in tools if tool[0].__name__ == parameters["name"])
            return result(function, parameters.get("arguments") or {})
        case "ping":
            return {}
    return None


def main():
    count, tools = SERVERS[sys.argv[1]]
    tools = tools if "--more" in sys.argv else tools[:count]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            found = answer(tools, message["method"], message.get("params") or {})
            outcome = {"error": {"code": -32601, "message": "Method not found"}} if found is None else {"result": found}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)


main()

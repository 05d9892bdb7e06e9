"""An AI client of one request: runs a Python program with `lockhouse serve`, and prints its answer.

client.py PROGRAM [ARGUMENT of lockhouse serve ...]
"""

import json
import subprocess
import sys

program, *arguments = sys.argv[1:]
server = subprocess.Popen(
    ["lockhouse", "serve", "--answer", "structured", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)


def request(number, method, parameters):
    send({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters})
    for line in server.stdout:
        message = json.loads(line)
        if message.get("id") == number and "method" not in message:
            return message
    sys.exit("the connection ended")


def send(message):
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()


client = {"name": "agent", "version": "0"}
request(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
send({"jsonrpc": "2.0", "method": "notifications/initialized"})
call = {"name": "run_code", "arguments": {"language": "python", "code": program}}
print(json.dumps(request(2, "tools/call", call)))
server.stdin.close()
server.wait()

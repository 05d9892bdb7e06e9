"""A stand-in for the model's API: plays a script of tool calls to an AI client, in the API that the client speaks.

The model's turn follows from the number of tool results in the request, so that a request that a client repeats gets the same answer.
"""

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from model_dialects import DIALECTS, Call, Seen


@dataclass
class Step:
    """One turn of the model: a call of the tool whose name ends with `tool`, with `arguments`, which may be a function of the results
    so far, or a call for each item of a list of arguments; or, without a tool, a text."""

    tool: str | None = None
    arguments: dict | list[dict] | Callable[[list[str]], dict] = field(default_factory=dict)
    text: str = "done"

    @property
    def count(self):
        return len(self.arguments) if isinstance(self.arguments, list) else 1

    def calls(self, results):
        """The arguments of each call."""
        arguments = self.arguments(results) if callable(self.arguments) else self.arguments
        return arguments if isinstance(arguments, list) else [arguments]


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Says nothing of clients that were killed during a request."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class ModelApi:
    """The server. `steps` is the script; `seen` has the requests that offered tools, in their order."""

    def __init__(self):
        self.steps: list[Step] = []
        self.seen: list[Seen] = []
        self.missing: list[str] = []
        self.server = Server(("127.0.0.1", 0), handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def play(self, steps):
        self.steps, self.seen, self.missing = steps, [], []

    def turn(self, dialect, body):
        """Returns the model's turn as a list of calls or a text."""
        seen = dialect.read(body)
        if not seen.tools:
            # A request for a title or a summary, without the tools of the conversation.
            return "a title"
        self.seen.append(seen)
        step = self.step(len(seen.results))
        if step.tool is None:
            return step.text
        name = next((name for name in seen.tools if name.endswith(step.tool)), None)
        if name is None:
            self.missing.append(f"{step.tool} is not among {sorted(seen.tools)}")
            return f"there is no tool {step.tool}"
        return [Call(name, seen.tools[name], arguments, f"{seen.size}_{number}") for number, arguments in enumerate(step.calls(self.results()))]

    def step(self, results):
        """The step that follows after this number of results; the last one if there are more."""
        for step in self.steps:
            if results <= 0 or step.tool is None:
                return step
            results -= step.count
        return self.steps[-1]

    def results(self):
        """The results of all calls, each as the model read it first: clients shorten the old ones of a long conversation."""
        first = []
        for seen in self.seen:
            first += seen.results[len(first) :]
        return first


def handler(api):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            models = [{"id": "m", "object": "model", "slug": "m"}]
            self.reply(200, json.dumps({"object": "list", "data": models, "models": []}).encode(), "application/json")

        def do_POST(self):
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            path = self.path.split("?")[0]
            dialect = next((dialect for dialect in DIALECTS if path.endswith(dialect.path)), None)
            if dialect is None:
                self.reply(404 if "count" not in path else 200, b'{"input_tokens": 10, "totalTokens": 10}', "application/json")
                return
            body = json.loads(raw)
            turn = api.turn(dialect, body)
            events, whole = dialect.write(turn, body)
            streams = events and (whole is None or "stream" in path)
            if not streams:
                self.reply(200, json.dumps(whole).encode(), "application/json")
                return
            lines = []
            for name, event in events:
                data = event if isinstance(event, str) else json.dumps(event)
                lines.append((f"event: {name}\n" if name else "") + f"data: {data}\n\n")
            self.reply(200, "".join(lines).encode(), "text/event-stream")

        def reply(self, status, payload, kind):
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_):
            pass

    return Handler

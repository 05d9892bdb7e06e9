"""A stand-in for the model's API: plays a script of tool calls to an AI client, in the API that the client speaks.

Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini, each as a stream or as one body. The model's turn
follows from the number of tool results in the request, so that a request that a client repeats gets the same answer.
"""

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Step:
    """One turn of the model: a call of the tool whose name ends with `tool`, with `arguments`, which may be a function of the
    results so far; or, without a tool, a text."""

    tool: str | None = None
    arguments: dict | object = field(default_factory=dict)
    text: str = "done"


@dataclass
class Seen:
    """What one request of the client contained: the names of its tools, the results of earlier calls, and its size."""

    tools: dict[str, dict]
    results: list[str]
    size: int
    body: dict


class ModelApi:
    """The server. `steps` is the script; `seen` has the requests that offered tools, in their order."""

    def __init__(self):
        self.steps: list[Step] = []
        self.seen: list[Seen] = []
        self.missing: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def play(self, steps):
        self.steps, self.seen, self.missing = steps, [], []

    def turn(self, dialect, body):
        """Returns the model's turn as a call (name, arguments, entry of the tool) or a text."""
        seen = dialect.read(body)
        if not seen.tools:
            # A request for a title or a summary, without the tools of the conversation.
            return "a title"
        self.seen.append(seen)
        step = self.steps[min(len(seen.results), len(self.steps) - 1)]
        if step.tool is None:
            return step.text
        arguments = step.arguments(seen.results) if callable(step.arguments) else step.arguments
        name = next((name for name in seen.tools if name.endswith(step.tool)), None)
        if name is None:
            self.missing.append(f"{step.tool} is not among {sorted(seen.tools)}")
            return f"there is no tool {step.tool}"
        return name, arguments, seen.tools[name]

    def results(self):
        """The results of all calls, as the last request of the conversation carries them."""
        return max((seen.results for seen in self.seen), key=len, default=[])


def text_of(content):
    """The text of a message's content: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part.get("text", part.get("output", ""))) if isinstance(part, dict) else str(part) for part in content)
    return json.dumps(content)


class Messages:
    """Anthropic Messages."""

    path = "/v1/messages"

    def read(body):
        results = []
        for message in body.get("messages", []):
            for part in message["content"] if isinstance(message["content"], list) else []:
                if part.get("type") == "tool_result":
                    results.append(text_of(part.get("content", "")))
        tools = {tool["name"]: tool for tool in body.get("tools", [])}
        return Seen(tools, results, len(json.dumps(body)), body)

    def write(turn, body):
        if isinstance(turn, str):
            block = {"type": "text", "text": turn}
        else:
            block = {"type": "tool_use", "id": f"toolu_{len(json.dumps(body))}", "name": turn[0], "input": turn[1]}
        stop = "end_turn" if isinstance(turn, str) else "tool_use"
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "m"), "content": [block],
                   "stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 10}}
        if not body.get("stream"):
            return None, message
        empty = dict(block, text="") if isinstance(turn, str) else dict(block, input={})
        delta = {"type": "text_delta", "text": turn} if isinstance(turn, str) else {"type": "input_json_delta", "partial_json": json.dumps(turn[1])}
        events = [
            {"type": "message_start", "message": dict(message, content=[], stop_reason=None)},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 10}},
            {"type": "message_stop"},
        ]
        return [(event["type"], event) for event in events], None


class Chat:
    """OpenAI Chat Completions."""

    path = "/chat/completions"

    def read(body):
        results = [text_of(m.get("content", "")) for m in body.get("messages", []) if m.get("role") == "tool"]
        tools = {tool["function"]["name"]: tool["function"] for tool in body.get("tools") or []}
        return Seen(tools, results, len(json.dumps(body)), body)

    def write(turn, body):
        if isinstance(turn, str):
            message, finish = {"role": "assistant", "content": turn}, "stop"
        else:
            call = {"id": f"call_{len(json.dumps(body))}", "type": "function", "function": {"name": turn[0], "arguments": json.dumps(turn[1])}}
            message, finish = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        head = {"id": "chatcmpl-1", "created": 1, "model": body.get("model", "m")}
        if not body.get("stream"):
            return None, dict(head, object="chat.completion", usage=usage, choices=[{"index": 0, "message": message, "finish_reason": finish}])
        delta = dict(message)
        if "tool_calls" in delta:
            delta["tool_calls"] = [dict(delta["tool_calls"][0], index=0)]
        head["object"] = "chat.completion.chunk"
        events = [dict(head, choices=[{"index": 0, "delta": delta, "finish_reason": None}]),
                  dict(head, choices=[{"index": 0, "delta": {}, "finish_reason": finish}], usage=usage)]
        return [(None, event) for event in events] + [(None, "[DONE]")], None


class Responses:
    """OpenAI Responses. A tool may be in a namespace; Codex's code mode takes its program as plain text (a custom tool)."""

    path = "/responses"

    def read(body):
        kinds = ("function_call_output", "custom_tool_call_output", "mcp_call_output")
        results = [text_of(item.get("output", "")) for item in body.get("input", []) if isinstance(item, dict) and item.get("type") in kinds]
        tools = {}
        for tool in body.get("tools") or []:
            if tool.get("type") == "namespace":
                for inner in tool.get("tools", []):
                    tools[tool["name"] + inner["name"]] = dict(inner, namespace=tool["name"])
            elif "name" in tool:
                tools[tool["name"]] = tool
        return Seen(tools, results, len(json.dumps(body)), body)

    def write(turn, body):
        ident = f"call_{len(json.dumps(body))}"
        if isinstance(turn, str):
            item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": turn, "annotations": []}]}
        elif turn[2].get("type") == "custom":
            item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": ident, "name": turn[2]["name"], "input": turn[1]["code"], "status": "completed"}
        else:
            item = {"type": "function_call", "id": "fc_1", "call_id": ident, "name": turn[2]["name"], "arguments": json.dumps(turn[1]), "status": "completed"}
            if "namespace" in turn[2]:
                item["namespace"] = turn[2]["namespace"]
        usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": body.get("model", "m"),
                    "output": [item], "usage": usage, "parallel_tool_calls": True, "tools": []}
        if not body.get("stream"):
            return None, response
        events = [
            {"type": "response.created", "response": dict(response, status="in_progress", output=[], usage=None)},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        return [(event["type"], dict(event, sequence_number=number)) for number, event in enumerate(events)], None


class Gemini:
    """Gemini's generateContent and streamGenerateContent."""

    path = "enerateContent"

    def read(body):
        results = []
        for content in body.get("contents", []):
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    results.append(json.dumps(part["functionResponse"].get("response"), ensure_ascii=False))
        tools = {f["name"]: f for tool in body.get("tools") or [] for f in tool.get("functionDeclarations", [])}
        return Seen(tools, results, len(json.dumps(body)), body)

    def write(turn, body):
        part = {"text": turn} if isinstance(turn, str) else {"functionCall": {"name": turn[0], "args": turn[1]}}
        answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                  "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}, "modelVersion": "m"}
        return [(None, answer)], answer


DIALECTS = [Messages, Responses, Chat, Gemini]


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

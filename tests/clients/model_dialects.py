"""The APIs in which AI clients speak to their model: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini.

Each reads a request, and writes the model's turn as a stream of events or as one body.
"""

import base64
import json
from dataclasses import dataclass

# Stands between the parts of a result.
PART = "\x1e"
# The first part of a result that the client marks as an error beside its text.
ERROR = "[error]"


@dataclass
class Seen:
    """What one request of the client contained: its tools, and the results of earlier calls. A result is all that the client
    put between a call and the model's next turn: each text is a part, and so is each file, as its type and size."""

    tools: dict[str, dict]
    results: list[str]
    size: int
    body: dict


@dataclass
class Call:
    """One call of a turn: the tool's name, its entry in the request, the arguments, and an id."""

    name: str
    entry: dict
    arguments: dict
    ident: str


class Results:
    """Collects the results of a conversation, item by item."""

    def __init__(self):
        self.found, self.is_open = [], False

    def begin(self, parts):
        self.found.append(parts)
        self.is_open = True

    def add(self, parts):
        """Adds what follows the results of a turn, such as the files that they name."""
        if self.is_open:
            self.found[-1].extend(parts)

    def end(self):
        self.is_open = False

    def texts(self):
        return [PART.join(parts) for parts in self.found]


def parts_of(content):
    """The parts of a message's content: a string, or a list."""
    if isinstance(content, list):
        return [part if isinstance(part, str) else part_of(part) for part in content]
    return [] if content is None else [content if isinstance(content, str) else json.dumps(content)]


def part_of(part):
    if isinstance(part.get("text"), str):
        return part["text"]
    source = part.get("source") or part.get("inlineData") or {}
    url = part.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    if isinstance(url, str) and url.startswith("data:"):
        kind, data = url.removeprefix("data:").split(";base64,")
    else:
        kind, data = source.get("media_type") or source.get("mimeType"), source.get("data")
    return f"<{kind}, {len(base64.b64decode(data))} bytes>" if data else json.dumps(part)


class Messages:
    """Anthropic Messages."""

    path = "/v1/messages"

    def read(body):
        results = Results()
        for message in body.get("messages", []):
            if message["role"] == "assistant":
                results.end()
                continue
            for part in message["content"] if isinstance(message["content"], list) else [{"text": message["content"]}]:
                if part.get("type") == "tool_result":
                    results.begin([ERROR] * bool(part.get("is_error")) + parts_of(part.get("content")))
                else:
                    results.add([part_of(part)])
        return Seen({tool["name"]: tool for tool in body.get("tools", [])}, results.texts(), len(json.dumps(body)), body)

    def write(turn, body):
        is_text = isinstance(turn, str)
        if is_text:
            blocks = [{"type": "text", "text": turn}]
        else:
            blocks = [{"type": "tool_use", "id": f"toolu_{call.ident}", "name": call.name, "input": call.arguments} for call in turn]
        stop = "end_turn" if is_text else "tool_use"
        # The client joins messages that have the same id.
        message = {"id": f"msg_{len(json.dumps(body))}", "type": "message", "role": "assistant", "model": body.get("model", "m"), "content": blocks,
                   "stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 10}}
        if not body.get("stream"):
            return None, message
        events = [{"type": "message_start", "message": dict(message, content=[], stop_reason=None)}]
        for index, block in enumerate(blocks):
            empty = dict(block, text="") if is_text else dict(block, input={})
            delta = {"type": "text_delta", "text": turn} if is_text else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [{"type": "content_block_start", "index": index, "content_block": empty},
                       {"type": "content_block_delta", "index": index, "delta": delta},
                       {"type": "content_block_stop", "index": index}]
        events += [{"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 10}},
                   {"type": "message_stop"}]
        return [(event["type"], event) for event in events], None


class Chat:
    """OpenAI Chat Completions."""

    path = "/chat/completions"

    def read(body):
        results = Results()
        for message in body.get("messages", []):
            if message.get("role") == "assistant":
                results.end()
            elif message.get("role") == "tool":
                results.begin(parts_of(message.get("content")))
            else:
                results.add(parts_of(message.get("content")))
        return Seen({tool["function"]["name"]: tool["function"] for tool in body.get("tools") or []}, results.texts(), len(json.dumps(body)), body)

    def write(turn, body):
        if isinstance(turn, str):
            message, finish = {"role": "assistant", "content": turn}, "stop"
        else:
            calls = [{"id": f"call_{call.ident}", "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}} for call in turn]
            message, finish = {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        head = {"id": "chatcmpl-1", "created": 1, "model": body.get("model", "m")}
        if not body.get("stream"):
            return None, dict(head, object="chat.completion", usage=usage, choices=[{"index": 0, "message": message, "finish_reason": finish}])
        delta = dict(message)
        if "tool_calls" in delta:
            delta["tool_calls"] = [dict(call, index=index) for index, call in enumerate(delta["tool_calls"])]
        head["object"] = "chat.completion.chunk"
        events = [dict(head, choices=[{"index": 0, "delta": delta, "finish_reason": None}]),
                  dict(head, choices=[{"index": 0, "delta": {}, "finish_reason": finish}], usage=usage)]
        return [(None, event) for event in events] + [(None, "[DONE]")], None


class Responses:
    """OpenAI Responses. A tool may be in a namespace; Codex's code mode takes its program as plain text (a custom tool)."""

    path = "/responses"

    def read(body):
        results = Results()
        for item in body.get("input", []) if isinstance(body.get("input"), list) else []:
            if item.get("type") in ("function_call_output", "custom_tool_call_output", "mcp_call_output"):
                results.begin(parts_of(item.get("output")))
            elif item.get("type") == "message" and item.get("role") != "assistant":
                results.add(parts_of(item.get("content")))
            else:
                results.end()
        tools = {}
        for tool in body.get("tools") or []:
            if tool.get("type") == "namespace":
                for inner in tool.get("tools", []):
                    tools[tool["name"] + inner["name"]] = dict(inner, namespace=tool["name"])
            elif "name" in tool:
                tools[tool["name"]] = tool
        return Seen(tools, results.texts(), len(json.dumps(body)), body)

    def write(turn, body):
        if isinstance(turn, str):
            items = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": turn, "annotations": []}]}]
        else:
            items = [Responses.item(call) for call in turn]
        usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": body.get("model", "m"),
                    "output": items, "usage": usage, "parallel_tool_calls": True, "tools": []}
        if not body.get("stream"):
            return None, response
        events = [{"type": "response.created", "response": dict(response, status="in_progress", output=[], usage=None)}]
        for index, item in enumerate(items):
            events += [{"type": "response.output_item.added", "output_index": index, "item": item},
                       {"type": "response.output_item.done", "output_index": index, "item": item}]
        events.append({"type": "response.completed", "response": response})
        return [(event["type"], dict(event, sequence_number=number)) for number, event in enumerate(events)], None

    def item(call):
        common = {"call_id": f"call_{call.ident}", "name": call.entry["name"], "status": "completed"}
        if call.entry.get("type") == "custom":
            return {"type": "custom_tool_call", "id": f"ctc_{call.ident}", "input": call.arguments["code"], **common}
        item = {"type": "function_call", "id": f"fc_{call.ident}", "arguments": json.dumps(call.arguments), **common}
        return item | ({"namespace": call.entry["namespace"]} if "namespace" in call.entry else {})


class Gemini:
    """Gemini's generateContent and streamGenerateContent."""

    path = "enerateContent"

    def read(body):
        results = Results()
        for content in body.get("contents", []):
            if content.get("role") == "model":
                results.end()
                continue
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    results.begin(Gemini.response(part["functionResponse"]))
                else:
                    results.add([part_of(part)])
        tools = {f["name"]: f for tool in body.get("tools") or [] for f in tool.get("functionDeclarations", [])}
        return Seen(tools, results.texts(), len(json.dumps(body)), body)

    def response(response):
        members = response.get("response") or {}
        files = parts_of(response.get("parts"))
        if list(members) == ["output"]:
            return parts_of(members["output"]) + files
        if list(members) == ["error"]:
            return [ERROR, *parts_of(members["error"]), *files]
        return [json.dumps(members, ensure_ascii=False), *files]

    def write(turn, body):
        parts = [{"text": turn}] if isinstance(turn, str) else [{"functionCall": {"name": call.name, "args": call.arguments}} for call in turn]
        answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
                  "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}, "modelVersion": "m"}
        return [(None, answer)], answer


DIALECTS = [Messages, Responses, Chat, Gemini]

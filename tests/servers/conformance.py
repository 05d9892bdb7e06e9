"""An upstream server with the tools, resources and prompts that the official conformance suite requires of a server.

It supports all protocol eras over stdio, and answers each request in a thread. `--legacy` disables the newest era,
`--modern` the older ones.
"""

import hashlib
import json
import sys
import threading
import time

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
INFO = {"name": "conformance-fixture", "version": "1.0.0"}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}

lock = threading.Lock()
waiting = {}
listeners = {}
followed = set()
added = {"tools": 0, "prompts": 0}
ids = iter(range(1, 1 << 62))


class Fault(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


def send(message):
    line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
    with lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def notify(method, params=None):
    send({"method": method, "params": params or {}})


def ask(method, params):
    """Sends a request to the client, which only the older eras permit, and returns the response."""
    number = f"ask-{next(ids)}"
    answered = waiting[number] = {"event": threading.Event()}
    send({"id": number, "method": method, "params": params})
    answered["event"].wait(60)
    if "result" not in answered:
        raise Fault(-32603, f"the client gives no answer to {method}")
    return answered["result"]


def text(words):
    return {"type": "text", "text": words}


def image():
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def form(message, properties, required=None):
    schema = {"type": "object", "properties": properties, "required": required or list(properties)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(words, tokens=100):
    messages = [{"role": "user", "content": text(words)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", {"name": {"type": "string"}})
CONFIRM = form("Please confirm", {"ok": {"type": "boolean"}})


def required(requests, state=None):
    result = {"resultType": "input_required", "inputRequests": requests}
    return result if state is None else result | {"requestState": state}


def sign_state(state):
    return f"{state}.{hashlib.sha256(f'not a secret: {state}'.encode()).hexdigest()[:16]}"


def verify_state(state):
    inner = (state or "").rsplit(".", 1)[0]
    if state != sign_state(inner):
        raise Fault(-32602, "requestState is not what it was")
    return inner


def responses(params):
    given = params.get("inputResponses") or {}
    return {key: value for key, value in given.items() if isinstance(value, dict)}


def capabilities(params):
    return params.get("_meta", {}).get(META + "clientCapabilities", {})


def ask_once(params, request, complete):
    """Asks the user or the model one question, in the way of the client's protocol era."""
    if MODERN == version(params):
        answer = responses(params).get("answer")
        if answer is None:
            return required({"answer": request})
    else:
        answer = ask(request["method"], request["params"])
    return {"content": [text(complete(answer))]}


def version(params):
    return params.get("_meta", {}).get(META + "protocolVersion", LEGACY)


def describe_elicitation(answer):
    return f"action={answer.get('action')}, content={json.dumps(answer.get('content', {}))}"


def logging_tool(params):
    if MODERN != version(params):
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            notify("notifications/message", {"level": "info", "logger": "fixture", "data": words})
            time.sleep(0.05)
    return {"content": [text("Tool with logging executed")]}


def progress_tool(params):
    token = params.get("_meta", {}).get("progressToken")
    for progress in (0, 50, 100):
        if token is not None:
            notify("notifications/progress", {"progressToken": token, "progress": progress, "total": 100})
        time.sleep(0.05)
    return {"content": [text("done")]}


def sampling_tool(params):
    prompt = params.get("arguments", {}).get("prompt", "")
    return ask_once(params, sampling(prompt), lambda answer: f"LLM response: {answer['content']['text']}")


def elicitation(params):
    words = {"type": "string", "description": "User's response"}
    email = {"type": "string", "description": "User's email address"}
    request = form(params.get("arguments", {}).get("message", "?"), {"username": words, "email": email})
    return ask_once(params, request, lambda answer: f"User response: {describe_elicitation(answer)}")


def defaults(params):
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    request = form("Please review", properties, ["name"])
    return ask_once(params, request, lambda answer: f"Elicitation completed: {describe_elicitation(answer)}")


def enums(params):
    def titled(names):
        return [{"const": f"value{number}", "title": name} for number, name in enumerate(names, 1)]

    properties = {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"])},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {
            "type": "array",
            "items": {"anyOf": titled(["First Choice", "Second Choice", "Third Choice"])},
        },
    }
    request = form("Please choose", properties, [])
    return ask_once(params, request, lambda answer: f"Elicitation completed: {describe_elicitation(answer)}")


def input_elicitation(params):
    answer = responses(params).get("user_name", {})
    if answer.get("action") != "accept" or "name" not in answer.get("content", {}):
        return required({"user_name": NAME})
    return {"content": [text(f"Hello, {answer['content']['name']}!")]}


def input_sampling(params):
    answer = responses(params).get("capital_question")
    if answer is None:
        return required({"capital_question": sampling("What is the capital of France?")})
    return {"content": [text(answer["content"]["text"])]}


def input_roots(params):
    answer = responses(params).get("client_roots")
    if answer is None:
        return required({"client_roots": ROOTS})
    return {"content": [text(", ".join(root["uri"] for root in answer["roots"]))]}


def input_state(params):
    if "requestState" not in params:
        return required({"confirm": CONFIRM}, sign_state("waiting"))
    verify_state(params["requestState"])
    return {"content": [text("state-ok")]}


def input_multiple(params):
    wanted = {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
    if not set(wanted) <= set(responses(params)):
        return required(wanted, sign_state("several"))
    verify_state(params.get("requestState"))
    return {"content": [text("all there")]}


def input_rounds(params):
    if "requestState" not in params:
        return required({"step1": form("Step 1: What is your name?", {"name": {"type": "string"}})}, sign_state("1"))
    if verify_state(params["requestState"]) == "1":
        color = form("Step 2: What is your favorite color?", {"color": {"type": "string"}})
        return required({"step2": color}, sign_state("2"))
    return {"content": [text("both steps are done")]}


def input_capabilities(params):
    can = capabilities(params)
    wanted = {"greeting": sampling("Generate a greeting", 50)} if "sampling" in can else {}
    if "elicitation" in can:
        wanted["user_name"] = NAME
    if not wanted or responses(params):
        return {"content": [text("done")]}
    return required(wanted)


def missing_capability(params):
    if "sampling" not in capabilities(params):
        data = {"requiredCapabilities": {"sampling": {}}}
        raise Fault(-32021, "sampling is needed, and the client does not declare it", data)
    return {"content": [text("done")]}


def trigger(kind):
    def change(_params):
        added[kind] += 1
        notify_list_changed(kind)
        return {"content": [text(f"{kind} have changed")]}

    return change


def notify_list_changed(kind):
    for number, filtered in list(listeners.items()):
        if filtered.get(f"{kind}ListChanged"):
            notify(f"notifications/{kind}/list_changed", {"_meta": {META + "subscriptionId": number}})
    if not listeners:
        notify(f"notifications/{kind}/list_changed")


def failing(_params):
    return {"content": [text("This tool intentionally returns an error for testing")], "isError": True}


def strange(_params):
    """Returns content of unknown types."""
    return {
        "content": [
            {"type": "hologram", "voxels": [1.0, 2e3], "_meta": {"a": None}},
            {"type": "text", "text": "é\u2028x", "fontSize": 12, "annotations": {"new": [True, None]}},
        ],
        "structuredContent": None,
        "_meta": {"example.com/x": {"y": [1, 2.50]}},
        "future": {"deeply": {"nested": 12345678901234567890}},
    }


def update_resource(params):
    uri = params.get("arguments", {}).get("uri", "test://watched-resource")
    for number, filtered in list(listeners.items()):
        if uri in filtered.get("resourceSubscriptions", []):
            notify("notifications/resources/updated", {"uri": uri, "_meta": {META + "subscriptionId": number}})
    if uri in followed:
        notify("notifications/resources/updated", {"uri": uri})
    return {"content": [text(f"{uri} has changed")]}


def mixed(_params):
    resource = {
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": '{"test":"data","value":123}',
    }
    return {"content": [text("Multiple content types test:"), image(), {"type": "resource", "resource": resource}]}


EMBEDDED = {
    "uri": "test://embedded-resource",
    "mimeType": "text/plain",
    "text": "This is an embedded resource content.",
}
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def fixed(*content):
    return lambda _params: {"content": list(content)}


def words(name):
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


TOOLS = {
    "test_simple_text": (fixed(text("This is a simple text response for testing.")), None),
    "test_image_content": (fixed(image()), None),
    "test_audio_content": (fixed({"type": "audio", "data": WAV, "mimeType": "audio/wav"}), None),
    "test_embedded_resource": (fixed({"type": "resource", "resource": EMBEDDED}), None),
    "test_multiple_content_types": (mixed, None),
    "test_tool_with_logging": (logging_tool, None),
    "test_logging_tool": (logging_tool, None),
    "test_error_handling": (failing, None),
    "test_tool_with_progress": (progress_tool, None),
    "test_sampling": (sampling_tool, words("prompt")),
    "test_elicitation": (elicitation, words("message")),
    "test_elicitation_sep1034_defaults": (defaults, None),
    "test_elicitation_sep1330_enums": (enums, None),
    "test_streaming_elicitation": (input_elicitation, None),
    "test_missing_capability": (missing_capability, None),
    "test_trigger_tool_change": (trigger("tools"), None),
    "test_trigger_prompt_change": (trigger("prompts"), None),
    "test_input_required_result_elicitation": (input_elicitation, None),
    "test_input_required_result_sampling": (input_sampling, None),
    "test_input_required_result_list_roots": (input_roots, None),
    "test_input_required_result_request_state": (input_state, None),
    "test_input_required_result_multiple_inputs": (input_multiple, None),
    "test_input_required_result_multi_round": (input_rounds, None),
    "test_input_required_result_tampered_state": (input_state, None),
    "test_input_required_result_capabilities": (input_capabilities, None),
    "json_schema_2020_12_tool": (fixed(text("done")), SCHEMA_2020),
    "strange_result": (strange, None),
    "update_resource": (update_resource, {"type": "object", "properties": {"uri": {"type": "string"}}}),
}


def tools():
    def definition(name, schema):
        schema = schema or {"type": "object", "properties": {}}
        description = f"{name.replace('_', ' ')}, for tests"
        definition = {"name": name, "description": description, "inputSchema": schema}
        if name == "strange_result":
            definition |= {"futureField": {"a": [1.0, None]}, "_meta": {"example.com/x": 1}, "title": "Strange"}
        return definition

    listed = [definition(name, schema) for name, (_, schema) in TOOLS.items()]
    return listed + [definition(f"added_{number}", None) for number in range(added["tools"])]


RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "watched"},
    "test://strange": {"mimeType": "text/plain", "text": "x", "future": [1.0], "_meta": {"example.com/x": None}},
}


def resources():
    def resource(uri, content):
        name = uri.removeprefix("test://")
        return {"uri": uri, "name": name, "description": f"The resource {name}", "mimeType": content["mimeType"]}

    return [resource(uri, content) for uri, content in RESOURCES.items()]


def read(params):
    uri = params["uri"]
    if uri in RESOURCES:
        return {"contents": [{"uri": uri, **RESOURCES[uri]}]}
    if uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.removeprefix("test://template/").removesuffix("/data")
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}]}
    code = -32602 if MODERN == version(params) else -32002
    raise Fault(code, "Resource not found", {"uri": uri})


PROMPTS = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


def prompts():
    def prompt(name, arguments):
        listed = [{"name": one, "description": f"The argument {one}", "required": True} for one in arguments]
        return {"name": name, "description": f"{name.replace('_', ' ')}, for tests", "arguments": listed}

    listed = [prompt(name, arguments) for name, arguments in PROMPTS.items()]
    return listed + [prompt(f"added_{number}", []) for number in range(added["prompts"])]


def get_prompt(params):
    def user(content):
        return {"role": "user", "content": content}

    name, given = params["name"], params.get("arguments", {})
    if name == "test_simple_prompt":
        return {"messages": [user(text("This is a simple prompt for testing."))], "future": [None, 1.0]}
    if name == "test_prompt_with_arguments":
        message = f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
        return {"messages": [user(text(message))]}
    if name == "test_prompt_with_embedded_resource":
        uri = given.get("resourceUri")
        resource = {"uri": uri, "mimeType": "text/plain", "text": "Embedded resource content for testing."}
        embedded = user({"type": "resource", "resource": resource})
        return {"messages": [embedded, user(text("Please process the embedded resource above."))]}
    if name == "test_prompt_with_image":
        return {"messages": [user(image()), user(text("Please analyze the image above."))]}
    if name == "test_input_required_result_prompt":
        answer = responses(params).get("user_context")
        if answer is None:
            context = form("What context should the prompt use?", {"context": {"type": "string"}})
            return required({"user_context": context})
        return {"messages": [user(text(f"Context: {answer.get('content', {}).get('context')}"))]}
    raise Fault(-32602, f"Unknown prompt: {name}")


def call_tool(params):
    name = params["name"]
    if name in TOOLS:
        return TOOLS[name][0](params)
    if name.startswith("added_"):
        return {"content": [text(name)]}
    raise Fault(-32602, f"Unknown tool: {name}")


def follow(params):
    followed.add(params["uri"])
    return {}


def unfollow(params):
    followed.discard(params["uri"])
    return {}


def complete_argument(params):
    start = params["argument"]["value"]
    values = [value for value in ("paris", "park", "party") if value.startswith(start)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


METHODS = {
    "tools/list": lambda _params: {"tools": tools()},
    "tools/call": call_tool,
    "resources/list": lambda _params: {"resources": resources()},
    "resources/templates/list": lambda _params: {
        "resourceTemplates": [
            {
                "uriTemplate": "test://template/{id}/data",
                "name": "template",
                "description": "A resource for each number",
                "mimeType": "application/json",
            }
        ]
    },
    "resources/read": read,
    "resources/subscribe": follow,
    "resources/unsubscribe": unfollow,
    "prompts/list": lambda _params: {"prompts": prompts()},
    "prompts/get": get_prompt,
    "completion/complete": complete_argument,
    "ping": lambda _params: {},
}
CACHEABLE = {"tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list"}


def result(method, params, number):
    is_modern = MODERN == version(params)
    if method == "initialize" and "--modern" not in sys.argv:
        asked_for = params.get("protocolVersion", LEGACY)
        known = asked_for if asked_for < MODERN else LEGACY
        return {"protocolVersion": known, "capabilities": CAPABILITIES, "serverInfo": INFO}
    if method == "server/discover" and "--legacy" not in sys.argv:
        return {
            "resultType": "complete",
            "supportedVersions": [MODERN, LEGACY],
            "capabilities": CAPABILITIES,
            "serverInfo": INFO,
            "ttlMs": 0,
            "cacheScope": "public",
        }
    if method == "subscriptions/listen" and is_modern:
        listeners[number] = params.get("notifications", {})
        meta = {META + "subscriptionId": number}
        notify("notifications/subscriptions/acknowledged", {"_meta": meta, "notifications": listeners[number]})
        return None
    if method not in METHODS:
        raise Fault(-32601, f"Method not found: {method}")
    made = METHODS[method](params)
    if is_modern and "resultType" not in made:
        made = {"resultType": "complete", **made}
        if method in CACHEABLE:
            made |= {"ttlMs": 0, "cacheScope": "public"}
    return made


def answer(message):
    number = message["id"]
    try:
        made = result(message["method"], message.get("params") or {}, number)
        if made is not None:
            send({"id": number, "result": made})
    except Fault as fault:
        send({"id": number, "error": fault.error})
    except Exception as error:  # noqa: BLE001
        send({"id": number, "error": {"code": -32603, "message": repr(error)}})


for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        answered = waiting.pop(message.get("id"), None)
        if answered is not None:
            answered |= {key: message[key] for key in ("result",) if key in message}
            answered["event"].set()
    elif "id" in message:
        threading.Thread(target=answer, args=(message,), daemon=True).start()
    elif message["method"] == "notifications/cancelled":
        listeners.pop(message.get("params", {}).get("requestId"), None)

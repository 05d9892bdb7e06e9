"""How each AI client shows an answer to its model, as data: templates in which words in capitals stand for parts of the answer.

TEXT and JSON are a text block, as it is and as JSON; NAME, TYPE, SIZE and DATA belong to a file; BLOCKS are all blocks, joined, and
STRING the same as one JSON string; APART are files that the client puts elsewhere; CALL is the call as JSON, and TOOL its tool.
"""

import base64
import json
import re
from dataclasses import dataclass

from answers import File, normalise
from model_dialects import ERROR, PART


@dataclass(frozen=True)
class Shape:
    """How a client shows one kind of answer. A file whose template is empty is not shown."""

    whole: str = "BLOCKS"
    join: str = PART
    text: str = "TEXT"
    image: str = ""
    link: str = ""
    apart: str = ""
    trims: bool = False

    def show(self, blocks, call):
        shown = [self.block(block) for block in blocks]
        joined = self.join.join(block for block in shown if block)
        joined = joined.strip() if self.trims else joined
        apart = "".join(filled(self.apart, block) for block in blocks if isinstance(block, File) and block.is_image)
        words = {"BLOCKS": joined, "STRING": compact(joined), "APART": apart, "CALL": compact(call), "TOOL": call["name"]}
        return replaced(self.whole, words)

    def block(self, block):
        if isinstance(block, File):
            return filled(self.image if block.is_image else self.link, block)
        return replaced(self.text, {"TEXT": block, "JSON": compact(block)})


@dataclass(frozen=True)
class Wrapping:
    """How a client shows answers and errors, and what else it adds or replaces: patterns, each with what takes its place."""

    success: Shape
    error: Shape
    own: tuple[tuple[str, str], ...] = ()

    def show(self, answer, form, tool="run_code", arguments=None, transport="stdio"):
        """All that the model reads of an answer to a call."""
        shape = self.error if answer.is_error else self.success
        return self.without_own(shape.show(answer.blocks(form, transport), {"name": tool, "args": arguments}))

    def read(self, result):
        """What a model read, without the client's own additions and with names for what varies."""
        return normalise(self.without_own(result))

    def without_own(self, text):
        for pattern, instead in self.own:
            text = re.sub(pattern, instead, text, flags=re.DOTALL)
        return text


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def replaced(template, words):
    return re.sub("|".join(words), lambda found: words[found.group()], template)


def filled(template, file):
    words = {"NAME": file.name, "TYPE": file.mime_type, "SIZE": str(len(file.data)), "DATA": base64.b64encode(file.data).decode()}
    return replaced(template, words)


IMAGE = "<TYPE, SIZE bytes>"
URI = "lockhouse://result/HANDLE"
# What an error may bring into the context beside its text.
META = '"_meta":{"lockhouse/run":{"execution":"ID"}}'
JSON_BLOCKS = {
    "join": ",",
    "text": '{"type":"text","text":JSON}',
    "image": '{"type":"image","data":"DATA","mimeType":"TYPE"}',
    "link": f'{{"type":"resource_link","uri":"{URI}","name":"NAME","mimeType":"TYPE","size":SIZE}}',
}
GOOGLE_IMAGE = "[Tool 'run_code' provided the following image data with mime-type: TYPE]"
GOOGLE_ERROR = "MCP tool 'TOOL' reported tool error for function call: CALL with response: "


def google_error(before, response):
    whole = before + GOOGLE_ERROR + '[{"functionResponse":{"name":"TOOL","response":' + response + "}}]"
    return Shape(whole, **JSON_BLOCKS)


def same(shape, **more):
    return Wrapping(shape, shape, **more)


CODEX = Shape(f"Wall time: N seconds\nOutput:{PART}BLOCKS", image=IMAGE, link=JSON_BLOCKS["link"])
OPENCODE = Shape("BLOCKSAPART", join="\n\n", apart=f"{PART}Attached media from tool result:{PART}{IMAGE}")
QWEN_LINK = f"Resource Link: NAME at {URI}"
QWEN_ERROR = google_error("", f'{{"error":{{{META},"content":[BLOCKS],"isError":true}},"content":[BLOCKS]}}')

# With the client's own code mode off.
WRAPPINGS = {
    "claude-code": Wrapping(
        Shape("BLOCKS\n", image=f"{IMAGE}{PART}[Image: source: PATH]", link=f"[Resource link: NAME] {URI}"),
        Shape(f"{ERROR}{PART}BLOCKS\n", join="\n", trims=True),
        own=((rf"{PART}?\n?<system-reminder>.*?</system-reminder>\n?", ""), (r"(?<=\[Image: source: )/[^\]]*", "PATH")),
    ),
    "codex": same(CODEX),
    "opencode": same(OPENCODE),
    "qwen": Wrapping(
        Shape("BLOCKSAPART", join="\n", image=GOOGLE_IMAGE, link=QWEN_LINK, apart=f"{PART}(attached media from previous tool call){PART}{IMAGE}"),
        QWEN_ERROR,
    ),
    "gemini": Wrapping(
        Shape("BLOCKSAPART", join="\n", text="<untrusted_context>\nTEXT\n</untrusted_context>", image=GOOGLE_IMAGE, link=QWEN_LINK, apart=PART + IMAGE),
        google_error(ERROR + PART, f'{{{META},"content":[BLOCKS],"isError":true}}'),
    ),
    "copilot": Wrapping(Shape(join=""), Shape("MCP server 'lockhouse': BLOCKS", join="")),
    "cline": Wrapping(
        Shape('{"content":[BLOCKS],"isError":false}', **JSON_BLOCKS),
        Shape(f'{{"content":[BLOCKS],"isError":true,{META}}}', **JSON_BLOCKS),
        # Cline gives its model the metadata of every answer, and the last words of a server that ended.
        own=((r'(?<="isError":false),"_meta":\{.*\}(?=\}$)', ""), (r'(?<=signal=SIGKILL\)\. stderr: ).*(?="\}$)', "WORDS")),
    ),
    "continue": same(Shape("[BLOCKS]", **JSON_BLOCKS | {"link": f'{{"name":"NAME","uri":"{URI}","mimeType":"TYPE","type":"resource_link"}}'})),
}

# Over HTTP, the members of a result have another order, which Cline shows.
CLINE_HTTP = JSON_BLOCKS | {"link": f'{{"name":"NAME","uri":"{URI}","mimeType":"TYPE","size":SIZE,"type":"resource_link"}}'}
HTTP_WRAPPINGS = WRAPPINGS | {
    "cline": Wrapping(
        Shape('{"content":[BLOCKS],"isError":false}', **CLINE_HTTP),
        Shape(f'{{{META},"content":[BLOCKS],"isError":true}}', **CLINE_HTTP),
        own=((r'(?<=^\{)"_meta":\{.*\},(?="content":.*"isError":false\}$)', ""),),
    ),
}

# With it on: a program of the model calls a tool of Lockhouse, and returns the whole result as JSON.
CODEX_SCRIPT = f"Script completed\nWall time N seconds\nOutput:\n{PART}"
CODE_MODE_WRAPPINGS = {
    "codex": Wrapping(
        Shape(CODEX_SCRIPT + '{"content":[BLOCKS],"isError":false}', **JSON_BLOCKS),
        Shape(CODEX_SCRIPT + '{"content":[BLOCKS],"isError":true}', **JSON_BLOCKS),
    ),
    "opencode": Wrapping(
        Shape("STRINGAPART", join="\n", link=f"NAME: {URI}", apart=OPENCODE.apart),
        OPENCODE,
        own=((r"(?<=\()/\S+", "<redacted-path>"),),
    ),
    "qwen": Wrapping(
        Shape('{"callId":"call_N:code:1","name":"mcp__lockhouse__TOOL","status":"success","output":STRINGAPART}', join="\n", image=GOOGLE_IMAGE,
              link=QWEN_LINK, apart=',"content":[{"type":"image","mimeType":"TYPE","data":"DATA"}]'),
        Shape(f"Script error:\n{QWEN_ERROR.whole}\n    at <anonymous> (exec.js:4:84)\n", **JSON_BLOCKS),
    ),
}

# What the model reads of a call during which Lockhouse was killed, and of the next one: an error, the answer of a Lockhouse that the client
# has started again (ANSWER), or nothing, as the tools of Lockhouse are gone.
ANSWER = object()
CODEX_LOST = f"Wall time: N seconds\nOutput:{PART}tool call error: tool call failed for `lockhouse/run_code`\n\nCaused by:\n    Transport closed"
GOOGLE_LOST = ERROR + PART + GOOGLE_ERROR.replace("TOOL", "run_code") + '[{"functionResponse":{"name":"run_code","response":{"error":{"message":"WORDS","isError":true}}}}]'
LOST = {
    "claude-code": (f"{ERROR}{PART}Connection closed\n", ANSWER),
    "codex": (CODEX_LOST, CODEX_LOST),
    "opencode": ("MCP error -32000: Connection closed", None),
    "qwen": ("MCP tool execution may have completed before the connection failed. Automatic replay was skipped because the call could not be verified as safe to "
             "replay. Do not retry automatically; verify the outcome before trying again.", ANSWER),
    "gemini": (GOOGLE_LOST.replace("WORDS", "MCP error -32000: Connection closed"), GOOGLE_LOST.replace("WORDS", "Not connected")),
    "copilot": ("MCP server 'lockhouse': MCP request failed: MCP transport closed before the tool responded", "MCP server 'lockhouse': MCP request failed: Transport closed"),
    "cline": ('{"error":"MCP process exited for \\"lockhouse\\" (code=null, signal=SIGKILL). stderr: WORDS"}', '{"error":"MCP server \\"lockhouse\\" is not connected."}'),
    "continue": ("Error executing tool run_code: MCP error -32000: Connection closed", "Error executing tool run_code: Not connected"),
}

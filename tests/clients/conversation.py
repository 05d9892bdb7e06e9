"""The calls of a conversation, each with the whole answer that the model must read."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass

from answers import Answer, File

ROWS = 6000
SUM = 27_004_500.0
PYTHON = "from mcp_tools.shop import rows, wait, fail, buy\n"
DOT = File("dot.png", "image/png", base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="))
TABLE = File("table.csv", "text/csv", b"a,b\n1,2\n")
TEXT = File("r.txt", "text/plain", b"hello")
ONLY_OUTPUT = "No value, only printed output."
UNCLEAR = "1 call was already made whose server does not declare whether it changes anything"
# A client that can ask its user declines by itself without one. Another client cannot be asked.
DECLINED = {
    True: "the question about shop.buy was declined at once",
    False: "a person must approve shop.buy, and there is nobody to ask: a person can run `lockhouse approvals` in a terminal and have this run again, or move it "
           "to `allow` in the policy",
}


@dataclass(frozen=True)
class Case:
    """A call of one of Lockhouse's tools, and its whole answer. The arguments may be a function of the results so far."""

    name: str
    tool: str
    arguments: dict | Callable[[list[str]], dict]
    answer: Answer

    def arguments_after(self, results):
        return self.arguments(results) if callable(self.arguments) else self.arguments


def code(language, program, **more):
    return {"language": language, "code": program, **more}


def python(name, program, answer, **more):
    return Case(name, "run_code", code("python", program, **more), answer)


def typescript(name, program, answer):
    return Case(name, "run_code", code("typescript", program), answer)


def handle_of(results):
    found = re.search(r"\b[0-9a-f]{32}\b", results[-1]) if results else None
    return found.group() if found else "none"


def blob(file):
    return f"from mcp_tools import Blob\nblob = Blob({file.data!r}, {file.mime_type!r}, name={file.name!r})\n"


def row(number):
    return f'{{"id":{number},"amount":{number * 1.5}}}'


def cut_rows(first, last, size, shown):
    """The answer to a value of too many rows, which has those up to `first` and from `last`."""
    left_out = f'"… {last - first - 1:,} more items, [{first}] to [{last - 2}] …"'
    items = [row(number) for number in range(1, first + 1)] + [left_out] + [row(number) for number in range(last, ROWS + 1)]
    access = 'get_result("HANDLE") reads it in parts, load_result("HANDLE") gives code all of it'
    return f"Value cut: {size:,} bytes, of which {shown:,} are shown; {access}.\n[{','.join(items)}]"


def failed(sentence, **more):
    return Answer(sentence=sentence, is_error=True, **more)


def output():
    return [
        python("output only", "print(6*7)", Answer(sentence=ONLY_OUTPUT, output="42\n")),
        python("output and value", "print(6*7)\n1+1", Answer("2", output="42\n")),
        typescript("output and value, TypeScript", "console.log(6*7);\n[1, 2, 3].map(n => n * 2)", Answer("[2,4,6]", output="42\n")),
        python("standard error", "import sys\nprint('careful', file=sys.stderr)\n'a word'", Answer('"a word"', output="stderr:\ncareful\n")),
        python("null", "from mcp_tools.shop import note\nnote()", Answer("null")),
        typescript("null, TypeScript", "return await shop.note({})", Answer("null")),
    ]


def values():
    return [
        python("call", PYTHON + "rows(count=3)[2]", Answer(row(3))),
        typescript("parallel calls", "(await Promise.all([1, 2, 3].map(n => shop.rows({count: n})))).length", Answer("3")),
        python("sum over 6,000 rows", PYTHON + f"sum(r['amount'] for r in rows(count={ROWS}))", Answer(str(SUM))),
    ]


def errors(client, policy):
    refund = "from mcp_tools.shop import refund\n"
    slow = ("TimeoutError: the code did not end within 1 s (line 2)\n    while True: pass\n"
            "hint: timeout_s may be up to 300; or ask tools for less, run calls in parallel, or split the work over several runs")
    return [
        python("error", "1/0", failed("ZeroDivisionError: division by zero (line 1)\n    1/0")),
        python("output and error", "print('before')\n1/0", failed("ZeroDivisionError: division by zero (line 2)\n    1/0", output="before\n")),
        python("output before a timeout", "print('before')\nwhile True: pass", failed(slow, output="before\n"), timeout_s=1),
        python("error after a write", refund + "refund(item='tea')\n1/0", failed(
            'ZeroDivisionError: division by zero (line 3)\n    1/0\nhint: results so far: "shop.refund": object {item, done}\n'
            f"changed: {UNCLEAR}: shop.refund (line 2); do not repeat it blindly")),
        python("tool error", PYTHON + "fail()", failed(
            'ToolError(tool_failed): "the shop is closed" (line 2)\n    fail()\n'
            f"changed: {UNCLEAR}: shop.fail (line 2, outcome tool_failed); do not repeat it blindly")),
        python("denied", "from mcp_tools import call_tool\ncall_tool('shop', 'close', {})", failed(
            f"ToolError(denied): the policy does not allow shop/close: it is not in the allow list of [servers.shop] ({policy}:3); "
            "to allow it, a user must add \"close\" to this list (line 2)\n    call_tool('shop', 'close', {})")),
        python("approval, nobody asked", "from mcp_tools.shop import buy\nprint('asking')\nbuy(item='tea')", failed(
            f"ToolError(approval_declined): {DECLINED[client.elicits]} (line 3)\n    buy(item='tea')", output="asking\n")),
    ]


def writes():
    refund, done = "from mcp_tools.shop import refund\n", '{"item":"tea","done":"refund"}'
    return [
        python("a write, printed", refund + "print(refund(item='tea'))", Answer(
            sentence=ONLY_OUTPUT, output='{"item": "tea", "done": "refund"}\n', changed="shop.refund")),
        python("a write, returned", refund + "refund(item='tea')", Answer(done, changed="shop.refund")),
        python("a write, with output", refund + "print('begun')\nrefund(item='tea')", Answer(done, output="begun\n", changed="shop.refund")),
    ]


def files():
    return [
        python("returned image", blob(DOT) + "print('see')\n{'dot': blob}", Answer(f'{{"dot":{DOT.placeholder}}}', output="see\n", files=(DOT,))),
        python("returned file", blob(TABLE) + "blob", Answer(TABLE.placeholder, files=(TABLE,))),
        python("file below /out", "with open('/out/r.txt', 'w') as file:\n    file.write('hello')\nprint('saved')", Answer(
            sentence=ONLY_OUTPUT, output="saved\n", files=(TEXT,))),
    ]


def handles():
    still = 'Still running (N s, waiting for shop.wait). get_result("HANDLE") waits for the answer; do not run it again.'
    return [
        python("long run: handle, output so far", PYTHON + "print('begun')\nwait(seconds=9)\n'after the wait'", Answer(
            sentence=still, output="Output so far ends with:\nbegun\n")),
        Case("long run: answer", "get_result", lambda results: {"handle": handle_of(results)}, Answer('"after the wait"', output="begun\n", changed="shop.wait")),
    ]


def cut_values():
    """A value that is cut, and its last part."""
    last = f"Part of the value: items 5998 to 5999 of 6,000; this is the last part.\n[{row(5999)},{row(6000)}]"
    return [
        python("a cut value", PYTHON + f"rows(count={ROWS})", Answer(sentence=cut_rows(267, 5880, 166_156, 10_195))),
        Case("a part of a cut value", "get_result", lambda results: {"handle": handle_of(results), "offset": 5998}, Answer(sentence=last)),
    ]


def search():
    return [Case("search", "search_tools", {"query": "orders"}, Answer(sentence="shop.rows(count: int) -> unknown  # Lists orders."))]


def cases(client, policy):
    """The conversation with a client. `policy` is the path of the policy. The search is before the first call of the tool that it finds, whose results
    are not known then, and after the first call of its server, which is connected then."""
    return output() + search() + values() + errors(client, policy) + writes() + files() + handles() + cut_values()


def nested_cases(client, policy):
    """The conversation in a client's code mode, where programs may get longer values whole."""
    return output() + values() + errors(client, policy) + writes() + files() + handles()

"""The code modes of AI clients: the model writes JavaScript, which calls the tools of MCP servers.

Each call of the conversation is made by JavaScript that returns the whole result. Beside that, the same sum over 6,000 rows is computed
in three ways: by a program of `run_code`, by JavaScript that gets the rows from a program of `run_code`, and by JavaScript that calls the
tool of the upstream server directly.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from conversation import ROWS, SUM, code
from model_api import Step
from wrapping import CODEX_SCRIPT


@dataclass
class CodeMode:
    """How a client's code mode is switched on, the mode of `init` with which JavaScript can call `run_code`, the answer form of the entry and
    the one that such calls get, the tool that takes the JavaScript, and how JavaScript calls a tool, gets the text of the result `r`, and returns a value; then what the model reads of such a
    value, and of a sum over rows, which is right, or fails with an error."""

    switch_on: Callable
    nesting_mode: str
    entry_form: str
    form: str
    tool: str
    argument: str
    call: str
    direct_call: str
    text: str
    end: str
    shown: str
    rows_sum: str
    direct_sum: str

    def step(self, program):
        return Step(self.tool, {self.argument: program})

    def case_step(self, case):
        """A call of a case, whose JavaScript returns the whole result."""
        return Step(self.tool, lambda results: {self.argument: self.program(case.tool, case.arguments_after(results))})

    def program(self, tool, arguments):
        return f"const r = await {self.call.replace('TOOL', tool)}({json.dumps(arguments)}); {self.returned('JSON.stringify(r)')}"

    def returned(self, expression):
        return self.end.replace("VALUE", expression)

    def parsed(self, call, program):
        """Calls a tool, parses the text of its result, and returns what `program` makes of the value `v`."""
        return self.step(f"const r = await {call}; const v = JSON.parse({self.text}); {self.returned(program)}")

    def sums(self, exposure):
        """The sums of one exposure: name, step, and what the model must read."""
        if exposure == "direct":
            return [("sum over rows of the server's own tool", self.direct(), self.direct_sum)]
        return [("sum in run_code", self.nested_sum(), self.shown.replace("VALUE", str(round(SUM)))),
                ("sum over rows of run_code", self.nested_rows(), self.rows_sum)]

    def nested_sum(self):
        """Returns a sum that a program of `run_code` computed."""
        program = f"from mcp_tools.shop import rows\nsum(row['amount'] for row in rows(count={ROWS}))"
        return self.parsed(self.run_code(program), "String(v)")

    def nested_rows(self):
        """Sums the rows that a program of `run_code` returns."""
        return self.parsed(self.run_code(f"from mcp_tools.shop import rows\nrows(count={ROWS})"), SUMMED)

    def direct(self):
        """Sums the rows that the upstream server's own tool returns."""
        return self.parsed(f"{self.direct_call}({{count: {ROWS}}})", SUMMED)

    def run_code(self, program):
        return f"{self.call.replace('TOOL', 'run_code')}({json.dumps(code('python', program))})"


RIGHT = f"{ROWS} rows, sum {round(SUM)}"
QWEN_FAILURE = "Script error:\nunexpected token: '{}'\n    at <input>:1:1\n    at parse (native)\n    at <anonymous> (exec.js:4:{})\n"
SUMMED = "v.length + ' rows, sum ' + v.reduce((sum, row) => sum + row.amount, 0)"


def switch_on_codex(home, environment):
    home.write(".codex/config.toml", "[features]\ncode_mode = true\n")


def switch_on_opencode(home, environment):
    environment["OPENCODE_EXPERIMENTAL_CODE_MODE"] = "1"


def switch_on_qwen(home, environment):
    home.update(".qwen/settings.json", {"tools": {"codeModeOnly": True}})


CODE_MODES = {
    "codex": CodeMode(switch_on_codex, "both", "text", "value", "exec", "code", "tools.mcp__lockhouse__TOOL", "tools.mcp__lockhouse__shop__rows",
                      "r.content[0].text", "text(VALUE)", CODEX_SCRIPT + "VALUE", CODEX_SCRIPT + RIGHT, CODEX_SCRIPT + RIGHT),
    "opencode": CodeMode(switch_on_opencode, "code", "text", "text", "execute", "code", "tools.lockhouse.TOOL", "tools.lockhouse.shop__rows",
                         "(typeof r === 'string' ? r : JSON.stringify(r))", "return VALUE", "VALUE",
                         'JSON.parse received invalid JSON: JSON Parse error: Unexpected identifier "Value" (line 2, col 11)', RIGHT),
    "qwen": CodeMode(switch_on_qwen, "code", "value", "value", "exec", "source", "tools.mcp__lockhouse__TOOL", "tools.mcp__lockhouse__shop__rows",
                     "r.output", "text(VALUE)", "VALUE", QWEN_FAILURE.format("Value", 191), QWEN_FAILURE.format("<", 123)),
}

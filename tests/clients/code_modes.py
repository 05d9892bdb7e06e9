"""The code modes of AI clients: the model writes JavaScript, which calls the tools of MCP servers.

The same sum over 6,000 rows is computed in two ways: by JavaScript that gets the rows from a program of `run_code`, and by
JavaScript that calls the tool of the upstream server directly.
"""

from dataclasses import dataclass

from model_api import Step

ROWS = 6000
SUM = 27_004_500


@dataclass
class CodeMode:
    """How a client's code mode is switched on, the tool that takes the JavaScript, and how JavaScript gets a tool's text."""

    tool: str
    argument: str
    run_code: str
    rows: str
    text: str
    end: str

    def step(self, program):
        return Step(self.tool, {self.argument: program})

    def nested(self, program):
        """Sums the rows that a program of `run_code` returns."""
        call = f"const r = await {self.run_code}({{language: 'python', code: {program!r}}});"
        return self.step(f"{call} const v = JSON.parse({self.text}); {self.summed()}")

    def nested_sum(self):
        """Returns a sum that a program of `run_code` computed."""
        program = f"from mcp_tools.shop import rows\nsum(row['amount'] for row in rows(count={ROWS}))"
        call = f"const r = await {self.run_code}({{language: 'python', code: {program!r}}});"
        return self.step(f"{call} {self.end.format('String(JSON.parse(' + self.text + '))')}")

    def direct(self):
        """Sums the rows that the upstream server's own tool returns."""
        return self.step(f"const r = await {self.rows}({{count: {ROWS}}}); const v = JSON.parse({self.text}); {self.summed()}")

    def summed(self):
        return self.end.format("v.length + ' rows, sum ' + v.reduce((sum, row) => sum + row.amount, 0)")


def switch_on_codex(home, environment):
    file = home.path / ".codex/config.toml"
    file.write_text(file.read_text() + "\n[features]\ncode_mode = true\n")


def switch_on_opencode(home, environment):
    environment["OPENCODE_EXPERIMENTAL_CODE_MODE"] = "1"


def switch_on_qwen(home, environment):
    home.update(".qwen/settings.json", {"tools": {"codeModeOnly": True}})


CODE_MODES = {
    "codex": (switch_on_codex, CodeMode(
        "exec", "code", "tools.mcp__lockhouse__run_code", "tools.mcp__lockhouse__shop__rows", "r.content[0].text", "text({})")),
    "opencode": (switch_on_opencode, CodeMode(
        "execute", "code", "tools.lockhouse.run_code", "tools.lockhouse.shop__rows", "(typeof r === 'string' ? r : JSON.stringify(r))", "return {}")),
    "qwen": (switch_on_qwen, CodeMode(
        "exec", "source", "tools.mcp__lockhouse__run_code", "tools.mcp__lockhouse__shop__rows", "r.output", "text({})")),
}


def is_right_or_fails(text):
    """Whether a program that got the rows computed the right sum, or failed so that its model sees it."""
    if f"{ROWS} rows, sum {SUM}" in text:
        return True
    return "rows, sum" not in text and any(word in text for word in ("Error", "error", "Value cut", "SyntaxError", "failed"))


def checks(mode):
    """The checks of one code mode by exposure: name, step, and whether its result is as it must be."""
    rows = f"from mcp_tools.shop import rows\nrows(count={ROWS})"
    return {
        "code": [
            ("nested sum in run_code", mode.nested_sum(), lambda text: str(SUM) in text),
            ("nested sum over rows: right, or fails loudly", mode.nested(rows), is_right_or_fails),
            ("nested error", mode.nested("1/0"), lambda text: "rows, sum" not in text),
        ],
        "direct": [
            ("direct sum over rows: right, or fails loudly", mode.direct(), is_right_or_fails),
        ],
    }

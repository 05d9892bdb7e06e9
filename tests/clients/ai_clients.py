"""The AI clients: how each one is told where its model is, and how it runs a prompt without a person.

Each has a home directory of its own, which `lockhouse init` and the client itself write to. What a person would set beside the
entry is set here: the model's address, and that the tools of Lockhouse may be used without a question in a run without a person.

`form` is the answer form of the client's entry. `elicits` says that it can ask its user a question of Lockhouse. `overlaps` says which calls
of one turn run at the same time: all, those of tools with the annotation `readOnlyHint` ("readers"), or none.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Home:
    """The home directory of one client in one test."""

    path: Path
    api: str

    def write(self, name, content):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))

    def update(self, name, more):
        """Merges `more` into a JSON file."""
        file = self.path / name
        merged = json.loads(file.read_text()) if file.exists() else {}
        merge(merged, more)
        self.write(name, merged)


def merge(into, more):
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


class ClaudeCode:
    name, package, init = "Claude Code", "@anthropic-ai/claude-code", "claude-code"
    # The file to which its own `mcp add` writes, and the key of the servers there.
    file, section = ".claude.json", "mcpServers"
    form, elicits, overlaps = "text", True, "readers"
    timeout_variable = "MCP_TOOL_TIMEOUT"

    def http_entry(home, url, token):
        home.update(".claude.json", {"mcpServers": {"lockhouse": {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${LOCKHOUSE_TOKEN}"}}}})

    def settings(home):
        home.write(".claude/settings.json", {"permissions": {"allow": ["mcp__lockhouse"]}})

    def environment(home):
        return {"ANTHROPIC_BASE_URL": home.api, "ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1"}

    def loading(tool):
        """The call with which the model loads a tool of a server that is exposed directly."""
        return "ToolSearch", {"query": f"select:mcp__lockhouse__{tool}", "max_results": 1}

    def add_server(command, name="books"):
        return ["claude", "mcp", "add", "-s", "user", name, "--", *command]

    def command(prompt):
        return ["claude", "-p", prompt, "--model", "claude-sonnet-4-5"]


class Codex:
    name, package, init = "Codex", "@openai/codex", "codex"
    # The file to which its own `mcp add` writes, and the key of the servers there.
    file, section = ".codex/config.toml", "mcp_servers"
    form, elicits, overlaps = "text", True, "always"
    timeout_variable = None
    model = "gpt-5.1"

    def http_entry(home, url, token):
        home.write(".codex/config.toml", f'[mcp_servers.lockhouse]\nurl = "{url}"\nbearer_token_env_var = "LOCKHOUSE_TOKEN"\n'
                                         '[mcp_servers.lockhouse.tools.run_code]\napproval_mode = "approve"\n')

    def settings(home):
        file = home.path / ".codex/config.toml"
        own = file.read_text() if file.exists() else ""
        provider = f'model = "{Codex.model}"\nmodel_provider = "script"\n'
        table = (f'\n[model_providers.script]\nname = "script"\nbase_url = "{home.api}/v1"\nwire_api = "responses"\n'
                 'env_key = "SCRIPT_KEY"\nsupports_websockets = false\n')
        home.write(".codex/config.toml", provider + own + table)

    def environment(home):
        return {"SCRIPT_KEY": "k"}

    def add_server(command, name="books"):
        return ["codex", "mcp", "add", name, "--", *command]

    def command(prompt):
        return ["codex", "exec", "--skip-git-repo-check", prompt]


class OpenCode:
    name, package, init = "OpenCode", "opencode-ai", "opencode"
    # The file to which its own `mcp add` writes, and the key of the servers there.
    file, section = ".config/opencode/opencode.jsonc", "mcp"
    # The file to which `lockhouse init` writes, where it differs.
    entry_file = ".config/opencode/opencode.json"
    form, elicits, overlaps = "text", False, "always"
    timeout_variable = None

    def http_entry(home, url, token):
        entry = {"type": "remote", "url": url, "headers": {"Authorization": "Bearer {env:LOCKHOUSE_TOKEN}"}, "enabled": True}
        home.update(".config/opencode/opencode.json", {"mcp": {"lockhouse": entry}})

    def settings(home):
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "script", "options": {"baseURL": home.api + "/v1", "apiKey": "k"},
                    "models": {"m": {"name": "m", "tool_call": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}}}
        home.update(".config/opencode/opencode.json", {"provider": {"script": provider}, "model": "script/m", "small_model": "script/m", "autoupdate": False})

    def environment(home):
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}

    def add_server(command, name="books"):
        return ["opencode", "mcp", "add", name, "--", *command]

    def command(prompt):
        return ["opencode", "run", prompt]


class Qwen:
    name, package, init = "Qwen Code", "@qwen-code/qwen-code", "qwen"
    # The file to which its own `mcp add` writes, and the key of the servers there.
    file, section = ".qwen/settings.json", "mcpServers"
    form, elicits, overlaps = "text", False, "readers"
    timeout_variable = None

    def http_entry(home, url, token):
        entry = {"httpUrl": url, "headers": {"Authorization": "Bearer $LOCKHOUSE_TOKEN"}, "alwaysLoadTools": True}
        home.update(".qwen/settings.json", {"mcpServers": {"lockhouse": entry}})

    def settings(home):
        home.update(".qwen/settings.json", {"security": {"auth": {"selectedType": "openai"}}, "permissions": {"allow": ["mcp__lockhouse"]},
                                            "general": {"enableAutoUpdate": False}})

    def environment(home):
        return {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": home.api + "/v1", "OPENAI_MODEL": "qwen3-vl-plus"}

    def add_server(command, name="books"):
        return ["qwen", "mcp", "add", "-s", "user", name, *command]

    def command(prompt):
        return ["qwen", "-p", prompt]


class GeminiCli:
    name, package, init = "Gemini CLI", "@google/gemini-cli", "gemini"
    # The file to which its own `mcp add` writes, and the key of the servers there.
    file, section = ".gemini/settings.json", "mcpServers"
    form, elicits, overlaps = "labelled", False, "always"
    timeout_variable = None

    def http_entry(home, url, token):
        entry = {"httpUrl": url, "headers": {"Authorization": "Bearer $LOCKHOUSE_TOKEN"}}
        home.update(".gemini/settings.json", {"mcpServers": {"lockhouse": entry}})

    def settings(home):
        home.update(".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
                                              "general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}})
        rule = '[[rule]]\nmcpName = "lockhouse"\ntoolName = "*"\ndecision = "allow"\npriority = 500\n'
        home.write(".gemini/policies/lockhouse.toml", rule)

    def environment(home):
        return {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": home.api, "GEMINI_MODEL": "gemini-2.5-flash"}

    def add_server(command, name="books"):
        return ["gemini", "mcp", "add", "-s", "user", name, *command]

    def command(prompt):
        return ["gemini", "-p", prompt, "--skip-trust"]


class Copilot:
    name, package, init = "Copilot CLI", "@github/copilot", "copilot"
    # The file to which its own `mcp add` writes, and the key of the servers there.
    file, section = ".copilot/mcp-config.json", "mcpServers"
    form, elicits, overlaps = "text", True, "always"
    timeout_variable = None

    def http_entry(home, url, token):
        entry = {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${LOCKHOUSE_TOKEN}"}, "tools": ["*"]}
        home.update(".copilot/mcp-config.json", {"mcpServers": {"lockhouse": entry}})

    def settings(home):
        pass

    def environment(home):
        return {"COPILOT_PROVIDER_BASE_URL": home.api + "/v1", "COPILOT_PROVIDER_API_KEY": "k", "COPILOT_MODEL": "gpt-4.1",
                "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}

    def add_server(command, name="books"):
        return ["copilot", "mcp", "add", name, "--", *command]

    def command(prompt):
        return ["copilot", "-p", prompt, "--allow-tool", "lockhouse"]


class Cline:
    name, package, init = "Cline", "cline", "cline"
    # The file to which its own `mcp add` writes, and the key of the servers there.
    file, section = ".cline/data/settings/cline_mcp_settings.json", "mcpServers"
    form, elicits, overlaps = "text", False, "never"
    timeout_variable = None

    def http_entry(home, url, token):
        transport = {"type": "streamableHttp", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
        home.update(".cline/data/settings/cline_mcp_settings.json", {"mcpServers": {"lockhouse": {"transport": transport}}})

    def settings(home):
        subprocess.run(["cline", "auth", "-p", "openai", "-k", "k", "-m", "m", "-b", home.api + "/v1"], capture_output=True, timeout=60,
                       env={"HOME": str(home.path), "PATH": os.environ["CLIENTS_PATH"]})

    def environment(home):
        # By default, Cline takes the middle out of every result above 8,000 characters.
        return {"CLINE_NO_AUTO_UPDATE": "1", "CLINE_MESSAGE_BUILDER_MAX_TOOL_RESULT_CHARS": "40000"}

    def add_server(command, name="books"):
        return ["cline", "mcp", "add", name, "--yes", "--", *command]

    def command(prompt):
        return ["cline", "--auto-approve", "true", prompt + " now"]


class Continue:
    name, package, init = "Continue", "@continuedev/cli", "continue"
    form, elicits, overlaps = "text", False, "always"
    timeout_variable = None

    def http_entry(home, url, token):
        home.write(".continue/config.yaml", "name: Main\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: lockhouse\n    type: streamable-http\n"
                                            f"    url: {url}\n    requestOptions:\n      headers:\n        Authorization: Bearer {token}\n")

    def settings(home):
        file = home.path / ".continue/config.yaml"
        own = file.read_text() if file.exists() else "name: Main\nversion: 1.0.0\nschema: v1\n"
        models = (f"models:\n  - name: m\n    provider: openai\n    model: m\n    apiKey: k\n    apiBase: {home.api}/v1\n"
                  "    roles: [chat]\n    capabilities: [tool_use]\n")
        home.write(".continue/config.yaml", own.rstrip() + "\n" + models)

    def environment(home):
        return {"CONTINUE_TELEMETRY_ENABLED": "0"}

    def command(prompt):
        return ["cn", "-p", prompt, "--config", "$HOME/.continue/config.yaml", "--allow", "mcp__lockhouse__*"]


CLIENTS = [ClaudeCode, Codex, OpenCode, Qwen, GeminiCli, Copilot, Cline, Continue]

//! Tests the client configurations in `docs/connect.md`: each is what `lockhouse init` writes for that AI client, or
//! what Lockhouse accepts when it reads that client's file.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::Value;

use super::code_blocks::{Block, blocks, page};

/// The AI clients of the page: the heading, the client's name for `--client`, its configuration file below the test
/// directory, and whether the section has a second code block, with the configuration for HTTP.
const CLIENTS: [(&str, &str, &str, bool); 11] = [
    ("Claude Desktop", "claude-desktop", "config/Claude/claude_desktop_config.json", false),
    ("Claude Code", "claude-code", "home/.claude.json", true),
    ("Cursor", "cursor", "home/.cursor/mcp.json", true),
    ("VS Code", "vscode", "config/Code/User/mcp.json", true),
    ("Cline", "cline", "home/.cline/data/settings/cline_mcp_settings.json", true),
    ("Codex", "codex", "home/.codex/config.toml", true),
    ("Continue", "continue", "home/.continue/config.yaml", true),
    ("Copilot CLI", "copilot", "home/.copilot/mcp-config.json", true),
    ("Gemini CLI", "gemini", "home/.gemini/settings.json", true),
    ("Qwen Code", "qwen", "home/.qwen/settings.json", true),
    ("OpenCode", "opencode", "config/opencode/opencode.json", true),
];
const PROGRAM: &str = "/usr/bin/lockhouse";
const URL: &str = "http://127.0.0.1:7300/mcp";

fn blocks_below<'b>(blocks: &'b [Block], heading: &str) -> Vec<&'b Block> {
    let of_client =
        |block: &&Block| block.heading == heading && ["json", "toml", "yaml"].contains(&&*block.language);
    blocks.iter().filter(of_client).collect()
}

/// Returns the text of the configuration file `file`, a path below the test directory, that `lockhouse init` creates
/// for the AI client `client`. The path of Lockhouse in the text is replaced by [`PROGRAM`].
fn init_output(client: &str, file: &str) -> Result<String, String> {
    let lockhouse = Lockhouse::new();
    let done = lockhouse.command(&["init", "--client", client, "--yes"]).output().unwrap();
    let text = std::fs::read_to_string(lockhouse.path(file));
    let text = text.map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&done.stderr)))?;
    Ok(text.replace(lockhouse.program().to_str().unwrap(), PROGRAM))
}

/// Returns the upstream servers that Lockhouse reads from a code block with an AI client's configuration.
fn read(block: &Block) -> Vec<Value> {
    let lockhouse = Lockhouse::new();
    let file = lockhouse.file(&format!("home/client.{}", block.language), &block.text);
    let mut command =
        lockhouse.command(&["server", "list", "--no-connect", "--json", "--servers", file.to_str().unwrap()]);
    command.env("LOCKHOUSE_TOKEN", "a-token").env("LOCKHOUSE_INPUT_LOCKHOUSE_TOKEN", "a-token");
    let done = command.output().unwrap();
    serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&done.stderr)))
}

#[test]
fn every_documented_client_configuration_is_readable() {
    let blocks = blocks(&page("docs/connect.md"));
    let mut table = Table::new("docs/connect.md");
    for (heading, client, file, has_http) in CLIENTS {
        let of_client = blocks_below(&blocks, heading);
        table.row(format!("{heading} has its blocks"), equal(of_client.len(), 1 + usize::from(has_http)));
        let Some(stdio) = of_client.first() else { continue };
        let as_written = init_output(client, file).and_then(|text| equal(text.trim(), stdio.text.trim()));
        table.row(format!("{heading}: stdio, as init writes it (line {})", stdio.line), as_written);
        let Some(http) = of_client.get(1) else { continue };
        let servers = read(http);
        let name = format!("{heading}: HTTP, as Lockhouse reads it (line {})", http.line);
        let found = servers.first().map(|server| (&server["name"], &server["transport"], &server["state"]));
        let as_meant = found == Some((&"lockhouse".into(), &"http".into(), &"idle".into()));
        table.row(name, ensure(as_meant && servers.len() == 1 && http.text.contains(URL), &servers));
    }
    table.finish();
}

#[test]
fn an_unreadable_configuration_block_is_detected() {
    let wrong = Block {
        heading: String::new(),
        line: 1,
        language: "json".into(),
        text: "{\"mcpServers\": {\"lockhouse\": {\"uri\": \"http://127.0.0.1:7300/mcp\"}}}".into(),
    };
    let servers = read(&wrong);
    assert_eq!(servers[0]["state"], "left_out", "{servers:?}");
}

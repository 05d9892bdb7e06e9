//! Detects the dialect (AI client's format) of a servers file from its content.

use super::Dialect;
use super::document_tree::{Node, Table, Value, get};
use super::syntax::Syntax;
use crate::placeholders::Environment;

pub(super) struct Detection<'t> {
    pub(super) dialect: Dialect,
    /// The tables of the file that list servers. If two tables contain the same server name, the first one takes
    /// precedence.
    pub(super) sections: Vec<Section<'t>>,
}

/// A table that lists servers, and its path in the file.
pub(super) struct Section<'t> {
    /// The keys that lead to the table, outermost first.
    pub(super) path: Vec<String>,
    pub(super) table: &'t Table,
}

impl<'t> Section<'t> {
    fn new(path: &[&str], table: &'t Table) -> Self {
        Self { path: path.iter().map(|key| (*key).to_owned()).collect(), table }
    }
}

/// Settings keys that occur beside `mcpServers` only in the files of Gemini CLI and Qwen Code.
const GEMINI_SETTINGS: [&str; 9] = [
    "selectedAuthType",
    "security",
    "general",
    "ui",
    "tools",
    "contextFileName",
    "theme",
    "modelProviders",
    "context",
];
const GEMINI_KEYS: [&str; 6] =
    ["httpUrl", "includeTools", "excludeTools", "trust", "authProviderType", "targetAudience"];
const WINDSURF_KEYS: [&str; 2] = ["serverUrl", "disabledTools"];
const CURSOR_KEYS: [&str; 2] = ["envFile", "auth"];
const CURSOR_VARIABLES: [&str; 5] =
    ["${env:", "${userHome}", "${workspaceFolder", "${pathSeparator}", "${/}"];
/// The key of Claude Code's file under which it lists what belongs to single projects, by their directories.
pub(super) const PROJECTS: &str = "projects";
const CLAUDE_CODE_SETTINGS: [&str; 3] = [PROJECTS, "numStartups", "hasCompletedOnboarding"];
const CLAUDE_CODE_KEYS: [&str; 4] = ["type", "url", "headers", "headersHelper"];

pub(super) fn detect<'t>(
    root: &'t Table,
    syntax: Syntax,
    environment: &Environment,
) -> Option<Detection<'t>> {
    let table = |name: &str| get(root, name).and_then(Node::table);
    let found = |dialect, path: &[&str], table| {
        Some(Detection { dialect, sections: vec![Section::new(path, table)] })
    };
    match syntax {
        Syntax::Json => {}
        Syntax::Yaml => return found(Dialect::Continue, &["mcpServers"], table("mcpServers")?),
        Syntax::Toml => {
            return match (table("mcp_servers"), table("servers")) {
                (Some(servers), _) => found(Dialect::Codex, &["mcp_servers"], servers),
                (None, Some(servers)) => found(Dialect::Own, &["servers"], servers),
                (None, None) => None,
            };
        }
    }
    let project = project_servers(root, environment);
    if let Some(servers) = table("mcpServers").or(project) {
        let dialect = if project.is_some() { Dialect::ClaudeCode } else { detect_mcp_servers(root, servers) };
        // Servers of the project take precedence over servers of the user.
        let of_user = table("mcpServers").map(|table| Section::new(&["mcpServers"], table));
        let directory = environment.directory.to_str().unwrap_or_default();
        let of_project = project.map(|table| Section::new(&[PROJECTS, directory, "mcpServers"], table));
        let sections = of_project.into_iter().chain(of_user).collect();
        return Some(Detection { dialect, sections });
    }
    if let Some(servers) = table("context_servers") {
        return found(Dialect::Zed, &["context_servers"], servers);
    }
    if let Some(mcp) = table("mcp") {
        let nested = get(mcp, "servers").and_then(Node::table);
        return match nested {
            // Version 2 of OpenCode, or the settings of VS Code.
            Some(servers) if any_entry_has_type(servers, &["local", "remote"]) => {
                found(Dialect::OpenCode, &["mcp", "servers"], servers)
            }
            Some(servers) => found(Dialect::VsCode, &["mcp", "servers"], servers),
            None if mcp.iter().any(|(_, node)| node.table().is_some()) => {
                found(Dialect::OpenCode, &["mcp"], mcp)
            }
            None => None,
        };
    }
    let servers = table("servers")?;
    let is_plain = get(root, "inputs").is_none()
        && !any_entry_has_key(servers, &["type", "envFile", "url"])
        && !any_text_contains(servers, &["${"]);
    found(if is_plain { Dialect::Plain } else { Dialect::VsCode }, &["servers"], servers)
}

fn detect_mcp_servers(root: &Table, servers: &Table) -> Dialect {
    let has_setting = |names: &[&str]| names.iter().any(|name| get(root, name).is_some());
    if has_setting(&GEMINI_SETTINGS) || any_entry_has_key(servers, &GEMINI_KEYS) || has_bare_variable(servers)
    {
        Dialect::Gemini
    } else if any_entry_has_key(servers, &WINDSURF_KEYS) || any_text_contains(servers, &["${file:"]) {
        Dialect::Windsurf
    } else if any_entry_has_key(servers, &CURSOR_KEYS) || any_text_contains(servers, &CURSOR_VARIABLES) {
        Dialect::Cursor
    } else if has_setting(&CLAUDE_CODE_SETTINGS)
        || any_entry_has_key(servers, &CLAUDE_CODE_KEYS)
        || any_text_contains(servers, &["${"])
    {
        Dialect::ClaudeCode
    } else {
        Dialect::ClaudeDesktop
    }
}

/// Returns the servers that Claude Code's settings file lists for the current project. `None` if the file lists no
/// servers for this project.
fn project_servers<'t>(root: &'t Table, environment: &Environment) -> Option<&'t Table> {
    let projects = get(root, PROJECTS).and_then(Node::table)?;
    let project = get(projects, environment.directory.to_str()?).and_then(Node::table)?;
    let servers = get(project, "mcpServers").and_then(Node::table)?;
    environment.use_directory();
    Some(servers)
}

fn entries(servers: &Table) -> impl Iterator<Item = &Table> {
    servers.iter().filter_map(|(_, node)| node.table())
}

fn any_entry_has_key(servers: &Table, keys: &[&str]) -> bool {
    entries(servers).any(|entry| keys.iter().any(|key| get(entry, key).is_some()))
}

fn any_entry_has_type(servers: &Table, types: &[&str]) -> bool {
    entries(servers)
        .any(|entry| get(entry, "type").and_then(Node::text).is_some_and(|kind| types.contains(&kind)))
}

fn any_text_contains(servers: &Table, words: &[&str]) -> bool {
    let texts = servers.iter().flat_map(|(_, node)| node.texts());
    texts.into_iter().any(|text| words.iter().any(|word| text.contains(word)))
}

/// Whether the value of any environment variable of a server is exactly `$NAME`. Only Gemini CLI and Qwen Code expand
/// such values.
fn has_bare_variable(servers: &Table) -> bool {
    let is_variable = |text: &str| {
        let name = text.strip_prefix('$').unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let values = entries(servers).filter_map(|entry| get(entry, "env"));
    values.flat_map(Node::texts).any(is_variable)
}

/// Returns the identifier, and the description if it has one, of each entry in `inputs` of a VS Code file. An entry
/// stands for a value that VS Code asks its user for.
pub(super) fn inputs(root: &Table) -> Vec<(String, Option<String>)> {
    let nested = get(root, "mcp").and_then(Node::table).and_then(|mcp| get(mcp, "inputs"));
    let Some(Value::List(list)) = get(root, "inputs").or(nested).map(|node| &node.value) else {
        return Vec::new();
    };
    let text = |table: &Table, key: &str| get(table, key).and_then(Node::text).map(str::to_owned);
    let input = |node: &Node| {
        let table = node.table()?;
        Some((text(table, "id")?, text(table, "description")))
    };
    list.iter().filter_map(input).collect()
}

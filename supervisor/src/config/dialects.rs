//! Files in which AI clients list their servers, read as they are.
//!
//! A dialect is recognised by what is in the file, never by the file's name. Keys that are not known are another program's
//! business and are passed over. What an AI client's file says of permission (`alwaysAllow`, `trust`) is never taken.

mod codex;
mod fields;
mod gemini;
#[cfg(test)]
mod golden;
mod mcp_servers;
mod opencode;
mod own;
#[cfg(test)]
mod properties;
mod recognise;
mod syntax;
mod tree;
mod zed;

use std::path::{Path, PathBuf};

use lockhouse_policies::{Diagnostic, Diagnostics, OnChange, Source};
use toml::de::DeTable;

use super::entry::Entry;
use super::faults;
use super::left_out::LeftOut;
use super::references::Surroundings;
use fields::Fields;
use syntax::Syntax;
use tree::Key;

pub(super) use tree::{Node, Table, get_below as table_at, parse_json, without_servers};

/// One way of listing servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Codex,
    /// Qwen's is the same.
    Gemini,
    Windsurf,
    Zed,
    OpenCode,
    /// `{"servers": {NAME: {"command", "args"}}}` of nobody in particular.
    Plain,
    /// `[servers.NAME]`, as in our configuration.
    Own,
}

impl Dialect {
    /// Whose it is, as people know it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::OpenCode => "OpenCode",
            Self::Plain => "plain",
            Self::Own => "Lockhouse",
        }
    }
}

/// What a file lists.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) dialect: Dialect,
    pub(crate) servers: Vec<Listed>,
}

/// One server of a file, under the name that it has there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    pub(crate) name: String,
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) entry: Result<Entry, LeftOut>,
}

/// Where a file is, and what its variables may refer to.
struct Place<'p> {
    path: &'p str,
    surroundings: &'p Surroundings,
    /// VS Code's `inputs`: what each is called and for what it asks.
    inputs: Vec<(String, Option<String>)>,
}

impl Place<'_> {
    /// The project: of a file in `.vscode` or `.cursor` the directory above, else where Lockhouse was started.
    fn workspace(&self) -> PathBuf {
        let folder = Path::new(self.path).parent();
        let folder = folder.filter(|folder| folder.ends_with(".vscode") || folder.ends_with(".cursor"));
        let project = folder.and_then(Path::parent).filter(|project| project.is_absolute());
        let project = project.filter(|project| Some(*project) != self.surroundings.home.as_deref());
        project.unwrap_or(&self.surroundings.directory).to_owned()
    }
}

/// Reads a file of any dialect. `None` when it lists no servers: a client's settings need not.
///
/// # Errors
/// The file as a whole cannot be read. What is wrong with one server is said in its place.
pub(super) fn read(source: &Source, surroundings: &Surroundings) -> Result<Option<Listing>, Diagnostics> {
    let root = tree::parse(source)?;
    let Some(root) = root.table() else { return Ok(None) };
    let is_json = tree::looks_like_json(&source.text);
    let Some(found) = recognise::recognise(root, is_json, surroundings) else { return Ok(None) };
    let inputs = recognise::inputs(root);
    let place = Place { path: &source.path, surroundings, inputs };
    let mut servers = Vec::new();
    for (key, node) in found.sections.into_iter().flatten() {
        let is_off = found.dialect == Dialect::Gemini && gemini::excludes(root, &key.name);
        let mut entry = if is_off { Err(LeftOut::Disabled) } else { entry(found.dialect, key, node, &place) };
        // Whoever put the server there did not have Lockhouse in mind, and may not look at its log.
        if let Ok(entry) = &mut entry
            && found.dialect != Dialect::Own
        {
            entry.on_change = Some(OnChange::Ask);
        }
        let line = faults::line_number(&source.text, key.at.start);
        servers.push(Listed { name: key.name.clone(), line, entry });
    }
    Ok(Some(Listing { dialect: found.dialect, servers }))
}

/// `[servers.NAME]` of our configuration, where a fault of one server is a fault of the file.
pub(super) fn read_own(
    source: &Source,
    root: &DeTable<'_>,
    surroundings: &Surroundings,
) -> Result<Vec<Listed>, Diagnostics> {
    let Some(servers) = root.get("servers") else { return Ok(Vec::new()) };
    let node = tree::toml_node(servers.span(), servers.get_ref().clone());
    let Some(table) = node.table() else {
        let label = "expected tables: [servers.NAME]".to_owned();
        return Err(faults::at(source, Some(node.at.clone()), "servers is not valid", label).into());
    };
    let place = Place { path: &source.path, surroundings, inputs: Vec::new() };
    let (mut servers, mut found) = (Vec::new(), Vec::new());
    for (key, node) in table {
        match own::checked(key, node, &place) {
            Ok(entry) => {
                let line = faults::line_number(&source.text, key.at.start);
                servers.push(Listed { name: key.name.clone(), line, entry });
            }
            Err(all) => found.extend(all.into_iter().map(|fault| {
                let title = "a server in the configuration is not valid";
                let diagnostic = faults::at(source, Some(fault.at), title, fault.label);
                fault.help.into_iter().fold(diagnostic, Diagnostic::with_help)
            })),
        }
    }
    if found.is_empty() { Ok(servers) } else { Err(Diagnostics(found)) }
}

fn entry(dialect: Dialect, key: &Key, node: &Node, place: &Place<'_>) -> Result<Entry, LeftOut> {
    let table = node.table();
    let table = table.ok_or_else(|| LeftOut::Unexpected { key: key.name.clone(), expected: "a table" })?;
    let fields = |syntax| Fields { table, syntax, place };
    match dialect {
        Dialect::ClaudeDesktop | Dialect::Plain => mcp_servers::entry(fields(Syntax::None)),
        Dialect::ClaudeCode => mcp_servers::entry(fields(Syntax::Braces)),
        Dialect::Cursor | Dialect::VsCode => mcp_servers::entry(fields(Syntax::Editor)),
        Dialect::Windsurf => mcp_servers::entry(fields(Syntax::Windsurf)),
        Dialect::Codex => codex::entry(fields(Syntax::None)),
        Dialect::Gemini => gemini::entry(fields(Syntax::Shell)),
        Dialect::Zed => zed::entry(fields(Syntax::None)),
        Dialect::OpenCode => opencode::entry(fields(Syntax::OpenCode)),
        Dialect::Own => own::checked(key, node, place).unwrap_or_else(|faults| {
            let first = faults.into_iter().next().map(|fault| fault.label);
            Err(LeftOut::Invalid(first.unwrap_or_default()))
        }),
    }
}

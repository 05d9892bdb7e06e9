//! Reads the servers files of AI clients, each in the client's own format ("dialect").
//!
//! A dialect is detected from the content of the file, never from the file's name. Unknown keys belong to the AI client
//! and are ignored, except Lockhouse's own keys for limits, such as `start_timeout_seconds`. Permissions that an AI client's file grants (`alwaysAllow`, `trust`) are never applied.

mod codex;
mod continue_format;
mod detection;
mod document_tree;
mod every_server;
mod fields;
mod files_server;
mod gemini;
#[cfg(test)]
mod golden;
mod mcp_servers;
mod not_imported;
mod opencode;
mod own_format;
mod placeholder_syntax;
#[cfg(test)]
mod properties;
mod syntax;
mod yaml_tree;
mod zed;

use std::path::{Path, PathBuf};

use lockhouse_base::text_files::read_source;
use lockhouse_policies::{Diagnostic, Diagnostics, OnChange, Source};
use toml::de::DeTable;

use super::error::ConfigError;
use super::every_server::EveryServer;
use super::files_table::FilesTable;
use super::placeholders::{Environment, Template};
use super::redacted_diagnostic;
use super::server_entry::ServerEntry;
use super::skip_reason::SkipReason;
use fields::Fields;
use placeholder_syntax::PlaceholderSyntax;

pub use document_tree::{Key, Node, Table, Value, get_path, parse_json};
pub use syntax::{Syntax, parse_as};

pub(crate) use document_tree::without_servers;
pub(crate) use placeholder_syntax::PLACEHOLDER_FORMS;

/// The format ("dialect") of a file that lists MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Codex,
    Continue,
    /// The format of Gemini CLI and Qwen Code.
    Gemini,
    Windsurf,
    Zed,
    OpenCode,
    /// The format `{"servers": {NAME: {"command", "args"}}}`, which belongs to no particular AI client.
    Plain,
    /// The format of Lockhouse's own configuration: `[servers.NAME]` tables.
    Own,
}

impl Dialect {
    /// Returns the display name of the format. It is the name of the AI client that uses the format, except `plain` and
    /// `Lockhouse`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Continue => "Continue",
            Self::Gemini => "Gemini CLI",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::OpenCode => "OpenCode",
            Self::Plain => "plain",
            Self::Own => "Lockhouse",
        }
    }
}

/// The MCP servers that one file lists, and the format of the file.
#[derive(Clone, Debug)]
pub struct Listing {
    pub dialect: Dialect,
    pub servers: Vec<ListedServer>,
}

/// One MCP server that a file lists, under the name that it has in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedServer {
    pub name: String,
    /// The line at which the server's entry begins, counted from 1.
    pub line: usize,
    /// The keys of the tables that contain the entry, outermost first, such as `mcpServers`.
    pub section: Vec<String>,
    pub entry: Result<ServerEntry, SkipReason>,
    /// The entry if a person has to confirm it. Then [`Self::entry`] is the reason.
    unconfirmed: Option<Box<ServerEntry>>,
}

impl ListedServer {
    fn new(name: &str, line: usize, section: Vec<String>, entry: Result<ServerEntry, SkipReason>) -> Self {
        Self { name: name.to_owned(), line, section, entry, unconfirmed: None }
    }

    /// Adapts the server of an AI client's file, whose author did not configure it for Lockhouse, and may not read its
    /// log.
    fn of_client(mut self, dialect: Dialect) -> Self {
        let Ok(entry) = &mut self.entry else { return self };
        entry.on_change = Some(OnChange::Ask);
        if entry.uses_sse() {
            let advice =
                if dialect == Dialect::Gemini { gemini::USE_HTTP_URL } else { mcp_servers::USE_STREAMABLE };
            let entry = std::mem::replace(&mut self.entry, Err(SkipReason::OldTransport(advice)));
            self.unconfirmed = entry.ok().map(Box::new);
        }
        self
    }

    /// Whether a person has to confirm the server, because it uses the deprecated transport HTTP+SSE.
    pub fn needs_confirmation(&self) -> bool {
        self.unconfirmed.is_some()
    }

    /// Returns the entry of the server as if a person had confirmed it.
    pub fn confirmed_entry(&self) -> Result<ServerEntry, SkipReason> {
        match &self.unconfirmed {
            Some(entry) => Ok(*entry.clone()),
            None => self.entry.clone(),
        }
    }

    /// Returns the directory of the project to which the server is private: Claude Code's own file lists such servers
    /// below the directory. `None` if the server is for all projects.
    pub fn project(&self) -> Option<&str> {
        match self.section.as_slice() {
            [projects, directory, _] if projects == detection::PROJECTS => Some(directory),
            _ => None,
        }
    }
}

/// A servers file: its path, the environment in which its placeholders are resolved, and its declared inputs.
struct SourceFile<'p> {
    path: &'p str,
    environment: &'p Environment,
    /// The identifier and description of each entry of `inputs` in the file. An input is a value that VS Code asks
    /// its user for.
    inputs: Vec<(String, Option<String>)>,
}

impl SourceFile<'_> {
    /// Returns the project directory of the file. For a file in the folder `.vscode` or `.cursor` of a project, this is
    /// the parent of that folder. For any other file, and for such a folder in the home directory, it is the directory
    /// in which Lockhouse was started.
    fn workspace(&self) -> PathBuf {
        let folder = Path::new(self.path).parent();
        let folder = folder.filter(|folder| folder.ends_with(".vscode") || folder.ends_with(".cursor"));
        let project = folder.and_then(Path::parent).filter(|project| project.is_absolute());
        let project = project.filter(|project| Some(*project) != self.environment.home.as_deref());
        project.unwrap_or_else(|| self.environment.use_directory()).to_owned()
    }
}

/// Reads a servers file in any dialect. Returns `None` if the file lists no servers, as is possible for the settings
/// file of an AI client.
///
/// # Errors
/// The file as a whole cannot be parsed. A fault of one server is no error here: its [`ListedServer::entry`] contains
/// it.
pub fn read(source: &Source, environment: &Environment) -> Result<Option<Listing>, Diagnostics> {
    let root = syntax::parse(source)?;
    let Some(root) = root.table() else { return Ok(None) };
    let syntax = syntax::Syntax::of(&source.text);
    let Some(found) = detection::detect(root, syntax, environment) else { return Ok(None) };
    let inputs = detection::inputs(root);
    let file = SourceFile { path: &source.path, environment, inputs };
    let mut servers = Vec::new();
    let entries =
        found.sections.iter().flat_map(|section| section.table.iter().map(move |own| (section, own)));
    for (section, (key, node)) in entries {
        let is_off = found.dialect == Dialect::Gemini && gemini::excludes(root, &key.name);
        let entry = if is_off { Err(SkipReason::Disabled) } else { entry(found.dialect, key, node, &file) };
        let line = redacted_diagnostic::line_number(&source.text, key.at.start);
        let listed = ListedServer::new(&key.name, line, section.path.clone(), entry);
        servers.push(if found.dialect == Dialect::Own { listed } else { listed.of_client(found.dialect) });
    }
    Ok(Some(Listing { dialect: found.dialect, servers }))
}

/// Lists the MCP servers in an AI client's configuration file, without resolving placeholders. Returns `None` if the
/// file has no section for servers.
pub fn list_servers(path: &Path, environment: &Environment) -> Result<Option<Listing>, ConfigError> {
    Ok(read(&read_source(path)?, environment)?)
}

/// The `[servers.NAME]` tables of Lockhouse's own configuration.
#[derive(Debug, Default)]
pub(super) struct OwnServers {
    /// The upstream servers.
    pub(super) upstreams: Vec<ListedServer>,
    /// The settings of the built-in server `files`.
    pub(super) files: FilesTable,
    /// The table `[servers."*"]`, which only a requirements file may have.
    pub(super) every: Option<EveryServer>,
}

/// Who wrote a file with `[servers.NAME]` tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    /// The file is a configuration.
    User,
    /// The file has requirements.
    Administrator,
}

/// Parses a text with placeholders in Lockhouse's own syntax. Returns `None` if a placeholder in it is not valid.
pub(super) fn own_template(text: &str, environment: &Environment) -> Option<Template> {
    let file = SourceFile { path: "", environment, inputs: Vec::new() };
    PlaceholderSyntax::Own.parse(text, &file).ok()
}

/// Parses a secret, which must have a placeholder: what is written in the file itself could be shown with its line. Returns `None`
/// if it has none, or if one in it is not valid.
pub(super) fn secret_template(text: &str, environment: &Environment) -> Option<Template> {
    own_template(text, environment).filter(|template| template.as_literal().is_none())
}

/// Reads the `[servers.NAME]` tables of Lockhouse's own configuration. `root` is the parsed text of `source`.
///
/// # Errors
/// All faults of all servers: one invalid server makes the whole file invalid.
pub(super) fn read_own(
    source: &Source,
    root: &DeTable<'_>,
    environment: &Environment,
    author: Author,
) -> Result<OwnServers, Diagnostics> {
    let Some(servers) = root.get("servers") else { return Ok(OwnServers::default()) };
    let node = document_tree::toml_node(servers.span(), servers.get_ref().clone());
    let Some(table) = node.table() else {
        let label = "expected tables: [servers.NAME]".to_owned();
        return Err(
            redacted_diagnostic::new(source, Some(node.at.clone()), "servers is not valid", label).into()
        );
    };
    let file = SourceFile { path: &source.path, environment, inputs: Vec::new() };
    let (mut own, mut found) = (OwnServers::default(), Vec::new());
    for (key, node) in table {
        let files = node.table().filter(|table| files_server::is_files_table(key, table));
        let parsed = match files {
            _ if key.name == every_server::EVERY && author == Author::Administrator => {
                every_server::parse(key, node, &file).map(|every| own.every = Some(every))
            }
            Some(table) => {
                let fields = Fields { table, syntax: PlaceholderSyntax::Own, file: &file };
                files_server::parse(key, fields).map(|table| own.files = table)
            }
            None => own_format::parse(key, node, &file).map(|entry| {
                let line = redacted_diagnostic::line_number(&source.text, key.at.start);
                let section = vec!["servers".to_owned()];
                own.upstreams.push(ListedServer::new(&key.name, line, section, entry));
            }),
        };
        match parsed {
            Ok(()) => {}
            Err(all) => found.extend(all.into_iter().map(|fault| {
                let title = "a server in the configuration is not valid";
                let diagnostic = redacted_diagnostic::new(source, Some(fault.at), title, fault.label);
                fault.help.into_iter().fold(diagnostic, Diagnostic::with_help)
            })),
        }
    }
    if found.is_empty() { Ok(own) } else { Err(Diagnostics(found)) }
}

fn entry(dialect: Dialect, key: &Key, node: &Node, file: &SourceFile<'_>) -> Result<ServerEntry, SkipReason> {
    let table = node.table();
    let table = table.ok_or_else(|| SkipReason::Unexpected { key: key.name.clone(), expected: "a table" })?;
    let fields = |syntax| Fields { table, syntax, file };
    let mut entry = match dialect {
        Dialect::ClaudeDesktop | Dialect::Plain => mcp_servers::entry(fields(PlaceholderSyntax::None)),
        Dialect::ClaudeCode => mcp_servers::entry(fields(PlaceholderSyntax::Braces)),
        Dialect::Cursor | Dialect::VsCode => mcp_servers::entry(fields(PlaceholderSyntax::Editor)),
        Dialect::Windsurf => mcp_servers::entry(fields(PlaceholderSyntax::Windsurf)),
        Dialect::Continue => continue_format::entry(fields(PlaceholderSyntax::Continue)),
        Dialect::Codex => codex::entry(fields(PlaceholderSyntax::None)),
        Dialect::Gemini => gemini::entry(fields(PlaceholderSyntax::Shell)),
        Dialect::Zed => zed::entry(fields(PlaceholderSyntax::None)),
        Dialect::OpenCode => opencode::entry(fields(PlaceholderSyntax::OpenCode)),
        Dialect::Own => own_format::parse(key, node, file).unwrap_or_else(|faults| {
            let first = faults.into_iter().next().map(|fault| fault.label);
            Err(SkipReason::Invalid(first.unwrap_or_default()))
        }),
    }?;
    entry.limits = own_format::limits(fields(PlaceholderSyntax::Own))?.or(entry.limits);
    Ok(entry)
}

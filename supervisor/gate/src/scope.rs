//! The scope of an execution: the upstream servers and tools of which the execution may know. A scope can only restrict
//! what the policy permits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use lockhouse_policies::{
    CallTarget, InvalidPattern, Pattern, PatternKind, SKILLS, most_similar_name, quoted,
};
use lockhouse_protocol::{Failure, FailureCode, InvalidName, ServerName};

use serde_json::{Map, Value};

use lockhouse_stores::skills::is_skills_server;

/// Maximum number of names in the argument `servers` of a request, which restricts an execution to some
/// servers.
/// Bound: calls and arguments.
const NAMES_MAX: usize = 1_000;
/// Maximum number of names of servers or tools that an error message quotes.
const NAMED_MAX: usize = 50;
/// Maximum number of characters of each server or tool name that an error message quotes.
const NAME_CHARS_MAX: usize = 80;

/// Why the names of servers and tools in the argument `servers` of a request, or in the grant of a client's token,
/// are not valid.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    #[error("servers has {count} names, and may have {NAMES_MAX}")]
    TooManyNames { count: usize },
    #[error("there is no MCP server {}; servers: {}", quoted(.name, NAME_CHARS_MAX), .known.join(", "))]
    UnknownServer { name: String, known: Vec<String> },
    #[error("{} names no tool of server {server}: {source}", quoted(.tool, NAME_CHARS_MAX))]
    NoTool { tool: String, server: ServerName, source: InvalidPattern },
    #[error("{} is no name of a server: {source}", quoted(.name, NAME_CHARS_MAX))]
    NoServer { name: String, source: InvalidName },
}

/// The scope of an execution: the upstream servers and tools that the execution may use, and whether it may use
/// `skills.save`. For each server, the scope contains all tools or only some.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The servers in the scope.
    servers: Vec<ServerName>,
    /// The servers of which only part of the tools is in the scope, each with lists of tool patterns. The token's
    /// grant and the request can each add one list. A tool is in the scope if it matches at least one pattern of
    /// each list.
    tools: BTreeMap<ServerName, Vec<Vec<Pattern>>>,
    /// Whether the execution may save skills.
    skills: bool,
    /// The servers whose existence may be revealed to the execution. They include servers that the request excluded.
    known: Vec<ServerName>,
    /// Whether the scope is restricted by the grant of the AI client's token.
    is_granted: bool,
    /// The argument `servers` of the request, as text for error messages; `None` if the request had none.
    written: Option<String>,
}

impl Scope {
    /// Creates the scope that contains all tools of these servers.
    pub fn all(servers: Vec<ServerName>) -> Self {
        let known = servers.clone();
        Self { servers, tools: BTreeMap::new(), skills: true, known, is_granted: false, written: None }
    }

    /// Restricts the scope to the names in `only`, which the token of an AI client grants. Ignores names of
    /// servers that are not configured, because the servers may be configured later.
    pub fn restricted_to_grant(self, only: &[String]) -> Self {
        let of =
            ScopeEntries::parse(only.iter().filter_map(|name| ScopeEntry::parse(&self.servers, name).ok()));
        let granted = self.intersected_with(of);
        Self { known: granted.servers.clone(), is_granted: true, ..granted }
    }

    /// Restricts the scope to the servers and tools that a request names: `NAME` for a server, `NAME.TOOL` or
    /// `NAME.PREFIX*` for some of its tools; also in the form `mcp__NAME__TOOL`.
    ///
    /// # Errors
    /// Fails if a name is invalid or the list is too long. The error describes the first invalid name.
    pub fn narrowed_to(self, names: &[String]) -> Result<Self, ScopeError> {
        if names.len() > NAMES_MAX {
            return Err(ScopeError::TooManyNames { count: names.len() });
        }
        let meant = names.iter().map(|name| ScopeEntry::parse(&self.servers, &dotted(&self.servers, name)));
        let of = ScopeEntries::parse(meant.collect::<Result<Vec<ScopeEntry>, ScopeError>>()?);
        let mut written: Vec<String> =
            names.iter().take(NAMED_MAX).map(|name| quoted(name, NAME_CHARS_MAX)).collect();
        if names.len() > NAMED_MAX {
            written.push("…".to_owned());
        }
        let written = Some(format!("[{}]", written.join(", ")));
        Ok(Self { written, ..self.intersected_with(of) })
    }

    /// Restricts the scope to what `of`, the parsed names of a request or token, also contains: servers, tools and
    /// `skills`.
    fn intersected_with(mut self, of: ScopeEntries) -> Self {
        self.servers.retain(|server| of.whole.contains(server) || of.tools.contains_key(server));
        for (server, patterns) in of.tools {
            self.tools.entry(server).or_default().push(patterns);
        }
        self.skills &= of.skills;
        self
    }

    /// Removes from the scope the servers that are not in `known`, for example because they are no longer
    /// configured.
    pub fn retain_configured(mut self, known: &[ServerName]) -> Self {
        self.servers.retain(|server| known.contains(server));
        self
    }

    pub fn servers(&self) -> &[ServerName] {
        &self.servers
    }

    /// Whether only part of this server's tools is in the scope.
    pub(super) fn is_partial(&self, server: &ServerName) -> bool {
        self.tools.contains_key(server)
    }

    /// Whether this tool, resource, prompt or list of this server is in the scope.
    pub(super) fn contains(&self, server: &ServerName, item: &CallTarget) -> bool {
        let has_part = |lists: &Vec<Vec<Pattern>>| {
            let is_in = |patterns: &Vec<Pattern>| patterns.iter().any(|pattern| pattern.permits(item));
            matches!(item, CallTarget::Tool(_)) && lists.iter().all(is_in)
        };
        if is_skills_server(server) {
            return self.skills;
        }
        self.servers.contains(server) && self.tools.get(server).is_none_or(has_part)
    }

    /// Whether the existence of this server may be revealed to the execution.
    pub(super) fn knows(&self, server: &ServerName) -> bool {
        self.known.contains(server)
    }

    /// Returns the servers that the request to run code left out, as JSON for
    /// [`Job::left_out`](lockhouse_protocol::Job::left_out).
    pub fn left_out(&self) -> Vec<u8> {
        let Some(failure) = self.written.as_ref().and_then(|_| self.out_of_scope_failure()) else {
            return Vec::new();
        };
        let left_out = self.known.iter().filter(|server| !self.servers.contains(server));
        let texts: Map<String, Value> =
            left_out.map(|server| (server.to_string(), failure.message.as_str().into())).collect();
        if texts.is_empty() { Vec::new() } else { Value::Object(texts).to_string().into_bytes() }
    }

    /// Returns the failure for a server that does not exist, or whose existence must not be revealed to the execution.
    pub(super) fn unknown_server_failure(&self, server: &str) -> Failure {
        let names: Vec<&str> = self.servers.iter().map(ServerName::as_str).collect();
        let near = most_similar_name(server, names.iter().copied());
        let near = near.map(|name| format!("did you mean {name}? ")).unwrap_or_default();
        let shown =
            if names.is_empty() { "none".to_owned() } else { names[..names.len().min(NAMED_MAX)].join(", ") };
        let server: String = server.chars().take(NAME_CHARS_MAX).collect();
        Failure::new(
            FailureCode::UnknownTool,
            format!("there is no MCP server '{server}'; {near}servers: {shown}"),
        )
    }

    /// Returns the failure for an item outside of the scope. The message says whether the request excluded the item
    /// or the token does not grant it. Returns `None` if neither a request nor a token restricts the scope.
    pub(super) fn out_of_scope_failure(&self) -> Option<Failure> {
        let message = match &self.written {
            Some(written) => format!("this execution was started with servers = {written}"),
            None if self.is_granted => "the token of this client does not grant it".to_owned(),
            None => return None,
        };
        Some(Failure::new(FailureCode::Denied, message))
    }
}

/// A parsed name in a request or a token's grant: `skills`, a server such as `github`, or some tools of a
/// server, such as `github.list_*`.
enum ScopeEntry {
    Skills,
    Whole(ServerName),
    Part(ServerName, Pattern),
}

impl ScopeEntry {
    /// Parses a name of a server or of its tools, or the name `skills`. Fails if the server is not in `known`.
    fn parse(known: &[ServerName], name: &str) -> Result<Self, ScopeError> {
        if name == SKILLS {
            return Ok(Self::Skills);
        }
        let (server, tool) = match name.split_once('.') {
            Some((server, tool)) => (server, Some(tool)),
            None => (name, None),
        };
        let server = known.iter().find(|known| known.as_str() == server).cloned().ok_or_else(|| {
            let known = known.iter().take(NAMED_MAX).map(ToString::to_string).collect();
            ScopeError::UnknownServer { name: server.to_owned(), known }
        })?;
        let Some(tool) = tool else { return Ok(Self::Whole(server)) };
        match Pattern::parse(PatternKind::Tools, tool) {
            Ok(pattern) => Ok(Self::Part(server, pattern)),
            Err(source) => Err(ScopeError::NoTool { tool: tool.to_owned(), server, source }),
        }
    }
}

/// Returns a name in the form `NAME` or `NAME.TOOL` if it is written as `mcp__NAME__TOOL`, `NAME__TOOL`, or with `_` for `-` in
/// the name of the server; an exact name has precedence. Returns any other name unchanged, and one that has several
/// meanings, so that it is refused.
fn dotted<'a>(known: &[ServerName], name: &'a str) -> Cow<'a, str> {
    let head = name.split_once('.').map_or(name, |(server, _)| server);
    if head == SKILLS || known.iter().any(|server| server.as_str() == head) {
        return name.into();
    }
    let plain = name.strip_prefix("mcp__").unwrap_or(name);
    let meaning = |(server, written): (&ServerName, String)| {
        let rest = plain.strip_prefix(&written)?;
        let tool = rest.strip_prefix("__").or_else(|| rest.strip_prefix('.'));
        match tool {
            Some(tool) if !tool.is_empty() => Some(format!("{server}.{tool}")),
            _ if rest.is_empty() => Some(server.to_string()),
            _ => None,
        }
    };
    let exact: BTreeSet<String> =
        known.iter().filter_map(|server| meaning((server, server.to_string()))).collect();
    let others = || known.iter().filter_map(|server| meaning((server, server.as_str().replace('-', "_"))));
    let mut meanings = if exact.is_empty() { others().collect() } else { exact };
    match (meanings.pop_first(), meanings.is_empty()) {
        (Some(only), true) => only.into(),
        _ => name.into(),
    }
}

/// Checks a name in the grant of a token, without regard to which servers are configured. Returns the error, or `None`
/// if the name is valid.
pub fn grant_error(name: &str) -> Option<ScopeError> {
    let server = name.split_once('.').map_or(name, |(server, _)| server);
    match ServerName::new(server) {
        Ok(server) => ScopeEntry::parse(&[server], name).err(),
        Err(source) => Some(ScopeError::NoServer { name: name.to_owned(), source }),
    }
}

/// The parsed names in a request or a token's grant, grouped by kind.
#[derive(Default)]
struct ScopeEntries {
    /// The servers that are named without a tool, so that all of their tools are included.
    whole: Vec<ServerName>,
    /// The servers that are named with patterns of tools. Only tools that match one of the patterns are included.
    tools: BTreeMap<ServerName, Vec<Pattern>>,
    skills: bool,
}

impl ScopeEntries {
    /// Groups parsed names by kind. Omits tools of servers that are also named as a whole.
    fn parse(names: impl IntoIterator<Item = ScopeEntry>) -> Self {
        let mut all = Self::default();
        for name in names {
            match name {
                ScopeEntry::Skills => all.skills = true,
                ScopeEntry::Whole(server) => all.whole.push(server),
                ScopeEntry::Part(server, pattern) => all.tools.entry(server).or_default().push(pattern),
            }
        }
        all.tools.retain(|server, _| !all.whole.contains(server));
        all
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::ToolName;

    use super::*;

    fn known() -> Vec<ServerName> {
        ["git", "files"].map(|name| ServerName::new(name).expect("a name")).to_vec()
    }

    fn scope(names: &[&str]) -> Result<Scope, String> {
        Scope::all(known()).narrowed_to(&owned(names)).map_err(|error| error.to_string())
    }

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_grant_is_narrowed_and_never_widened() {
        let has = |scope: &Scope, server: &str, tool: &str| {
            let tool = CallTarget::Tool(ToolName::new(tool).expect("a name"));
            scope.contains(&ServerName::new(server).expect("a name"), &tool)
        };
        let granted = |only: &[&str]| Scope::all(known()).restricted_to_grant(&owned(only));
        let rows: [(&[&str], &[&str], &str); 7] = [
            (&["git"], &["git"], "git.log git.list_all"),
            (&["git.l*", "gone", "gone.x"], &["git"], "git.log git.list_all"),
            (&["git.l*"], &["git.li*"], "git.list_all"),
            (&["git.log"], &["git.li*"], ""),
            (&["git.li*"], &["git.l*", "git.log"], "git.list_all"),
            (&["gone"], &[], ""),
            (&["git", "files"], &["files"], "files.read"),
        ];
        for (only, servers, expected) in rows {
            let scope = granted(only).narrowed_to(&owned(servers)).expect("names");
            let tools = [("git", "log"), ("git", "list_all"), ("files", "read")];
            let had = tools.iter().filter(|(server, tool)| has(&scope, server, tool));
            let had: Vec<String> = had.map(|(server, tool)| format!("{server}.{tool}")).collect();
            assert_eq!(had.join(" "), expected, "{only:?} {servers:?}");
        }
        assert_eq!(
            granted(&["git"]).narrowed_to(&owned(&["files"])).expect_err("not granted").to_string(),
            r#"there is no MCP server "files"; servers: git"#
        );
        assert!(!granted(&["git"]).skills && granted(&["skills"]).skills);
        assert!(!granted(&["git"]).narrowed_to(&owned(&["skills"])).expect("a name").skills);
        for (name, is_one) in
            [("git", true), ("a.b*", true), ("skills", true), ("a b", false), ("a.", false), ("", false)]
        {
            assert_eq!(grant_error(name).is_none(), is_one, "{name:?}");
        }
    }

    #[test]
    fn names_select_servers_or_some_of_their_tools() {
        let rows: [(&[&str], &str); 6] = [
            (&["git"], "git.log git.list_all"),
            (&["git", "files"], "git.log git.list_all files.read"),
            (&["git.log"], "git.log"),
            (&["git.li*", "files.read"], "git.list_all files.read"),
            (&["git.log", "git"], "git.log git.list_all"),
            (&[], ""),
        ];
        for (names, expected) in rows {
            let scope = scope(names).expect("names");
            let has = |(server, tool): &(&str, &str)| {
                let tool = CallTarget::Tool(ToolName::new(*tool).expect("a name"));
                scope.contains(&ServerName::new(*server).expect("a name"), &tool)
            };
            let tools = [("git", "log"), ("git", "list_all"), ("files", "read")];
            let had: Vec<String> = tools
                .iter()
                .filter(|tool| has(tool))
                .map(|(server, tool)| format!("{server}.{tool}"))
                .collect();
            assert_eq!(had.join(" "), expected, "{names:?}");
        }
    }

    #[test]
    fn names_are_found_in_the_forms_of_similar_products() {
        let known = ["git", "my-hub", "my_hub__x", "a-b", "a_b", "one", "one__two", "x-y_z", "x_y-z"]
            .map(|name| ServerName::new(name).expect("a name"));
        for (name, expected) in [
            ("git", "git"),
            ("git.log", "git.log"),
            ("mcp__git", "git"),
            ("mcp__git__log", "git.log"),
            ("git__log", "git.log"),
            ("git__li*", "git.li*"),
            ("mcp__git.log", "git.log"),
            ("my_hub.log", "my-hub.log"),
            ("mcp__my-hub__log", "my-hub.log"),
            ("mcp__my_hub__log", "my-hub.log"),
            ("mcp__my_hub__x__y", "my_hub__x.y"),
            ("a_b.c", "a_b.c"),
            ("mcp__a_b__c", "a_b.c"),
            ("mcp__one__two", "mcp__one__two"),
            ("mcp__one__add", "one.add"),
            ("mcp__x_y_z__a", "mcp__x_y_z__a"),
            ("git_log", "git_log"),
            ("git__", "git__"),
            ("other.log", "other.log"),
            ("skills", "skills"),
        ] {
            assert_eq!(dotted(&known, name), expected, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_reported() {
        assert_eq!(
            scope(&["gti"]).expect_err("unknown"),
            r#"there is no MCP server "gti"; servers: git, files"#
        );
        assert!(scope(&["git."]).expect_err("empty").starts_with(r#""" names no tool of server git: "#));
        assert!(scope(&["git"; 1_001]).expect_err("many").contains("may have 1000"));
        assert!(scope(&["git.*x"]).expect_err("a star").contains("only at the end"));
    }
}

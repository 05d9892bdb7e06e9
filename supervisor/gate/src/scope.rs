//! What one execution may know of: the servers and tools that it was started with. It can only be less than what the policy
//! permits.

use std::collections::BTreeMap;

use lockhouse_policies::{InvalidPattern, Item, Pattern, SKILLS, Subject, quoted};
use lockhouse_protocol::{Failure, FailureCode, InvalidName, ServerName};

use super::failures::failure;
use super::skills::is_skills;

/// Names that an execution can be started with.
const NAMES_MAX: usize = 1_000;
/// Names that a message repeats, and how much of each.
const NAMED_MAX: usize = 50;
const NAME_CHARS_MAX: usize = 80;

/// Why names do not say what may be known of.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    #[error("servers has {count} names, and may have {NAMES_MAX}")]
    TooManyNames { count: usize },
    #[error("there is no server {}; there are: {}", quoted(.name, NAME_CHARS_MAX), .known.join(", "))]
    UnknownServer { name: String, known: Vec<String> },
    #[error("{} names no tool of server {server}: {source}", quoted(.tool, NAME_CHARS_MAX))]
    NoTool { tool: String, server: ServerName, source: InvalidPattern },
    #[error("{} is no name of a server: {source}", quoted(.name, NAME_CHARS_MAX))]
    NoServer { name: String, source: InvalidName },
}

/// Servers, some of them with only some of their tools, and whether skills may be saved, for which the name `skills` stands.
#[derive(Clone, Debug)]
pub struct Scope {
    servers: Vec<ServerName>,
    /// Of a server that is here, those tools alone that every one of these lists has.
    tools: BTreeMap<ServerName, Vec<Vec<Pattern>>>,
    /// Whether skills may be saved.
    skills: bool,
    /// What may be known of; more than is in it, where a request left something out.
    known: Vec<ServerName>,
    /// Whether its client was granted but a part of what the policy permits.
    is_granted: bool,
    /// As it was asked for, when it was.
    written: Option<String>,
}

impl Scope {
    /// All of these.
    pub fn all(servers: Vec<ServerName>) -> Self {
        let known = servers.clone();
        Self { servers, tools: BTreeMap::new(), skills: true, known, is_granted: false, written: None }
    }

    /// Of this what a client was granted. What it names and is not there grants nothing: it may be there tomorrow.
    pub fn granted(self, only: &[String]) -> Self {
        let of = Names::of(only.iter().filter_map(|name| Named::of(&self.servers, name).ok()));
        let granted = self.narrowed(of);
        Self { known: granted.servers.clone(), is_granted: true, ..granted }
    }

    /// Of this what is named: a server as `NAME`, and of one some tools as `NAME.TOOL` or `NAME.BEGINNING*`.
    ///
    /// # Errors
    /// What is wrong with the first that means nothing.
    pub fn named(self, names: &[String]) -> Result<Self, ScopeError> {
        if names.len() > NAMES_MAX {
            return Err(ScopeError::TooManyNames { count: names.len() });
        }
        let meant = names.iter().map(|name| Named::of(&self.servers, name));
        let of = Names::of(meant.collect::<Result<Vec<Named>, ScopeError>>()?);
        let mut written: Vec<String> =
            names.iter().take(NAMED_MAX).map(|name| quoted(name, NAME_CHARS_MAX)).collect();
        if names.len() > NAMED_MAX {
            written.push("…".to_owned());
        }
        let written = Some(format!("[{}]", written.join(", ")));
        Ok(Self { written, ..self.narrowed(of) })
    }

    fn narrowed(mut self, of: Names) -> Self {
        self.servers.retain(|server| of.whole.contains(server) || of.tools.contains_key(server));
        for (server, patterns) in of.tools {
            self.tools.entry(server).or_default().push(patterns);
        }
        self.skills &= of.skills;
        self
    }

    /// As far as it is configured now.
    pub fn within(mut self, known: &[ServerName]) -> Self {
        self.servers.retain(|server| known.contains(server));
        self
    }

    pub fn servers(&self) -> &[ServerName] {
        &self.servers
    }

    /// Whether it has not the whole of a server.
    pub(super) fn has_part_of(&self, server: &ServerName) -> bool {
        self.tools.contains_key(server)
    }

    pub(super) fn has(&self, server: &ServerName, item: &Item) -> bool {
        let has_part = |lists: &Vec<Vec<Pattern>>| {
            let is_in = |patterns: &Vec<Pattern>| patterns.iter().any(|pattern| pattern.permits(item));
            matches!(item, Item::Tool(_)) && lists.iter().all(is_in)
        };
        if is_skills(server) {
            return self.skills;
        }
        self.servers.contains(server) && self.tools.get(server).is_none_or(has_part)
    }

    /// Whether it may be told of a server that it is left out.
    pub(super) fn may_know_of(&self, server: &ServerName) -> bool {
        self.known.contains(server)
    }

    /// Why something is not in it, when whoever started the execution left it out, or its client was not granted it.
    pub(super) fn left_out(&self) -> Option<Failure> {
        let message = match &self.written {
            Some(written) => format!("this execution was started with servers = {written}"),
            None if self.is_granted => "it is not among what this client was granted".to_owned(),
            None => return None,
        };
        Some(failure(FailureCode::Denied, message))
    }
}

/// What one name means.
enum Named {
    Skills,
    Whole(ServerName),
    Part(ServerName, Pattern),
}

impl Named {
    fn of(known: &[ServerName], name: &str) -> Result<Self, ScopeError> {
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
        match Pattern::parse(Subject::Tools, tool) {
            Ok(pattern) => Ok(Self::Part(server, pattern)),
            Err(source) => Err(ScopeError::NoTool { tool: tool.to_owned(), server, source }),
        }
    }
}

/// What is wrong with a name that a client is to be granted, whatever servers there are.
pub fn no_grant(name: &str) -> Option<ScopeError> {
    let server = name.split_once('.').map_or(name, |(server, _)| server);
    match ServerName::new(server) {
        Ok(server) => Named::of(&[server], name).err(),
        Err(source) => Some(ScopeError::NoServer { name: name.to_owned(), source }),
    }
}

/// What all names together mean.
#[derive(Default)]
struct Names {
    whole: Vec<ServerName>,
    tools: BTreeMap<ServerName, Vec<Pattern>>,
    skills: bool,
}

impl Names {
    fn of(names: impl IntoIterator<Item = Named>) -> Self {
        let mut all = Self::default();
        for name in names {
            match name {
                Named::Skills => all.skills = true,
                Named::Whole(server) => all.whole.push(server),
                Named::Part(server, pattern) => all.tools.entry(server).or_default().push(pattern),
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
        Scope::all(known()).named(&owned(names)).map_err(|error| error.to_string())
    }

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_granted_is_narrowed_and_never_widened() {
        let has = |scope: &Scope, server: &str, tool: &str| {
            let tool = Item::Tool(ToolName::new(tool).expect("a name"));
            scope.has(&ServerName::new(server).expect("a name"), &tool)
        };
        let granted = |only: &[&str]| Scope::all(known()).granted(&owned(only));
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
            let scope = granted(only).named(&owned(servers)).expect("names");
            let tools = [("git", "log"), ("git", "list_all"), ("files", "read")];
            let had = tools.iter().filter(|(server, tool)| has(&scope, server, tool));
            let had: Vec<String> = had.map(|(server, tool)| format!("{server}.{tool}")).collect();
            assert_eq!(had.join(" "), expected, "{only:?} {servers:?}");
        }
        assert_eq!(
            granted(&["git"]).named(&owned(&["files"])).expect_err("not granted").to_string(),
            r#"there is no server "files"; there are: git"#
        );
        assert!(!granted(&["git"]).skills && granted(&["skills"]).skills);
        assert!(!granted(&["git"]).named(&owned(&["skills"])).expect("a name").skills);
        for (name, is_one) in
            [("git", true), ("a.b*", true), ("skills", true), ("a b", false), ("a.", false), ("", false)]
        {
            assert_eq!(no_grant(name).is_none(), is_one, "{name:?}");
        }
    }

    #[test]
    fn names_mean_servers_or_some_of_their_tools() {
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
                let tool = Item::Tool(ToolName::new(*tool).expect("a name"));
                scope.has(&ServerName::new(*server).expect("a name"), &tool)
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
    fn a_name_that_means_nothing_is_told() {
        assert_eq!(
            scope(&["gti"]).expect_err("unknown"),
            r#"there is no server "gti"; there are: git, files"#
        );
        assert!(scope(&["git."]).expect_err("empty").starts_with(r#""" names no tool of server git: "#));
        assert!(scope(&["git"; 1_001]).expect_err("many").contains("may have 1000"));
        assert!(scope(&["git.*x"]).expect_err("a star").contains("only at the end"));
    }
}

//! What one execution may know of: the servers and tools that it was started with. It can only be less than what the policy
//! permits.

use std::collections::BTreeMap;

use lockhouse_policies::{Item, Pattern, SKILLS, Subject};
use lockhouse_protocol::{Failure, FailureCode, ServerName};

use super::destination::is_skills;
use super::failure;

/// Names that an execution can be started with.
const NAMES_MAX: usize = 1_000;
/// Names that a message repeats, and how much of each.
const NAMED_MAX: usize = 50;
const NAME_CHARS_MAX: usize = 80;

/// Servers, some of them with only some of their tools, and whether skills may be saved, for which the name `skills` stands.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    servers: Vec<ServerName>,
    /// Of a server that is here, these tools alone.
    tools: BTreeMap<ServerName, Vec<Pattern>>,
    /// Whether skills may be saved.
    skills: bool,
    /// As it was asked for, when it was.
    written: Option<String>,
}

impl Scope {
    /// All of these.
    pub(crate) fn all(servers: Vec<ServerName>) -> Self {
        Self { servers, tools: BTreeMap::new(), skills: true, written: None }
    }

    /// Of these the ones that are named: a server as `NAME`, and of one some tools as `NAME.TOOL` or `NAME.BEGINNING*`.
    ///
    /// # Errors
    /// What is wrong with the first that means nothing.
    pub(crate) fn named(known: &[ServerName], names: &[String]) -> Result<Self, String> {
        if names.len() > NAMES_MAX {
            return Err(format!("servers has {} names, and may have {NAMES_MAX}", names.len()));
        }
        let (mut whole, mut tools) = (Vec::new(), BTreeMap::<ServerName, Vec<Pattern>>::new());
        let mut skills = false;
        for name in names {
            if name == SKILLS {
                skills = true;
                continue;
            }
            let (server, tool) = match name.split_once('.') {
                Some((server, tool)) => (server, Some(tool)),
                None => (name.as_str(), None),
            };
            let server = known.iter().find(|known| known.as_str() == server).cloned().ok_or_else(|| {
                let there: Vec<&str> = known.iter().take(NAMED_MAX).map(ServerName::as_str).collect();
                format!("there is no server {:?}; there are: {}", beginning(server), there.join(", "))
            })?;
            match tool {
                None => whole.push(server),
                Some(tool) => {
                    let pattern = Pattern::parse(Subject::Tools, tool).map_err(|error| {
                        format!("{:?} names no tool of server {server}: {error}", beginning(tool))
                    })?;
                    tools.entry(server).or_default().push(pattern);
                }
            }
        }
        tools.retain(|server, _| !whole.contains(server));
        let servers = known.iter().filter(|name| whole.contains(name) || tools.contains_key(name));
        let mut written: Vec<String> =
            names.iter().take(NAMED_MAX).map(|name| format!("{:?}", beginning(name))).collect();
        if names.len() > NAMED_MAX {
            written.push("…".to_owned());
        }
        let written = Some(format!("[{}]", written.join(", ")));
        Ok(Self { servers: servers.cloned().collect(), tools, skills, written })
    }

    /// As far as it is configured now.
    pub(crate) fn within(mut self, known: &[ServerName]) -> Self {
        self.servers.retain(|server| known.contains(server));
        self
    }

    pub(crate) fn servers(&self) -> &[ServerName] {
        &self.servers
    }

    /// Whether it has not the whole of a server.
    pub(super) fn has_part_of(&self, server: &ServerName) -> bool {
        self.tools.contains_key(server)
    }

    pub(super) fn has(&self, server: &ServerName, item: &Item) -> bool {
        let has_part = |patterns: &Vec<Pattern>| {
            matches!(item, Item::Tool(_)) && patterns.iter().any(|pattern| pattern.permits(item))
        };
        if is_skills(server) {
            return self.skills;
        }
        self.servers.contains(server) && self.tools.get(server).is_none_or(has_part)
    }

    /// Why something is not in it, when whoever started the execution left it out.
    pub(super) fn left_out(&self) -> Option<Failure> {
        let written = self.written.as_ref()?;
        let message = format!("this execution was started with servers = {written}");
        Some(failure(FailureCode::Denied, message))
    }
}

fn beginning(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::ToolName;

    use super::*;

    fn known() -> Vec<ServerName> {
        ["git", "files"].map(|name| ServerName::new(name).expect("a name")).to_vec()
    }

    fn scope(names: &[&str]) -> Result<Scope, String> {
        Scope::named(&known(), &names.iter().map(ToString::to_string).collect::<Vec<_>>())
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

//! The servers of all files together, each under a name of its own.

use std::collections::BTreeMap;

use lockhouse_catalog::python_name;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::ServerDefinition;

/// The longest name that a server may have.
const NAME_BYTES_MAX: usize = 128;

/// Servers by name, of which code can tell each from the others.
#[derive(Debug, Default)]
pub(super) struct Roster {
    servers: BTreeMap<ServerName, ServerDefinition>,
    identifiers: BTreeMap<String, ServerName>,
}

/// Who has the name already.
#[derive(Debug)]
pub(super) struct Clash {
    pub(super) name: ServerName,
    pub(super) origin: String,
    /// Both are reached in the same way: nothing is lost.
    pub(super) is_same: bool,
}

impl Roster {
    /// The first one keeps its name, whatever else is configured: a policy speaks of servers by name, so a name must
    /// not pass from one to another because a third one went.
    pub(super) fn add(&mut self, name: ServerName, definition: ServerDefinition) -> Result<(), Clash> {
        let holder = self.identifiers.get(&python_name(name.as_str()));
        if let Some((holder, held)) = holder.and_then(|holder| self.servers.get_key_value(holder)) {
            let is_same = held.reach == definition.reach && *holder == name;
            return Err(Clash { name: holder.clone(), origin: held.origin.clone(), is_same });
        }
        self.identifiers.insert(python_name(name.as_str()), name.clone());
        self.servers.insert(name, definition);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.servers.len()
    }

    pub(super) fn into_servers(self) -> BTreeMap<ServerName, ServerDefinition> {
        self.servers
    }
}

/// The name with `_` in place of what no name may have, if anything of it is left.
pub(crate) fn usable(name: &str) -> Option<ServerName> {
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let mapped: String = name.chars().map(letter).take(NAME_BYTES_MAX).collect();
    ServerName::new(mapped).ok().filter(|name| name.as_str().chars().any(|c| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockhouse_upstream::{Reach, ServerCommand, ServerLimits};

    #[test]
    fn names_become_usable_or_are_refused() {
        for (name, mapped) in [
            ("my server.io", Some("my_server_io")),
            ("git-hub_2", Some("git-hub_2")),
            ("größe", Some("gr__e")),
            ("服务器", None),
            ("", None),
        ] {
            assert_eq!(usable(name).as_ref().map(ServerName::as_str), mapped, "{name}");
        }
        assert_eq!(usable(&"é1".repeat(500)).map(|name| name.as_str().len()), Some(NAME_BYTES_MAX));
    }

    #[test]
    fn two_servers_never_share_what_code_calls_them() {
        let definition = |program: &str| {
            let command = ServerCommand { program: program.into(), ..ServerCommand::default() };
            ServerDefinition::new(Reach::Stdio(command), ServerLimits::default(), format!("{program}.json:1"))
        };
        let name = |name: &str| ServerName::new(name).expect("a name");
        let mut roster = Roster::default();
        assert!(roster.add(name("a-b"), definition("x")).is_ok());
        let clash = roster.add(name("a_b"), definition("x")).expect_err("a clash");
        assert_eq!((clash.name.as_str(), clash.origin.as_str(), clash.is_same), ("a-b", "x.json:1", false));
        assert!(roster.add(name("a-b"), definition("x")).expect_err("a clash").is_same);
        assert!(!roster.add(name("a-b"), definition("y")).expect_err("a clash").is_same);
        assert!(roster.add(name("A-b"), definition("y")).is_ok());
        assert_eq!(roster.into_servers().len(), 2);
    }
}

//! The upstream servers of all configuration files, with unique names.

use std::collections::BTreeMap;

use lockhouse_catalog::python_name;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::ServerDefinition;

/// The maximum length of a server name in bytes. Longer names are cut off.
const NAME_BYTES_MAX: usize = 128;

/// Upstream servers by name. The Python identifiers derived from their names are unique, too.
#[derive(Debug, Default)]
pub(super) struct UniqueServers {
    servers: BTreeMap<ServerName, ServerDefinition>,
    identifiers: BTreeMap<String, ServerName>,
}

/// A server that was added before and has the same name or Python identifier as the server to add.
#[derive(Debug)]
pub(super) struct NameConflict {
    pub(super) name: ServerName,
    pub(super) origin: String,
    /// Whether both servers have the same name and endpoint, so that skipping one of them has no effect.
    pub(super) is_same: bool,
}

impl UniqueServers {
    /// Adds a server unless its name is taken. Of two servers with the same name, the one that was added first always
    /// keeps the name. Policies identify servers by name, so removing an unrelated server must not move a name from one
    /// server to another.
    pub(super) fn add(&mut self, name: ServerName, definition: ServerDefinition) -> Result<(), NameConflict> {
        let owner = self.identifiers.get(&python_name(name.as_str()));
        if let Some((owner, existing)) = owner.and_then(|owner| self.servers.get_key_value(owner)) {
            let is_same = existing.endpoint == definition.endpoint && *owner == name;
            return Err(NameConflict { name: owner.clone(), origin: existing.origin.clone(), is_same });
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

/// Replaces invalid characters in a server name by `_`, and cuts the name off at [`NAME_BYTES_MAX`]. Returns `None` if
/// no letter or digit remains.
pub fn normalize_server_name(name: &str) -> Option<ServerName> {
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let mapped: String = name.chars().map(letter).take(NAME_BYTES_MAX).collect();
    ServerName::new(mapped).ok().filter(|name| name.as_str().chars().any(|c| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockhouse_upstream::{Endpoint, ServerCommand, ServerLimits};

    #[test]
    fn names_become_usable_or_are_refused() {
        for (name, mapped) in [
            ("my server.io", Some("my_server_io")),
            ("git-hub_2", Some("git-hub_2")),
            ("größe", Some("gr__e")),
            ("服务器", None),
            ("", None),
        ] {
            assert_eq!(normalize_server_name(name).as_ref().map(ServerName::as_str), mapped, "{name}");
        }
        assert_eq!(
            normalize_server_name(&"é1".repeat(500)).map(|name| name.as_str().len()),
            Some(NAME_BYTES_MAX)
        );
    }

    #[test]
    fn two_servers_never_share_what_code_calls_them() {
        let definition = |program: &str| {
            let command = ServerCommand { program: program.into(), ..ServerCommand::default() };
            ServerDefinition::new(
                Endpoint::Stdio(command),
                ServerLimits::default(),
                format!("{program}.json:1"),
            )
        };
        let name = |name: &str| ServerName::new(name).expect("a name");
        let mut servers = UniqueServers::default();
        assert!(servers.add(name("a-b"), definition("x")).is_ok());
        let conflict = servers.add(name("a_b"), definition("x")).expect_err("a conflict");
        assert_eq!(
            (conflict.name.as_str(), conflict.origin.as_str(), conflict.is_same),
            ("a-b", "x.json:1", false)
        );
        assert!(servers.add(name("a-b"), definition("x")).expect_err("a conflict").is_same);
        assert!(!servers.add(name("a-b"), definition("y")).expect_err("a conflict").is_same);
        assert!(servers.add(name("A-b"), definition("y")).is_ok());
        assert_eq!(servers.into_servers().len(), 2);
    }
}

//! Exposed names: the names under which AI clients see the tools and prompts of upstream servers with `direct`
//! access.

use std::collections::{BTreeMap, HashMap};

use data_encoding::HEXLOWER;
use lockhouse_messages::BuiltinTools;
use lockhouse_protocol::ServerName;
use sha2::{Digest, Sha256};

/// Maximum characters of an exposed tool or prompt name. AI clients prepend `mcp__lockhouse__`, and some accept at
/// most 64 characters in total.
const NAME_CHARS_MAX: usize = 64 - "mcp__lockhouse__".len();
/// Number of characters of the digest that ends a shortened tool or prompt name.
const DIGEST_CHARS: usize = 8;

/// The names under which AI clients see tools or prompts, mapped in both directions.
#[derive(Debug, Default)]
pub(super) struct ExposedNames {
    targets: BTreeMap<String, (ServerName, String)>,
    exposed: HashMap<(ServerName, String), String>,
    /// Descriptions of the tools and prompts that AI clients cannot see, because their exposed name is the name of
    /// another tool or prompt, or of one of Lockhouse's own tools.
    pub(super) refused: Vec<String>,
}

impl ExposedNames {
    /// Assigns an exposed name to each tool or prompt in `targets`, which is given as server, prefix and original name.
    /// If several would get the same name, only the first of them gets it. Names that stay unchanged are assigned
    /// before names that are shortened or changed. The names of Lockhouse's own tools, with the prefix that `own` has, are
    /// never assigned.
    pub(super) fn new<'a>(
        targets: impl Iterator<Item = (&'a ServerName, &'a str, &'a str)>,
        own: &BuiltinTools,
    ) -> Self {
        let candidates = targets.map(|(server, prefix, name)| (server, name, exposed(server, prefix, name)));
        let (unchanged, clipped): (Vec<_>, Vec<_>) =
            candidates.partition(|(.., exposed)| !exposed.is_clipped);
        let mut names = Self::default();
        for (server, name, ExposedName { name: exposed, .. }) in unchanged.into_iter().chain(clipped) {
            let target = (server.clone(), name.to_owned());
            if own.reserves(&exposed) || names.targets.contains_key(&exposed) {
                names.refused.push(format!("{server}.{name} as {exposed}"));
                continue;
            }
            names.exposed.insert(target.clone(), exposed.clone());
            names.targets.insert(exposed, target);
        }
        names
    }

    /// Returns the upstream server and the original name of the tool or prompt with this exposed name. `None` if no
    /// tool or prompt has the name.
    pub(super) fn resolve(&self, exposed: &str) -> Option<&(ServerName, String)> {
        self.targets.get(exposed)
    }

    /// Returns the name under which AI clients see a tool or prompt of an upstream server. `None` if AI clients
    /// cannot see it.
    pub(super) fn exposed_name(&self, server: &ServerName, name: &str) -> Option<&str> {
        self.exposed.get(&(server.clone(), name.to_owned())).map(String::as_str)
    }
}

struct ExposedName {
    name: String,
    /// Whether the original name was shortened or changed. The exposed name then ends in a digest.
    is_clipped: bool,
}

fn exposed(server: &ServerName, prefix: &str, name: &str) -> ExposedName {
    let whole = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}__{name}") };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if whole.len() <= NAME_CHARS_MAX && whole.chars().all(is_plain) {
        return ExposedName { name: whole, is_clipped: false };
    }
    let plain = whole.chars().map(|c| if is_plain(c) { c } else { '_' });
    let beginning: String = plain.take(NAME_CHARS_MAX - DIGEST_CHARS - 1).collect();
    let digest = HEXLOWER.encode(&Sha256::digest(format!("{server}\n{name}")));
    ExposedName { name: format!("{beginning}_{}", &digest[..DIGEST_CHARS]), is_clipped: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(targets: &[(&str, &str, &str)]) -> ExposedNames {
        names_beside(&BuiltinTools::default(), targets)
    }

    fn names_beside(own: &BuiltinTools, targets: &[(&str, &str, &str)]) -> ExposedNames {
        let targets: Vec<_> = targets
            .iter()
            .map(|(server, prefix, name)| (ServerName::new(*server).expect("a name"), *prefix, *name))
            .collect();
        ExposedNames::new(targets.iter().map(|(server, prefix, name)| (server, *prefix, *name)), own)
    }

    #[test]
    fn exposed_names_fit_every_client_and_resolve_back() {
        let long = "x".repeat(70);
        let tools =
            [("git", "git", "log"), ("git", "git", "a.b/ü"), ("git", "git", &long), ("fs", "", "read")];
        let names = names(&tools);
        for (server, _, name) in tools {
            let server = ServerName::new(server).expect("a name");
            let exposed = names.exposed_name(&server, name).expect("a name of its own");
            assert!(exposed.len() <= NAME_CHARS_MAX, "{exposed}");
            assert!(
                exposed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
                "{exposed}"
            );
            assert_eq!(names.resolve(exposed), Some(&(server, name.to_owned())));
        }
        assert!(names.resolve("git__log").is_some() && names.resolve("read").is_some());
    }

    #[test]
    fn the_first_of_two_equal_names_wins_and_reserved_names_are_refused() {
        let names = names(&[("a", "", "read"), ("b", "", "read"), ("a", "", "run_code"), ("c", "a", "x")]);
        assert_eq!(names.resolve("read").map(|(server, _)| server.as_str()), Some("a"));
        assert_eq!(names.resolve("run_code"), None);
        assert_eq!(names.refused, ["b.read as read", "a.run_code as run_code"]);
    }

    #[test]
    fn the_reserved_names_are_those_with_the_prefix_of_the_own_tools() {
        let own = BuiltinTools { prefix: "lh_".into(), ..BuiltinTools::default() };
        let tools =
            [("a", "", "lh_run_code"), ("a", "", "run_code"), ("a", "", "lh_health"), ("a", "", "lh_")];
        let names = names_beside(&own, &tools);
        assert_eq!(names.resolve("run_code").map(|(_, tool)| tool.as_str()), Some("run_code"));
        assert_eq!(names.resolve("lh_").map(|(_, tool)| tool.as_str()), Some("lh_"));
        assert_eq!(names.refused, ["a.lh_run_code as lh_run_code", "a.lh_health as lh_health"]);
    }
}

//! Names of tools and prompts of servers that an AI client has directly.

use std::collections::{BTreeMap, HashMap};

use data_encoding::HEXLOWER;
use lockhouse_messages::TOOL_NAMES;
use lockhouse_protocol::ServerName;
use sha2::{Digest, Sha256};

/// Characters of a name. AI clients put `mcp__lockhouse__` before it, and some take no more than 64 in all.
const NAME_CHARS_MAX: usize = 64 - "mcp__lockhouse__".len();
/// Of the digest that ends a name which could not stay as it is.
const DIGEST_CHARS: usize = 8;

/// The names of things, in both directions.
#[derive(Debug, Default)]
pub(super) struct Names {
    things: BTreeMap<String, (ServerName, String)>,
    exposed: HashMap<(ServerName, String), String>,
    /// Things that have none, since their name is another's.
    pub(super) refused: Vec<String>,
}

impl Names {
    /// Gives each of these a name: server, what stands before its names, and what it calls the thing. The first one has it:
    /// names that stay as they are before those that do not, and either in the order in which they come.
    pub(super) fn of<'a>(things: impl Iterator<Item = (&'a ServerName, &'a str, &'a str)>) -> Self {
        let named = things.map(|(server, prefix, name)| (server, name, exposed(server, prefix, name)));
        let (as_they_are, clipped): (Vec<_>, Vec<_>) = named.partition(|(.., exposed)| !exposed.is_clipped);
        let mut names = Self::default();
        for (server, name, Exposed { name: exposed, .. }) in as_they_are.into_iter().chain(clipped) {
            let thing = (server.clone(), name.to_owned());
            if TOOL_NAMES.contains(&exposed.as_str()) || names.things.contains_key(&exposed) {
                names.refused.push(format!("{server}.{name} as {exposed}"));
                continue;
            }
            names.exposed.insert(thing.clone(), exposed.clone());
            names.things.insert(exposed, thing);
        }
        names
    }

    /// What a name stands for.
    pub(super) fn thing(&self, exposed: &str) -> Option<&(ServerName, String)> {
        self.things.get(exposed)
    }

    /// What a thing is called.
    pub(super) fn exposed(&self, server: &ServerName, name: &str) -> Option<&str> {
        self.exposed.get(&(server.clone(), name.to_owned())).map(String::as_str)
    }
}

struct Exposed {
    name: String,
    /// Whether it ends in a digest, since it had other characters or too many.
    is_clipped: bool,
}

fn exposed(server: &ServerName, prefix: &str, name: &str) -> Exposed {
    let whole = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}__{name}") };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if whole.len() <= NAME_CHARS_MAX && whole.chars().all(is_plain) {
        return Exposed { name: whole, is_clipped: false };
    }
    let plain = whole.chars().map(|c| if is_plain(c) { c } else { '_' });
    let beginning: String = plain.take(NAME_CHARS_MAX - DIGEST_CHARS - 1).collect();
    let digest = HEXLOWER.encode(&Sha256::digest(format!("{server}\n{name}")));
    Exposed { name: format!("{beginning}_{}", &digest[..DIGEST_CHARS]), is_clipped: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(things: &[(&str, &str, &str)]) -> Names {
        let things: Vec<_> = things
            .iter()
            .map(|(server, prefix, name)| (ServerName::new(*server).expect("a name"), *prefix, *name))
            .collect();
        Names::of(things.iter().map(|(server, prefix, name)| (server, *prefix, *name)))
    }

    #[test]
    fn names_fit_every_client_and_lead_back() {
        let long = "x".repeat(70);
        let given =
            [("git", "git", "log"), ("git", "git", "a.b/ü"), ("git", "git", &long), ("fs", "", "read")];
        let names = names(&given);
        for (server, _, name) in given {
            let server = ServerName::new(server).expect("a name");
            let exposed = names.exposed(&server, name).expect("a name of its own");
            assert!(exposed.len() <= NAME_CHARS_MAX, "{exposed}");
            assert!(
                exposed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
                "{exposed}"
            );
            assert_eq!(names.thing(exposed), Some(&(server, name.to_owned())));
        }
        assert!(names.thing("git__log").is_some() && names.thing("read").is_some());
    }

    #[test]
    fn of_two_with_one_name_the_first_has_it_and_none_takes_ours() {
        let names = names(&[("a", "", "read"), ("b", "", "read"), ("a", "", "run_code"), ("c", "a", "x")]);
        assert_eq!(names.thing("read").map(|(server, _)| server.as_str()), Some("a"));
        assert_eq!(names.thing("run_code"), None);
        assert_eq!(names.refused, ["b.read as read", "a.run_code as run_code"]);
    }
}

//! What each process with an engine says in its lock file about why it has this engine, if AI clients share engines.

use std::collections::BTreeSet;
use std::path::Path;

use lockhouse_base::files::read_bounded;
use lockhouse_config::SetupParts;
use serde::{Deserialize, Serialize};

use super::engine_socket::{lock_path, locked_setups};

/// Maximum size of a description in bytes. A setup has two parts of up to 200 bytes for each of up to 500 servers.
const DESCRIPTION_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum number of parts that a reason names.
const NAMED_PARTS_MAX: usize = 8;

/// A process with an engine.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EngineDescription {
    pub(super) pid: u32,
    pub(super) engine: DescribedEngine,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DescribedEngine {
    /// An engine that clients with this setup share.
    Shared(SetupParts),
    /// An engine of one client, and why it is not shared though the configuration says that clients share engines.
    Own(String),
}

impl EngineDescription {
    /// Describes this process.
    pub(super) fn of_this_process(engine: DescribedEngine) -> Self {
        Self { pid: std::process::id(), engine }
    }

    /// Reads the descriptions in a directory of sockets. Those of processes that were killed may be among them.
    pub(super) fn read_all(directory: &Path) -> Vec<Self> {
        let read = |setup: &String| {
            let text = read_bounded(&lock_path(directory, setup), DESCRIPTION_BYTES_MAX).ok()??;
            serde_json::from_str(&text).ok()
        };
        locked_setups(directory).iter().filter_map(read).collect()
    }
}

impl DescribedEngine {
    /// Returns in what the setup of this engine differs from that of another one. `None` if they are equal, or if one of
    /// them is not shared.
    pub(super) fn difference(&self, other: &EngineDescription) -> Option<String> {
        let (Self::Shared(parts), Self::Shared(others)) = (self, &other.engine) else { return None };
        let names: BTreeSet<&String> = parts.keys().chain(others.keys()).collect();
        let is_different = |name: &&String| parts.get(*name) != others.get(*name);
        let names: Vec<&str> = names.into_iter().filter(is_different).map(String::as_str).collect();
        let more = match names.len().saturating_sub(NAMED_PARTS_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = names.iter().take(NAMED_PARTS_MAX).copied().collect::<Vec<_>>().join(", ");
        let pid = other.pid;
        (!names.is_empty()).then(|| format!("its setup differs from that of process {pid} in {named}{more}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(pid: u32, parts: &[(&str, &str)]) -> EngineDescription {
        let parts = parts.iter().map(|(name, digest)| ((*name).to_owned(), (*digest).to_owned())).collect();
        EngineDescription { pid, engine: DescribedEngine::Shared(parts) }
    }

    #[test]
    fn the_parts_that_differ_are_named() {
        let one = shared(7, &[("the policy", "a"), ("the variable PATH", "b"), ("the variable TZ", "c")]);
        let other = shared(8, &[("the policy", "a"), ("the variable LANG", "d"), ("the variable PATH", "e")]);
        let own = EngineDescription { pid: 9, engine: DescribedEngine::Own("--own was given".into()) };
        let names: Vec<String> = (0..20).map(|number| format!("the server s{number:02}")).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
        let eight = names[..8].join(", ");
        for (from, to, expected) in [
            (&other, &one, Some("7 in the variable LANG, the variable PATH, the variable TZ".to_owned())),
            (&one, &shared(8, &[]), Some("8 in the policy, the variable PATH, the variable TZ".to_owned())),
            (&one, &one, None),
            (&one, &own, None),
            (&own, &one, None),
            (&shared(1, &[]), &shared(2, &many), Some(format!("2 in {eight} and 12 more"))),
        ] {
            let expected = expected.map(|rest| format!("its setup differs from that of process {rest}"));
            assert_eq!(from.engine.difference(to), expected);
        }
    }
}

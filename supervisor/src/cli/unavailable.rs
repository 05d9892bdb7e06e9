//! Servers that cannot be used, told once to a person: with what the server itself said, which code and model never get.

use lockhouse_upstream::{Connection, State, Upstreams};

use super::terminal::harmless;

/// One line for each.
pub(crate) fn unavailable(upstreams: &Upstreams) -> Vec<String> {
    let line = |(name, connection)| Some(format!("{name}: {}", harmless(&why_unavailable(connection)?)));
    upstreams.iter().filter_map(line).collect()
}

/// Why there is no connection, if there should be one.
pub(crate) fn why_unavailable(connection: &Connection) -> Option<String> {
    match connection.state() {
        State::Connected(_) | State::Idle => None,
        State::Connecting => Some("still connecting".into()),
        State::Failed(reason) => Some(connection.status().last_error.unwrap_or(reason)),
    }
}

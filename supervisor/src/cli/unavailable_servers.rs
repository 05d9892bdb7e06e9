//! Describes unavailable upstream servers for the user, with the server's own error text, which submitted code and the
//! model never receive.

use lockhouse_upstream::{Connection, ConnectionState, Upstreams};

use super::terminal::sanitize;

/// Returns one line for each unavailable upstream server, with the reason.
pub(crate) fn describe_unavailable(upstreams: &Upstreams) -> Vec<String> {
    let reasons =
        upstreams.iter().filter_map(|(name, connection)| Some((name, unavailable_reason(connection)?)));
    reasons.map(|(name, reason)| format!("{name}: {}", sanitize(&reason))).collect()
}

/// Returns why an upstream server is not connected. `None` if it is connected, or idle because it starts only when it
/// is needed.
pub(crate) fn unavailable_reason(connection: &Connection) -> Option<String> {
    match connection.state() {
        ConnectionState::Connected(_) | ConnectionState::Idle => None,
        ConnectionState::Connecting => Some("still connecting".into()),
        ConnectionState::Failed(reason) => Some(connection.status().last_error.unwrap_or(reason)),
    }
}

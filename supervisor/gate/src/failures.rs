//! Creates the failures (error values) that programs and AI clients receive instead of a result.

use lockhouse_policies::{CallTarget, visible_text};
use lockhouse_protocol::{Failure, FailureCode, ServerName};

/// Maximum number of characters in the message of a failure, which may quote an upstream server.
const MESSAGE_CHARS_MAX: usize = 4_000;

pub(super) fn invalid_arguments(message: String) -> Failure {
    Failure::new(FailureCode::InvalidArguments, message)
}

pub(super) fn file_system_too_slow() -> Failure {
    Failure::new(FailureCode::Timeout, "the file system did not answer in time".into())
}

/// Adds the names of the called server and item to a failure. If the call was for a list, adds only the name of the
/// server.
pub(super) fn with_names(failure: Failure, server: &ServerName, item: &CallTarget) -> Failure {
    let named = !matches!(item, CallTarget::List(_));
    Failure { server: Some(server.to_string()), tool: named.then(|| item.to_string()), ..failure }
}

/// Truncates the message of a failure to [`MESSAGE_CHARS_MAX`] characters and makes hidden characters visible.
pub(super) fn sanitize_message(message: &str) -> String {
    let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
    visible_text(&message).into_owned()
}

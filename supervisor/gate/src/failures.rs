//! Failures as callers read them.

use lockhouse_policies::{Item, visible_text};
use lockhouse_protocol::{Failure, FailureCode, ServerName};

/// Characters of a failure's message, which may repeat an upstream server's words.
const MESSAGE_CHARS_MAX: usize = 4_000;

pub(super) fn failure(code: FailureCode, message: String) -> Failure {
    Failure { code, message, server: None, tool: None, retryable: false }
}

pub(super) fn invalid(message: String) -> Failure {
    failure(FailureCode::InvalidArguments, message)
}

/// The failure with the names of what it is about.
pub(super) fn about(failure: Failure, server: &ServerName, item: &Item) -> Failure {
    let named = !matches!(item, Item::List(_));
    Failure { server: Some(server.to_string()), tool: named.then(|| item.to_string()), ..failure }
}

/// The beginning of a message, without anything that cannot be seen.
pub(super) fn cut(message: &str) -> String {
    let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
    visible_text(&message).into_owned()
}

//! Converts messages to parts and back, and decides what happens to messages that this build does not know.
//!
//! Builds of neighbouring versions work together. What a build does with what it does not know:
//!
//! | unknown | what happens |
//! |---|---|
//! | a member of a message | skipped |
//! | an event of a request | skipped |
//! | a message that belongs to no exchange | skipped |
//! | a request | answered with [`Response::Invalid`] |
//! | an input for a request | the request is answered with [`Response::Invalid`], and ends |
//! | a response | the request ends with [`Response::Unavailable`] |
//! | anything else | the connection ends |

use lockhouse_messages::{Bodies, ExchangeId, Response, ToEngine, ToFront};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::assembler::Parts;
use crate::frame::Violation;

/// Converts a message to its parts.
///
/// # Errors
/// The message has a value that JSON cannot represent.
pub fn to_parts<M: Bodies + Serialize>(mut message: M) -> serde_json::Result<Parts> {
    let bodies = message.take_bodies();
    let mut parts = Vec::with_capacity(1 + bodies.len());
    parts.push(serde_json::to_vec(&message)?);
    parts.extend(bodies);
    Ok(parts)
}

/// Maximum number of characters of what a reason says about a message that cannot be read. It quotes the peer.
const QUOTED_CHARS_MAX: usize = 300;

/// Why a message cannot be read.
#[derive(Debug)]
pub(crate) enum Unreadable {
    Json(serde_json::Error),
    /// A large value is missing, or has the wrong type.
    Bodies,
    TooLarge,
}

/// Converts parts to the message.
///
/// # Errors
/// The first part is not the JSON of a message, or the other parts are not its large values.
pub(crate) fn from_parts<M: Bodies + DeserializeOwned>(parts: Parts) -> Result<M, (Parts, Unreadable)> {
    let Some(head) = parts.first() else { return Err((parts, Unreadable::Bodies)) };
    match serde_json::from_slice::<M>(head) {
        Ok(mut message) => {
            let mut parts = parts.into_iter();
            let head = parts.next();
            let put = message.put_bodies(parts.collect());
            put.map_err(|_| (head.into_iter().collect(), Unreadable::Bodies))?;
            Ok(message)
        }
        Err(error) => Err((parts, Unreadable::Json(error))),
    }
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Json(error) => {
                let text = error.to_string();
                match text.char_indices().nth(QUOTED_CHARS_MAX) {
                    Some((end, _)) => write!(f, "{}…", &text[..end]),
                    None => f.write_str(&text),
                }
            }
            Self::TooLarge => f.write_str("it has too many values"),
            Self::Bodies => f.write_str("a large value of it is missing or has the wrong type"),
        }
    }
}

/// What a value of a JSON text needs in memory at most, in bytes.
const VALUE_BYTES: usize = 96;
/// Number of bytes that a message of a front may need in memory. More is refused before it is parsed.
/// Bound: engines and fronts.
const MEMORY_MAX: usize = 512 * 1024 * 1024;

/// Returns how many bytes a message needs in memory at most. Values of short JSON texts need more than their texts.
pub fn memory_of(parts: &Parts) -> usize {
    let bytes: usize = parts.iter().map(Vec::len).sum();
    let values = parts.first().map_or(0, |head| head.iter().filter(|byte| b",:[{".contains(byte)).count());
    bytes + values * VALUE_BYTES
}

/// A message from a front, as the engine handles it.
#[derive(Debug)]
pub enum FromFront {
    Message(ToEngine),
    /// The front sent a request, or an input for one, that this build cannot read. The request is answered with this
    /// response.
    Refused(ExchangeId, Response),
    /// This build does not know the message, and may skip it.
    Skipped,
}

/// Reads a message of a front.
///
/// # Errors
/// The message is none that any build sends.
pub fn read_from_front(parts: Parts) -> Result<FromFront, Violation> {
    let (parts, error) = match memory_of(&parts) {
        memory if memory > MEMORY_MAX => (parts, Unreadable::TooLarge),
        _ => match from_parts::<ToEngine>(parts) {
            Ok(message) => return Ok(FromFront::Message(message)),
            Err(unreadable) => unreadable,
        },
    };
    let refused = |id| {
        let reason = format!(
            "the request cannot be read, for example because it is nested too deeply, or is of a newer version: {error}"
        );
        FromFront::Refused(id, Response::Invalid(reason))
    };
    match outline(&parts)? {
        Outline::Request(id) | Outline::Input(id) => Ok(refused(id)),
        Outline::Event | Outline::Response(..) => Err(Violation("a message in the wrong direction")),
        Outline::Other => Ok(FromFront::Skipped),
    }
}

/// Reads a message of the engine. Returns `None` if this build does not know it and may skip it.
///
/// # Errors
/// The message is none that any build sends.
pub fn read_from_engine(parts: Parts) -> Result<Option<ToFront>, Violation> {
    let (parts, error) = match from_parts::<ToFront>(parts) {
        Ok(message) => return Ok(Some(message)),
        Err(unreadable) => unreadable,
    };
    match outline(&parts)? {
        // Only the request that the message answers fails, and not the connection.
        Outline::Response(id) => {
            let reason = format!(
                "the answer cannot be read, for example because it is nested too deeply, or is of a newer version: {error}"
            );
            Ok(Some(ToFront::Response(id, Response::Unavailable(reason))))
        }
        Outline::Event | Outline::Other => Ok(None),
        Outline::Request(..) | Outline::Input(..) => Err(Violation("a message in the wrong direction")),
    }
}

/// The outline of a message that cannot be read as a whole.
enum Outline {
    Request(ExchangeId),
    Input(ExchangeId),
    Event,
    Response(ExchangeId),
    /// A message that belongs to no exchange, or only informs about one.
    Other,
}

fn outline(parts: &Parts) -> Result<Outline, Violation> {
    /// The variants that belong to an exchange.
    #[derive(Deserialize)]
    enum Known {
        Request(ExchangeId, IgnoredAny, IgnoredAny),
        Input(ExchangeId, IgnoredAny),
        Event(IgnoredAny, IgnoredAny),
        Response(ExchangeId, IgnoredAny),
    }
    let head = parts.first().map(Vec::as_slice).unwrap_or_default();
    match serde_json::from_slice(head) {
        Ok(Known::Request(id, ..)) => return Ok(Outline::Request(id)),
        Ok(Known::Input(id, _)) => return Ok(Outline::Input(id)),
        Ok(Known::Event(..)) => return Ok(Outline::Event),
        Ok(Known::Response(id, _)) => return Ok(Outline::Response(id)),
        Err(_) => {}
    }
    // The name of another variant, alone or with its content.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Unknown {
        Name(#[expect(dead_code, reason = "only the form counts")] String),
        Variant(std::collections::BTreeMap<String, IgnoredAny>),
    }
    let is_message = match serde_json::from_slice(head) {
        Ok(Unknown::Name(_)) => true,
        Ok(Unknown::Variant(variant)) => {
            let known = ["Request", "Input", "Event", "Response"];
            variant.len() == 1 && variant.keys().all(|name| !known.contains(&name.as_str()))
        }
        Err(_) => false,
    };
    if is_message { Ok(Outline::Other) } else { Err(Violation("a message that is none")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: String) -> FromFront {
        read_from_front(vec![head.into_bytes()]).expect("no violation")
    }

    #[test]
    fn a_reason_quotes_little_of_the_message() {
        let long = "é".repeat(100_000);
        for message in [
            format!(r#"{{"Request":[1,"{long}","Health"]}}"#),
            format!(r#"{{"Request":[1,{{}},"{long}"]}}"#),
            format!(r#"{{"Input":[1,"{long}"]}}"#),
        ] {
            let FromFront::Refused(ExchangeId(1), Response::Invalid(reason)) = read(message) else {
                panic!("it is refused");
            };
            assert!((100..1_500).contains(&reason.len()), "{reason}");
        }
    }

    #[test]
    fn a_message_with_too_many_values_is_not_parsed() {
        let values = "[],".repeat(MEMORY_MAX / VALUE_BYTES / 2);
        let message =
            |values: &str| format!(r#"{{"Input":[1,{{"Answer":["q",{{"Ok":{{"Accept":[{values}0]}}}}]}}]}}"#);
        assert!(matches!(read(message("[],")), FromFront::Message(_)), "control");
        let refused = read(message(&values));
        assert!(
            matches!(&refused, FromFront::Refused(_, Response::Invalid(why)) if why.contains("too many values")),
            "{refused:?}"
        );
    }
}

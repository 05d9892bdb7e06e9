//! What a person is told about one call.

use lockhouse_policies::{PendingCall, SKILLS};
use serde::{Deserialize, Serialize};

use super::visible::{Excerpt, compact, in_lines, one_line, pretty};
use crate::catalog::Claims;

/// Characters of arguments on several lines, and on one line of a table.
const PRETTY_CHARS_MAX: usize = 4_000;
const COMPACT_CHARS_MAX: usize = 160;
/// Characters of a line of code.
const CODE_CHARS_MAX: usize = 200;
/// Characters of a URI or a prompt's name. A tool's name always fits.
const NAME_CHARS_MAX: usize = 300;

/// One call as it is shown. Everything in it is fit to be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) server: String,
    /// `tool`, or what else is asked for.
    pub(crate) kind: String,
    pub(crate) name: String,
    /// As JSON, as far as they are shown.
    pub(crate) arguments: String,
    /// Characters of the arguments that are not.
    pub(crate) arguments_left_out: usize,
    /// What the server says that the tool does to things.
    pub(crate) claims: String,
    /// The line of the code, as the worker gives it.
    pub(crate) line: Option<u32>,
    /// What is there in the code; nothing if the code has no such line.
    pub(crate) source: Option<String>,
    /// The line of the policy that leaves the call to a person.
    pub(crate) rule: String,
    /// Whether the AI client calls it itself, and no code does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) directly: bool,
}

impl Facts {
    /// Of one call among `together`.
    pub(super) fn of(
        pending: &PendingCall,
        line: Option<u32>,
        claims: Claims,
        code: &str,
        together: usize,
    ) -> Self {
        let Excerpt { text, left_out } = match together {
            // Code is read line by line.
            1 if pending.server().as_str() == SKILLS => in_lines(pending.arguments(), PRETTY_CHARS_MAX),
            1 => pretty(pending.arguments(), PRETTY_CHARS_MAX),
            _ => compact(pending.arguments(), COMPACT_CHARS_MAX),
        };
        // The number comes from the worker; what stands there we know ourselves.
        let source = line.and_then(|line| code.lines().nth(line.checked_sub(1)? as usize));
        Self {
            server: pending.server().to_string(),
            kind: pending.item().kind().to_owned(),
            name: one_line(pending.item().as_str(), NAME_CHARS_MAX),
            arguments: text,
            arguments_left_out: left_out,
            claims: in_words(claims).to_owned(),
            line,
            source: source.map(|source| one_line(source.trim(), CODE_CHARS_MAX)),
            rule: pending.rule().to_string(),
            directly: code.is_empty(),
        }
    }
}

/// Hints are the server's own word. A tool that only reads has nothing to destroy.
fn in_words(claims: Claims) -> &'static str {
    match claims {
        Claims { read_only: Some(true), .. } => "it only reads",
        Claims { destructive: Some(true), .. } => "it may destroy or overwrite things",
        Claims { destructive: Some(false), .. } => "it adds to things and destroys nothing",
        Claims { read_only: Some(false), .. } => "it changes things",
        Claims { .. } => "nothing is said",
    }
}

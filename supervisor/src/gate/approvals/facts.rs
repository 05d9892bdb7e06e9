//! What a person is told about one call.

use serde::{Deserialize, Serialize};

use super::arguments::{ROOM, ROOM_MIN, Shown};
use super::batch::Candidate;
use super::visible::one_line;
use crate::catalog::Claims;

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
    /// The names of the arguments in the order of the tool's schema, as JSON, as far as they are shown.
    #[serde(default)]
    pub(crate) argument_names: Vec<String>,
    /// Names that are not shown.
    #[serde(default)]
    pub(crate) argument_names_left_out: usize,
    /// In the same order: one JSON object if all of them fit, else a line for each as far as they are shown.
    pub(crate) arguments: String,
    /// Characters of the arguments that are not.
    pub(crate) arguments_left_out: usize,
    /// What the server says that the tool does to things.
    pub(crate) claims: String,
    /// The line of the code, as the program says: the number comes from its worker.
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
    pub(super) fn of(call: &Candidate, code: &str, together: usize) -> Self {
        let Candidate { pending, line, claims, order, .. } = call;
        let (line, room) = (*line, (ROOM / together.max(1)).max(ROOM_MIN));
        let Shown { names, names_left_out, text, left_out } =
            order.shown(pending.arguments(), room, together > 1);
        // The number comes from the worker; what stands there we know ourselves.
        let source = line.and_then(|line| code.lines().nth(line.checked_sub(1)? as usize));
        Self {
            server: pending.server().to_string(),
            kind: pending.item().kind().to_owned(),
            name: one_line(pending.item().as_str(), NAME_CHARS_MAX),
            argument_names: names,
            argument_names_left_out: names_left_out,
            arguments: text,
            arguments_left_out: left_out,
            claims: in_words(*claims).to_owned(),
            line,
            source: source.map(|source| one_line(source.trim(), CODE_CHARS_MAX)),
            rule: pending.rule().to_string(),
            directly: code.is_empty(),
        }
    }
}

impl Facts {
    /// Whether all of the arguments are shown.
    pub(super) fn is_complete(&self) -> bool {
        self.arguments_left_out == 0 && self.argument_names_left_out == 0
    }
}

/// Hints are the server's own word. A tool that only reads has nothing to destroy.
fn in_words(claims: Claims) -> &'static str {
    match claims {
        Claims { read_only: Some(true), .. } => "it only reads",
        Claims { destructive: Some(true), .. } => "it may destroy or overwrite things",
        Claims { destructive: Some(false), .. } => "it adds to things and destroys nothing",
        Claims { read_only: Some(false), .. } => "it changes things",
        Claims { .. } => "nothing of what it does to things",
    }
}

//! What a person is told about one call.

use lockhouse_catalog::Claims;
use serde::{Deserialize, Serialize};

use super::arguments::Shown;
use super::candidate::Candidate;
use super::room::{ROOM, ROOM_MIN};
use super::visible::{beginning, ends, one_line, quoted, width};

/// Characters of a line of code.
const CODE_CHARS_MAX: usize = 200;

/// One call as it is shown. Everything in it is fit to be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub server: String,
    /// `tool`, or what else is asked for.
    pub kind: String,
    pub name: String,
    /// Characters of the name that are not shown.
    #[serde(default)]
    pub name_left_out: usize,
    /// The names of the arguments in the order of the tool's schema, as JSON, as far as they are shown.
    #[serde(default)]
    pub argument_names: Vec<String>,
    /// Names that are not shown.
    #[serde(default)]
    pub argument_names_left_out: usize,
    /// In the same order: one JSON object if all of them fit, else a line for each as far as they are shown.
    pub arguments: String,
    /// Characters of the arguments that are not.
    pub arguments_left_out: usize,
    /// What the server says that the tool does to things.
    pub claims: String,
    /// The line of the code, as the program says: the number comes from its worker.
    pub line: Option<u32>,
    /// What is there in the code; nothing if the code has no such line.
    pub source: Option<String>,
    /// The line of the policy that leaves the call to a person.
    pub rule: String,
    /// Whether the AI client calls it itself, and no code does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub directly: bool,
}

impl Facts {
    /// Of one call among `together`.
    pub(super) fn of(call: &Candidate, code: &str, together: usize) -> Self {
        let Candidate { pending, line, claims, order, .. } = call;
        let (line, room) = (*line, (ROOM / together.max(1)).max(ROOM_MIN));
        let Shown { names, names_left_out, text, left_out, .. } =
            order.shown(pending.arguments(), room, together > 1);
        // The number comes from the worker; what stands there we know ourselves.
        let source = line.and_then(|line| code.lines().nth(line.checked_sub(1)? as usize));
        let (name, name_left_out) = name(pending.item().as_str());
        Self {
            server: pending.server().to_string(),
            kind: pending.item().kind().to_owned(),
            name,
            name_left_out,
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
    /// Whether the name and all of the arguments are shown.
    pub(super) fn is_complete(&self) -> bool {
        self.name_left_out == 0 && self.arguments_left_out == 0 && self.argument_names_left_out == 0
    }
}

/// A name, or its beginning and end in quotation marks and its length, and how many characters are not shown. Where it has
/// quotation marks of its own they are written as in JSON, so that no name looks like one that was cut.
fn name(name: &str) -> (String, usize) {
    if width(name, ROOM, quoted) <= ROOM {
        return (beginning(name, ROOM, quoted).0, 0);
    }
    ends(name, ROOM)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_whole_where_it_fits_and_else_its_beginning_end_and_length_are_shown() {
        let long = format!("file:///{}/end", "a".repeat(ROOM - 12));
        assert_eq!(name(&long), (long.clone(), 0));
        assert_eq!(name("x\u{200b}\"\t"), ("x\\u200b\\\"\\t".to_owned(), 0));
        let (shown, left_out) = name(&format!("file:///{}/end", "a".repeat(8_000)));
        let is_cut = shown.starts_with("\"file:///aaa")
            && shown.contains("aaa/end\" (8012 characters, the first 3000 ");
        assert!(is_cut && left_out == 4_012, "{left_out}: {shown}");
    }

    #[test]
    fn hidden_characters_take_the_room_that_they_are_shown_in() {
        let (shown, left_out) = name(&"\u{200b}".repeat(2_000));
        assert!(shown.chars().count() < ROOM + 200 && left_out > 1_000, "{left_out}: {shown}");
    }
}

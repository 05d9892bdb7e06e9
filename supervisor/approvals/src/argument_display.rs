//! Renders the arguments of a call for an approval prompt. Their order is that of the tool's schema, so that the
//! program that makes the call cannot choose it. Of a long value, the prompt shows the beginning, the end and the
//! length.
//!
//! Required arguments get space before optional ones, since a program can add any number of optional ones. Within each
//! of the two groups the space is divided equally: a long value cannot displace others, and long values get the space
//! that short ones leave. The same rules apply to nested members.

use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::argument_lines::{ArgumentLines, PART_FOR_OTHERS, count_within, fits, label_chars, name_label};
use super::argument_order::ArgumentOrder;
use super::prompt_limits::{ARGUMENT_CHARS_MAX, json_chars};
use super::untrusted_text::{compact_json, pretty_json};

/// The arguments of one call, rendered for an approval prompt.
#[derive(Debug)]
pub(super) struct ArgumentDisplay {
    /// The names of the arguments, quoted as JSON, in display order. Names that do not fit are left out.
    pub(super) names: Vec<String>,
    /// Number of argument names that are left out because they do not fit.
    pub(super) names_left_out: usize,
    /// The arguments as text: one JSON object if it fits, otherwise a line for each argument and each nested member.
    pub(super) text: String,
    /// Number of characters of argument values that are left out because they do not fit.
    pub(super) left_out: usize,
    /// Number of required arguments and required nested members whose names are not shown.
    required_left_out: usize,
}

impl ArgumentOrder {
    /// Describes the required arguments and members that do not fit into an approval prompt, even if the prompt
    /// shows no other call. Returns `None` if all of them fit. A member counts as required if its object is required
    /// and the schema of the object requires the member.
    pub(super) fn hidden_required_text(&self, arguments: &Map<String, Value>) -> Option<String> {
        let ArgumentDisplay { names, names_left_out, required_left_out, .. } =
            self.display(arguments, ARGUMENT_CHARS_MAX, false);
        if required_left_out == 0 {
            return None;
        }
        Some(match names.len() < self.required_count(arguments) {
            true => format!(
                "{names_left_out} of its {} arguments would be hidden, required ones among them",
                arguments.len()
            ),
            false => format!("{required_left_out} required members of its arguments would be hidden"),
        })
    }

    /// Returns the number of characters that are needed to show all argument names, and all required arguments in full.
    /// At most [`ARGUMENT_CHARS_MAX`].
    pub(super) fn chars_needed(&self, arguments: &Map<String, Value>) -> usize {
        let sorted = self.sorted(arguments);
        let all = json_chars(&InOrder(&sorted), ARGUMENT_CHARS_MAX);
        let names: usize = sorted.iter().map(|(name, _)| label_chars(&name_label(name))).sum();
        let required = json_chars(&InOrder(&sorted[..self.required_count(arguments)]), ARGUMENT_CHARS_MAX);
        let with_others = required + required / (PART_FOR_OTHERS - 1) + 1;
        all.min(names.saturating_add(with_others.max(names))).min(ARGUMENT_CHARS_MAX)
    }

    /// Renders the arguments of one call in at most about `room` characters. Arguments that fit are rendered as one
    /// JSON object: on one line if `in_table` is true (the prompt shows several calls), otherwise indented on several
    /// lines. If they do not fit, or if [`Self::code_first`] is true, each argument and nested member is on lines of
    /// its own, and long values are truncated.
    pub(super) fn display(
        &self,
        arguments: &Map<String, Value>,
        room: usize,
        in_table: bool,
    ) -> ArgumentDisplay {
        let sorted = self.sorted(arguments);
        let mut names: Vec<String> = sorted.iter().map(|(name, _)| name_label(name)).collect();
        let json = InOrder(&sorted);
        let json = if in_table { compact_json(&json, room) } else { pretty_json(&json, room) };
        if fits(&json, room) && !self.code_first {
            return ArgumentDisplay {
                names,
                names_left_out: 0,
                text: json.text,
                left_out: 0,
                required_left_out: 0,
            };
        }
        names.truncate(count_within(names.iter().cloned(), room));
        let names_left_out = sorted.len() - names.len();
        let first = if self.code_first { 1 } else { self.required_count(arguments) };
        let ArgumentLines { text, left_out, required_left_out, .. } =
            ArgumentLines::new(self, arguments, first, room);
        ArgumentDisplay {
            names,
            names_left_out,
            text: text.trim_end().to_owned(),
            left_out,
            required_left_out,
        }
    }
}

/// Serializes name-value pairs as a JSON object in the given order.
struct InOrder<'a>(&'a [(&'a str, &'a Value)]);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SKILL: [&str; 4] = ["code", "description", "tests", "name"];

    fn skill(arguments: &Value, room: usize) -> ArgumentDisplay {
        let order = ArgumentOrder {
            names: SKILL.map(str::to_owned).to_vec(),
            required: SKILL.len(),
            code_first: true,
            ..ArgumentOrder::default()
        };
        order.display(arguments.as_object().expect("an object"), room, false)
    }

    #[test]
    fn lines_of_code_come_first_and_cannot_be_taken_for_another_argument() {
        let arguments = json!({"tests": "t", "name": "x", "code": "a\n  \"name\": \"y\"\n\u{1b}[2J\n", "description": "d\re"});
        let ArgumentDisplay { text, left_out, .. } = skill(&arguments, ARGUMENT_CHARS_MAX);
        let expected = "\"code\" of 3 lines:\n        a\n          \"name\": \"y\"\n        \\u001b[2J\n\
                        \"description\": \"d\\re\"\n\"tests\": \"t\"\n\"name\": \"x\"";
        assert_eq!((text.as_str(), left_out), (expected, 0));
    }

    #[test]
    fn long_tests_do_not_displace_code() {
        let lines = |count: usize| "x = 1234567890\n".repeat(count);
        let (code, tests) = (lines(100), lines(100_000));
        let ArgumentDisplay { text, left_out, .. } =
            skill(&json!({"tests": tests, "description": "D.", "code": code}), ARGUMENT_CHARS_MAX);
        let shown = text.lines().take_while(|line| !line.contains("\"description\": \"D.\"")).count();
        assert_eq!(shown, 101, "{text}");
        assert!(left_out > 1_000_000 && text.contains("\"tests\" of 100000 lines:"), "{text}");
    }

    #[test]
    fn a_required_argument_is_complete_beside_many_long_optional_ones() {
        let order = ArgumentOrder { names: vec!["path".into()], required: 1, ..ArgumentOrder::default() };
        let shown = |path: String, room: usize| {
            let long = |number: usize| (format!("extra_{number:03}"), json!("x".repeat(4_000)));
            let mut arguments: Map<String, Value> = (0..100).map(long).collect();
            arguments.insert("path".into(), path.into());
            order.display(&arguments, room.min(order.chars_needed(&arguments)), false)
        };
        let path = format!("/etc/{}", "p".repeat(56));
        let ArgumentDisplay { text, .. } = shown(path.clone(), ARGUMENT_CHARS_MAX);
        assert!(text.starts_with(&format!("\"path\": \"{path}\"\n")), "{text}");
        let ArgumentDisplay { text, .. } = shown("p".repeat(9_000), ARGUMENT_CHARS_MAX);
        let (path, others) = text.split_once('\n').expect("more than one line");
        assert!(path.starts_with(&format!("\"path\": \"{}", "p".repeat(1_000))), "{path}");
        assert!(others.contains(": \"x"), "{others}");
    }

    #[test]
    fn the_needed_characters_hold_all_required_arguments() {
        let order = ArgumentOrder { names: vec!["path".into()], required: 1, ..ArgumentOrder::default() };
        let mut arguments: Map<String, Value> =
            (0..20).map(|number| (format!("extra_{number}"), json!("x".repeat(4_000)))).collect();
        for length in [10, 300, 1_000, 1_500] {
            let path = "p".repeat(length);
            arguments.insert("path".into(), path.clone().into());
            let needed = order.chars_needed(&arguments);
            let ArgumentDisplay { text, .. } = order.display(&arguments, needed, true);
            assert!(
                needed < ARGUMENT_CHARS_MAX && text.contains(&format!("\"{path}\"")),
                "{length}, {needed}: {text}"
            );
        }
    }

    #[test]
    fn nested_members_are_listed_beside_a_long_one() {
        let arguments = json!({"options": {"a": "x".repeat(9_000), "target": "/etc", "list": vec!["y"; 9_000]}, "on": true});
        let arguments = arguments.as_object().expect("an object");
        let ArgumentDisplay { text, names, .. } =
            ArgumentOrder::default().display(arguments, ARGUMENT_CHARS_MAX, false);
        assert_eq!(names, ["\"on\"", "\"options\""]);
        for words in [
            "\"on\": true\n",
            "\"options\": an object of 3 members:\n",
            "\n  \"target\": \"/etc\"",
            "\"list\": a list of 9000 elements:",
        ] {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
        assert!(text.chars().count() < ARGUMENT_CHARS_MAX * 2, "{text}");
    }
}

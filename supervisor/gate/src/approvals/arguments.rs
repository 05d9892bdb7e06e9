//! Arguments as a person reads them: in the order of the tool's schema, which the program does not choose, and each name with
//! the beginning, the end and the length of its value.
//!
//! Required arguments have room before the others, which a program may add at will. Among each of both the room is shared
//! equally: a long value takes none from the others, and what a short one leaves goes to the longer ones. All of this holds
//! for the members of a value too.

use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::order::Order;
use super::room::{ROOM, width};
use super::rows::{PART_FOR_OTHERS, Rows, count_within, label, label_cost, whole};
use super::visible::{compact, pretty};

/// What is shown of a call's arguments.
#[derive(Debug)]
pub(super) struct Shown {
    /// The names in their order, as JSON, as many as there is room for.
    pub(super) names: Vec<String>,
    pub(super) names_left_out: usize,
    /// One JSON object if all fits, else a line for each argument and its members.
    pub(super) text: String,
    /// Characters of values that are not shown.
    pub(super) left_out: usize,
    /// Required arguments, and required members of those, whose names are not shown.
    required_left_out: usize,
}

impl Order {
    /// What is required and has no room even if the call has all of it, in words. What is required of a required object is
    /// required too.
    pub(super) fn hidden(&self, arguments: &Map<String, Value>) -> Option<String> {
        let Shown { names, names_left_out, required_left_out, .. } = self.shown(arguments, ROOM, false);
        if required_left_out == 0 {
            return None;
        }
        Some(match names.len() < self.required_of(arguments) {
            true => format!(
                "{names_left_out} of its {} arguments would be hidden, required ones among them",
                arguments.len()
            ),
            false => format!("{required_left_out} required members of its arguments would be hidden"),
        })
    }

    /// The room that a call needs for all names and the whole of each required argument; [`ROOM`] at most.
    pub(super) fn room_needed(&self, arguments: &Map<String, Value>) -> usize {
        let sorted = self.sorted(arguments);
        let all = width(&InOrder(&sorted), ROOM);
        let names: usize = sorted.iter().map(|(name, _)| label_cost(&label(name))).sum();
        let required = width(&InOrder(&sorted[..self.required_of(arguments)]), ROOM);
        let with_others = required + required / (PART_FOR_OTHERS - 1) + 1;
        all.min(names.saturating_add(with_others.max(names))).min(ROOM)
    }

    /// The arguments of one call, in so much room. In a table an object that fits is one line.
    pub(super) fn shown(&self, arguments: &Map<String, Value>, room: usize, in_table: bool) -> Shown {
        let sorted = self.sorted(arguments);
        let mut names: Vec<String> = sorted.iter().map(|(name, _)| label(name)).collect();
        let json = InOrder(&sorted);
        let json = if in_table { compact(&json, room) } else { pretty(&json, room) };
        if whole(&json, room) && !self.code_first {
            return Shown { names, names_left_out: 0, text: json.text, left_out: 0, required_left_out: 0 };
        }
        names.truncate(count_within(names.iter().cloned(), room));
        let names_left_out = sorted.len() - names.len();
        let first = if self.code_first { 1 } else { self.required_of(arguments) };
        let Rows { text, left_out, required_left_out, .. } = Rows::of(self, arguments, first, room);
        Shown { names, names_left_out, text: text.trim_end().to_owned(), left_out, required_left_out }
    }
}

/// An object whose members are in this order.
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

    fn skill(arguments: &Value, room: usize) -> Shown {
        let order = Order {
            names: SKILL.map(str::to_owned).to_vec(),
            required: SKILL.len(),
            code_first: true,
            ..Order::default()
        };
        order.shown(arguments.as_object().expect("an object"), room, false)
    }

    #[test]
    fn lines_of_code_come_first_and_cannot_be_taken_for_another_argument() {
        let arguments = json!({"tests": "t", "name": "x", "code": "a\n  \"name\": \"y\"\n\u{1b}[2J\n", "description": "d\re"});
        let Shown { text, left_out, .. } = skill(&arguments, ROOM);
        let expected = "\"code\" of 3 lines:\n        a\n          \"name\": \"y\"\n        \\u001b[2J\n\
                        \"description\": \"d\\re\"\n\"tests\": \"t\"\n\"name\": \"x\"";
        assert_eq!((text.as_str(), left_out), (expected, 0));
    }

    #[test]
    fn long_tests_take_no_room_from_code() {
        let lines = |count: usize| "x = 1234567890\n".repeat(count);
        let (code, tests) = (lines(100), lines(100_000));
        let Shown { text, left_out, .. } =
            skill(&json!({"tests": tests, "description": "D.", "code": code}), ROOM);
        let shown = text.lines().take_while(|line| !line.contains("\"description\": \"D.\"")).count();
        assert_eq!(shown, 101, "{text}");
        assert!(left_out > 1_000_000 && text.contains("\"tests\" of 100000 lines:"), "{text}");
    }

    #[test]
    fn a_required_argument_stays_whole_beside_many_long_ones_and_leaves_a_part_for_them() {
        let order = Order { names: vec!["path".into()], required: 1, ..Order::default() };
        let shown = |path: String, room: usize| {
            let long = |number: usize| (format!("extra_{number:03}"), json!("x".repeat(4_000)));
            let mut arguments: Map<String, Value> = (0..100).map(long).collect();
            arguments.insert("path".into(), path.into());
            order.shown(&arguments, room.min(order.room_needed(&arguments)), false)
        };
        let path = format!("/etc/{}", "p".repeat(56));
        let Shown { text, .. } = shown(path.clone(), ROOM);
        assert!(text.starts_with(&format!("\"path\": \"{path}\"\n")), "{text}");
        let Shown { text, .. } = shown("p".repeat(9_000), ROOM);
        let (path, others) = text.split_once('\n').expect("more than one line");
        assert!(path.starts_with(&format!("\"path\": \"{}", "p".repeat(1_000))), "{path}");
        assert!(others.contains(": \"x"), "{others}");
    }

    #[test]
    fn the_room_that_a_call_needs_holds_the_whole_of_its_required_arguments() {
        let order = Order { names: vec!["path".into()], required: 1, ..Order::default() };
        let mut arguments: Map<String, Value> =
            (0..20).map(|number| (format!("extra_{number}"), json!("x".repeat(4_000)))).collect();
        for length in [10, 300, 1_000, 1_500] {
            let path = "p".repeat(length);
            arguments.insert("path".into(), path.clone().into());
            let needed = order.room_needed(&arguments);
            let Shown { text, .. } = order.shown(&arguments, needed, true);
            assert!(needed < ROOM && text.contains(&format!("\"{path}\"")), "{length}, {needed}: {text}");
        }
    }

    #[test]
    fn members_of_a_value_are_named_however_long_one_of_them_is() {
        let arguments = json!({"options": {"a": "x".repeat(9_000), "target": "/etc", "list": vec!["y"; 9_000]}, "on": true});
        let arguments = arguments.as_object().expect("an object");
        let Shown { text, names, .. } = Order::default().shown(arguments, ROOM, false);
        assert_eq!(names, ["\"on\"", "\"options\""]);
        for words in [
            "\"on\": true\n",
            "\"options\": an object of 3 members:\n",
            "\n  \"target\": \"/etc\"",
            "\"list\": a list of 9000 elements:",
        ] {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
        assert!(text.chars().count() < ROOM * 2, "{text}");
    }
}

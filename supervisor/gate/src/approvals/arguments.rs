//! Arguments as a person reads them: in the order of the tool's schema, which the program does not choose, and each name with
//! the beginning, the end and the length of its value.
//!
//! Required arguments have room before the others, which a program may add at will. Among each of both the room is shared
//! equally: a long value takes none from the others, and what a short one leaves goes to the longer ones. All of this holds
//! for the members of a value too.

use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::order::{Order, place};
use super::room::{DEPTH_MAX, NAME_OVERHEAD, ROOM, width};
use super::visible::{self, Excerpt, NEXT_LINE, beginning, compact, end, lines, pretty, quoted};

/// Characters of a name.
const NAME_CHARS_MAX: usize = 100;
/// Members of a value are shown one by one if it has so much room.
const ROOM_FOR_MEMBERS: usize = 80;
/// This part of the room is kept for the other arguments where the required ones could use all of it.
const PART_FOR_OTHERS: usize = 8;

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

/// One argument, or a member of a value.
struct Member<'a> {
    label: String,
    value: &'a Value,
    /// Of its own members.
    order: &'a Order,
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
        let mut rows = Rows { code_first: self.code_first, ..Rows::default() };
        rows.add(self.members(arguments), first, room, At { depth: 0, is_required: true });
        let Rows { text, left_out, required_left_out, .. } = rows;
        Shown { names, names_left_out, text: text.trim_end().to_owned(), left_out, required_left_out }
    }

    fn members<'a>(&'a self, members: &'a Map<String, Value>) -> Vec<Member<'a>> {
        let member = |(name, value)| Member { label: label(name), value, order: self.inner(name) };
        self.sorted(members).into_iter().map(member).collect()
    }

    fn elements<'a>(&'a self, elements: &'a [Value]) -> Vec<Member<'a>> {
        let element = |(index, value)| {
            let label = place(index);
            Member { order: self.inner(&label), value, label }
        };
        elements.iter().enumerate().map(element).collect()
    }
}

/// An object whose members are in this order.
struct InOrder<'a>(&'a [(&'a str, &'a Value)]);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// Whether all of a value is there, and has so much room.
fn whole(json: &Excerpt, room: usize) -> bool {
    json.left_out == 0 && json.width() <= room
}

fn label(name: &str) -> String {
    let (text, shown) = beginning(name, NAME_CHARS_MAX, quoted);
    let length = name.chars().count();
    if shown < length {
        format!("\"{text}…\" (a name of {length} characters)")
    } else {
        format!("\"{text}\"")
    }
}

fn label_cost(label: &str) -> usize {
    label.chars().count() + NAME_OVERHEAD
}

/// How many of these labels fit into half of a room. The other half is for values.
fn count_within(labels: impl Iterator<Item = String>, room: usize) -> usize {
    let mut left = room / 2;
    let fits = |label: String| {
        left = left.checked_sub(label_cost(&label))?;
        Some(())
    };
    labels.map_while(fits).count()
}

/// Shares of a room for these needs: each gets what it needs or an equal part, and what it leaves is for the others.
fn shares(needs: &[usize], room: usize) -> Vec<usize> {
    let mut by_need: Vec<usize> = (0..needs.len()).collect();
    by_need.sort_by_key(|index| needs[*index]);
    let (mut left, mut shares) = (room, vec![0; needs.len()]);
    for (given, index) in by_need.iter().enumerate() {
        shares[*index] = needs[*index].min(left / (needs.len() - given));
        left -= shares[*index];
    }
    shares
}

/// Lines of names and values.
#[derive(Default)]
struct Rows {
    text: String,
    left_out: usize,
    required_left_out: usize,
    code_first: bool,
}

/// Where members stand.
#[derive(Clone, Copy)]
struct At {
    depth: usize,
    /// Whether what they are in is required.
    is_required: bool,
}

impl Rows {
    /// Members of the arguments, or of a value among them, of which the `first` have room before the others.
    fn add(&mut self, members: Vec<Member<'_>>, first: usize, room: usize, at: At) {
        let shown = count_within(members.iter().map(|member| member.label.clone()), room);
        let (shown, hidden) = members.split_at(shown);
        let left = room - shown.iter().map(|member| label_cost(&member.label)).sum::<usize>();
        let excerpts: Vec<Excerpt> = shown.iter().map(|member| compact(member.value, left)).collect();
        let need = |(member, json): (&Member<'_>, &Excerpt)| match member.value {
            Value::String(text) if self.is_lines(text) => visible::width(text, left, lines),
            _ => json.width() + json.left_out,
        };
        let needs: Vec<usize> = shown.iter().zip(&excerpts).map(need).collect();
        let (required, others) = needs.split_at(first.min(needs.len()));
        let kept = others.iter().sum::<usize>().min(left / PART_FOR_OTHERS);
        let mut given = shares(required, left - kept);
        given.extend(shares(others, left - given.iter().sum::<usize>()));
        for (index, ((member, json), share)) in shown.iter().zip(excerpts).zip(given).enumerate() {
            let is_required = at.is_required && index < first;
            self.add_one(member, json, share, At { is_required, ..at });
        }
        if !hidden.is_empty() {
            self.left_out += hidden.iter().map(|member| compact(member.value, 0).left_out).sum::<usize>();
            self.line(at.depth, &format!("… and {} more that are not shown", hidden.len()));
        }
        if at.is_required {
            self.required_left_out += first.saturating_sub(shown.len());
        }
    }

    fn add_one(&mut self, Member { label, value, order }: &Member<'_>, json: Excerpt, room: usize, at: At) {
        let At { depth, is_required } = at;
        match value {
            Value::String(text) if self.is_lines(text) => self.add_lines(label, text, room, depth),
            _ if whole(&json, room) => self.line(depth, &format!("{label}: {}", json.text)),
            Value::String(text) => self.add_text(label, text, room, depth),
            Value::Object(members) if depth < DEPTH_MAX && room >= ROOM_FOR_MEMBERS => {
                self.line(depth, &format!("{label}: an object of {} members:", members.len()));
                let required = order.required_of(members);
                self.add(order.members(members), required, room, At { depth: depth + 1, is_required });
            }
            Value::Array(elements) if depth < DEPTH_MAX && room >= ROOM_FOR_MEMBERS => {
                self.line(depth, &format!("{label}: a list of {} elements:", elements.len()));
                let at = At { depth: depth + 1, is_required: false };
                self.add(order.elements(elements), 0, room, at);
            }
            _ => {
                if let Value::Object(members) = value
                    && is_required
                {
                    self.required_left_out += order.required_of(members);
                }
                let shown: String = json.text.chars().take(room).collect();
                let length = json.text.chars().count() + json.left_out;
                let left_out = length - shown.chars().count();
                self.left_out += left_out;
                self.line(
                    depth,
                    &format!(
                        "{label}: {shown}… ({length} characters of JSON, the first {} are shown)",
                        length - left_out
                    ),
                );
            }
        }
    }

    /// The beginning of a text and, where there is room, its end.
    fn add_text(&mut self, label: &str, text: &str, room: usize, depth: usize) {
        let (shown, left_out) = visible::ends(text, room);
        self.left_out += left_out;
        self.line(depth, &format!("{label}: {shown}"));
    }

    /// Whether a text is shown line by line.
    fn is_lines(&self, text: &str) -> bool {
        self.code_first && text.contains('\n')
    }

    /// A text as lines that stand further in than anything else.
    fn add_lines(&mut self, label: &str, text: &str, room: usize, depth: usize) {
        self.line(depth, &format!("{label} of {} lines:", text.lines().count()));
        let text = text.trim_end_matches('\n');
        let for_end = if visible::width(text, room, lines) > room { room / 4 } else { 0 };
        let (first, first_shown) = beginning(text, room - for_end, lines);
        let (last, last_shown) = end(text, for_end, lines);
        let left_out = text.chars().count().saturating_sub(first_shown + last_shown);
        self.text.push_str(&format!("{}{first}\n", &NEXT_LINE[1..]));
        if left_out > 0 {
            self.left_out += left_out;
            self.line(depth, &format!("  … {left_out} characters are not shown here …"));
            self.text.push_str(&format!("{}{last}\n", &NEXT_LINE[1..]));
        }
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.text.push_str(&format!("{:indent$}{text}\n", "", indent = depth * 2));
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
    fn shares_are_equal_but_for_what_others_leave() {
        assert_eq!(shares(&[10, 1_000, 2, 1_000], 100), [10, 44, 2, 44]);
        assert_eq!(shares(&[1, 2], 100), [1, 2]);
        assert_eq!(shares(&[50, 50], 0), [0, 0]);
        assert_eq!(shares(&[], 10), [0; 0]);
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

//! Renders arguments that do not fit as one JSON object: each argument is on a line of its own, with its nested members
//! indented below it.

use serde_json::{Map, Value};

use super::argument_order::{ArgumentOrder, index_label};
use super::prompt_limits::{DEPTH_MAX, NAME_OVERHEAD_CHARS};
use super::untrusted_text::{
    self, Excerpt, NEXT_LINE, compact_json, push_indented, push_json_escaped, truncated_end, truncated_start,
};

/// Maximum number of characters of an argument name that are shown.
const NAME_CHARS_MAX: usize = 100;
/// Minimum space, in characters, for rendering a nested value with a line for each member. In less space, its
/// truncated JSON is shown.
const ROOM_FOR_MEMBERS: usize = 80;
/// Divisor of the space for argument values in a prompt. Up to 1/8 of the space is reserved for optional arguments,
/// so that long required arguments cannot use all of it.
pub(super) const PART_FOR_OTHERS: usize = 8;

/// An argument of a call, or a member nested in an argument.
struct Member<'a> {
    /// The name of the argument or member as displayed, or the label of a list element such as `[3]`.
    label: String,
    value: &'a Value,
    /// The display order of the member's own nested members.
    order: &'a ArgumentOrder,
}

impl ArgumentOrder {
    /// Returns the members of an object, or the arguments of a call, in display order.
    fn members<'a>(&'a self, members: &'a Map<String, Value>) -> Vec<Member<'a>> {
        let member = |(name, value)| Member { label: name_label(name), value, order: self.nested(name) };
        self.sorted(members).into_iter().map(member).collect()
    }

    /// Returns the elements of a list.
    fn elements<'a>(&'a self, elements: &'a [Value]) -> Vec<Member<'a>> {
        let element = |(index, value)| {
            let label = index_label(index);
            Member { order: self.nested(&label), value, label }
        };
        elements.iter().enumerate().map(element).collect()
    }
}

/// Whether an excerpt contains the whole JSON text of a value and has at most `room` characters.
pub(super) fn fits(json: &Excerpt, room: usize) -> bool {
    json.left_out == 0 && json.rendered_chars() <= room
}

/// Returns the displayed form of a name: quoted as JSON, and truncated to [`NAME_CHARS_MAX`] characters.
pub(super) fn name_label(name: &str) -> String {
    let (text, shown) = truncated_start(name, NAME_CHARS_MAX, push_json_escaped);
    let length = name.chars().count();
    if shown < length {
        format!("\"{text}…\" (a name of {length} characters)")
    } else {
        format!("\"{text}\"")
    }
}

/// Returns the number of characters that are reserved in a prompt for a label, with its punctuation and indentation.
pub(super) fn label_chars(label: &str) -> usize {
    label.chars().count() + NAME_OVERHEAD_CHARS
}

/// Returns how many labels fit into half of `room` characters. The other half is for values.
pub(super) fn count_within(labels: impl Iterator<Item = String>, room: usize) -> usize {
    let mut left = room / 2;
    let fits = |label: String| {
        left = left.checked_sub(label_chars(&label))?;
        Some(())
    };
    labels.map_while(fits).count()
}

/// Divides `room` characters among values. `needs` has the length of each value in characters. A short value gets its
/// length; the other values get equal shares of what is left.
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

/// Maximum number of characters of the overview: the line of a prompt that lists the arguments, each with the
/// beginning of its value. The overview is short because some AI clients show only three lines of a question.
const OVERVIEW_CHARS: usize = 100;
/// Minimum number of characters of each value in the overview of the arguments. If the names leave less space, the
/// overview contains only names.
const OVERVIEW_VALUE_CHARS: usize = 8;

impl ArgumentOrder {
    /// Renders the first `count` arguments in display order on one line: each name, and the beginning of its value. The
    /// values share the space equally; long values get the space that short ones leave.
    pub(super) fn overview(&self, arguments: &Map<String, Value>, count: usize) -> String {
        let mut members = self.members(arguments);
        members.truncate(count);
        let names: usize = members.iter().map(|member| label_chars(&member.label)).sum();
        let room = OVERVIEW_CHARS.saturating_sub(names);
        if room < OVERVIEW_VALUE_CHARS * members.len() {
            return members.iter().map(|member| member.label.as_str()).collect::<Vec<_>>().join(", ");
        }
        let needs: Vec<usize> = members
            .iter()
            .map(|member| compact_json(member.value, room))
            .map(|json| json.rendered_chars() + usize::from(json.left_out > 0))
            .collect();
        let shown = members.iter().zip(shares(&needs, room)).map(|(member, share)| {
            let json = compact_json(member.value, share);
            let rest = if json.left_out > 0 { "…" } else { "" };
            format!("{}: {}{rest}", member.label, json.text)
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// Renders arguments as lines of text within a limited number of characters.
#[derive(Default)]
pub(super) struct ArgumentLines {
    pub(super) text: String,
    /// Number of characters of argument values that are not shown.
    pub(super) left_out: usize,
    /// Number of required arguments and required nested members whose names are not shown.
    pub(super) required_left_out: usize,
    /// Whether the first argument is code. Strings with several lines are then shown line by line.
    code_first: bool,
}

/// Describes where the members that are being rendered are nested in the arguments of a call.
#[derive(Clone, Copy)]
struct LinePosition {
    /// The nesting depth; 0 for the arguments.
    depth: usize,
    /// Whether the schema requires the object that contains these members, and also each object around that object.
    is_required: bool,
}

impl ArgumentLines {
    /// Renders all arguments in at most `room` characters. The first `first` arguments in display order (the required
    /// ones, or the code of a skill) get space before the others.
    pub(super) fn new(
        order: &ArgumentOrder,
        arguments: &Map<String, Value>,
        first: usize,
        room: usize,
    ) -> Self {
        let mut rows = Self { code_first: order.code_first, ..Self::default() };
        rows.add_members(order.members(arguments), first, room, LinePosition { depth: 0, is_required: true });
        rows
    }

    /// Adds lines for arguments or nested members, in at most `room` characters. The first `first` of them, which are
    /// the required ones, get space before the others. `at` is where they are nested in the arguments.
    fn add_members(&mut self, members: Vec<Member<'_>>, first: usize, room: usize, at: LinePosition) {
        let shown = count_within(members.iter().map(|member| member.label.clone()), room);
        let (shown, hidden) = members.split_at(shown);
        let left = room - shown.iter().map(|member| label_chars(&member.label)).sum::<usize>();
        let excerpts: Vec<Excerpt> = shown.iter().map(|member| compact_json(member.value, left)).collect();
        let need = |(member, json): (&Member<'_>, &Excerpt)| match member.value {
            Value::String(text) if self.is_multiline(text) => {
                untrusted_text::rendered_chars(text, left, push_indented)
            }
            _ => json.rendered_chars() + json.left_out,
        };
        let needs: Vec<usize> = shown.iter().zip(&excerpts).map(need).collect();
        let (required, others) = needs.split_at(first.min(needs.len()));
        let kept = others.iter().sum::<usize>().min(left / PART_FOR_OTHERS);
        let mut given = shares(required, left - kept);
        given.extend(shares(others, left - given.iter().sum::<usize>()));
        for (index, ((member, json), share)) in shown.iter().zip(excerpts).zip(given).enumerate() {
            let is_required = at.is_required && index < first;
            self.add_member(member, json, share, LinePosition { is_required, ..at });
        }
        if !hidden.is_empty() {
            self.left_out +=
                hidden.iter().map(|member| compact_json(member.value, 0).left_out).sum::<usize>();
            self.push_line(at.depth, &format!("… and {} more that are not shown", hidden.len()));
        }
        if at.is_required {
            self.required_left_out += first.saturating_sub(shown.len());
        }
    }

    /// Adds the lines of one argument or member, in at most about `room` characters. `json` is its JSON text, which may
    /// be truncated.
    fn add_member(
        &mut self,
        Member { label, value, order }: &Member<'_>,
        json: Excerpt,
        room: usize,
        at: LinePosition,
    ) {
        let LinePosition { depth, is_required } = at;
        match value {
            Value::String(text) if self.is_multiline(text) => self.add_multiline(label, text, room, depth),
            _ if fits(&json, room) => self.push_line(depth, &format!("{label}: {}", json.text)),
            Value::String(text) => self.add_text(label, text, room, depth),
            Value::Object(members) if depth < DEPTH_MAX && room >= ROOM_FOR_MEMBERS => {
                self.push_line(depth, &format!("{label}: an object of {} members:", members.len()));
                let required = order.required_count(members);
                self.add_members(
                    order.members(members),
                    required,
                    room,
                    LinePosition { depth: depth + 1, is_required },
                );
            }
            Value::Array(elements) if depth < DEPTH_MAX && room >= ROOM_FOR_MEMBERS => {
                self.push_line(depth, &format!("{label}: a list of {} elements:", elements.len()));
                let at = LinePosition { depth: depth + 1, is_required: false };
                self.add_members(order.elements(elements), 0, room, at);
            }
            _ => {
                if let Value::Object(members) = value
                    && is_required
                {
                    self.required_left_out += order.required_count(members);
                }
                let shown: String = json.text.chars().take(room).collect();
                let length = json.text.chars().count() + json.left_out;
                let left_out = length - shown.chars().count();
                self.left_out += left_out;
                self.push_line(
                    depth,
                    &format!(
                        "{label}: {shown}… ({length} characters of JSON, the first {} are shown)",
                        length - left_out
                    ),
                );
            }
        }
    }

    /// Adds the line of a string that does not fit: its beginning and, if there is space, its end.
    fn add_text(&mut self, label: &str, text: &str, room: usize, depth: usize) {
        let (shown, left_out) = untrusted_text::both_ends(text, room);
        self.left_out += left_out;
        self.push_line(depth, &format!("{label}: {shown}"));
    }

    /// Whether a string is code with several lines, which is rendered line by line.
    fn is_multiline(&self, text: &str) -> bool {
        self.code_first && text.contains('\n')
    }

    /// Adds a string with several lines. Its lines are indented deeper than those of arguments and members, so
    /// that the text cannot imitate an argument.
    fn add_multiline(&mut self, label: &str, text: &str, room: usize, depth: usize) {
        self.push_line(depth, &format!("{label} of {} lines:", text.lines().count()));
        let text = text.trim_end_matches('\n');
        let for_end =
            if untrusted_text::rendered_chars(text, room, push_indented) > room { room / 4 } else { 0 };
        let (first, first_shown) = truncated_start(text, room - for_end, push_indented);
        let (last, last_shown) = truncated_end(text, for_end, push_indented);
        let left_out = text.chars().count().saturating_sub(first_shown + last_shown);
        self.text.push_str(&format!("{}{first}\n", &NEXT_LINE[1..]));
        if left_out > 0 {
            self.left_out += left_out;
            self.push_line(depth, &format!("  … {left_out} characters are not shown here …"));
            self.text.push_str(&format!("{}{last}\n", &NEXT_LINE[1..]));
        }
    }

    /// Adds a line, indented by two spaces for each level of `depth`.
    fn push_line(&mut self, depth: usize, text: &str) {
        self.text.push_str(&format!("{:indent$}{text}\n", "", indent = depth * 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_shares_go_to_longer_values() {
        assert_eq!(shares(&[10, 1_000, 2, 1_000], 100), [10, 44, 2, 44]);
        assert_eq!(shares(&[1, 2], 100), [1, 2]);
        assert_eq!(shares(&[50, 50], 0), [0, 0]);
        assert_eq!(shares(&[], 10), [0; 0]);
    }
}

//! Arguments that do not fit as one JSON object, as lines: a name and its value each, and the members of a value below it.

use serde_json::{Map, Value};

use super::order::{Order, place};
use super::room::{DEPTH_MAX, NAME_OVERHEAD};
use super::visible::{self, Excerpt, NEXT_LINE, beginning, compact, end, lines, quoted};

/// Characters of a name.
const NAME_CHARS_MAX: usize = 100;
/// Members of a value are shown one by one if it has so much room.
const ROOM_FOR_MEMBERS: usize = 80;
/// This part of the room is kept for the other arguments where the required ones could use all of it.
pub(super) const PART_FOR_OTHERS: usize = 8;

/// One argument, or a member of a value.
struct Member<'a> {
    label: String,
    value: &'a Value,
    /// Of its own members.
    order: &'a Order,
}

impl Order {
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

/// Whether all of a value is there, and has so much room.
pub(super) fn whole(json: &Excerpt, room: usize) -> bool {
    json.left_out == 0 && json.width() <= room
}

pub(super) fn label(name: &str) -> String {
    let (text, shown) = beginning(name, NAME_CHARS_MAX, quoted);
    let length = name.chars().count();
    if shown < length {
        format!("\"{text}…\" (a name of {length} characters)")
    } else {
        format!("\"{text}\"")
    }
}

pub(super) fn label_cost(label: &str) -> usize {
    label.chars().count() + NAME_OVERHEAD
}

/// How many of these labels fit into half of a room. The other half is for values.
pub(super) fn count_within(labels: impl Iterator<Item = String>, room: usize) -> usize {
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
pub(super) struct Rows {
    pub(super) text: String,
    /// Characters of values that are not shown.
    pub(super) left_out: usize,
    pub(super) required_left_out: usize,
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
    /// Of arguments, of which the `first` have room before the others.
    pub(super) fn of(order: &Order, arguments: &Map<String, Value>, first: usize, room: usize) -> Self {
        let mut rows = Self { code_first: order.code_first, ..Self::default() };
        rows.add(order.members(arguments), first, room, At { depth: 0, is_required: true });
        rows
    }

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
    use super::*;

    #[test]
    fn shares_are_equal_but_for_what_others_leave() {
        assert_eq!(shares(&[10, 1_000, 2, 1_000], 100), [10, 44, 2, 44]);
        assert_eq!(shares(&[1, 2], 100), [1, 2]);
        assert_eq!(shares(&[50, 50], 0), [0, 0]);
        assert_eq!(shares(&[], 10), [0; 0]);
    }
}

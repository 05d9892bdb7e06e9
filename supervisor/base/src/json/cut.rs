//! A value over budget as JSON of the same kind: head and tail of what is too long, and how much lies between.

mod text;

use std::collections::VecDeque;
use std::ops::Range;

use serde_json::{Value, json};

use super::{Entry, JsonText, depth};
pub use text::{cut as cut_text, grouped};

/// Levels that are looked into; what is deeper is left out.
const LEVELS_MAX: usize = 60;
/// Nesting of a part that is shown whole.
const DEPTH_MAX: usize = 100;
/// Places that are told; further ones are counted.
const TOLD_MAX: usize = 8;
/// Characters of a member's name in such a place.
const NAME_CHARS_MAX: usize = 40;
/// A list of so few items keeps them all, each cut if need be. A longer one keeps whole items of its head and tail.
const FEW: usize = 8;
/// What each entry gets at least where all of them are kept.
const SHARE_MIN: usize = 32;
/// An item beyond this part of its list's room is cut.
const ITEMS_MIN: usize = 4;
/// What stands where nothing else fits. Nothing is ever shown in less.
const MARK: &str = "\"…\"";
/// Bytes of the longest mark between head and tail.
const MARK_BYTES_MAX: usize = 80;

/// What is shown of a value, and what is not.
#[derive(Debug)]
pub struct Cut {
    /// Valid JSON of at most as many bytes as were given, or [`MARK`].
    pub json: String,
    /// The places that were cut, outermost first: `{"path", "items" | "keys" | "characters", "shown"}`.
    pub places: Vec<Value>,
}

impl Cut {
    /// What is shown, or the text that it is where no tree is made of it.
    pub fn value(&self) -> Value {
        super::tree(self.json.as_bytes(), usize::MAX).unwrap_or_else(|_| self.json.as_str().into())
    }
}

/// The text, if the JSON is that of text.
pub fn text_of(json: &str) -> Option<String> {
    if json.trim_start().starts_with('"') { serde_json::from_str(json).ok() } else { None }
}

/// Cuts valid JSON to at most `limit` bytes, in time in proportion to its length. What fits stays as it is.
pub fn cut(json: &str, limit: usize) -> Cut {
    let text = JsonText::new(json, limit);
    let mut cutter =
        Cutter { text: &text, out: String::new(), path: Vec::new(), places: Vec::new(), untold: 0 };
    cutter.value(text.whole(), limit, 0);
    let Cutter { out, mut places, untold, .. } = cutter;
    if untold > 0 {
        places.push(json!({"more": untold}));
    }
    Cut { json: out, places }
}

struct Cutter<'t> {
    text: &'t JsonText<'t>,
    out: String,
    path: Vec<String>,
    places: Vec<Value>,
    untold: usize,
}

/// The entries of a container that could be shown.
struct Ends {
    count: usize,
    head: Vec<Entry>,
    /// Of those that are not in `head`.
    tail: VecDeque<Entry>,
}

impl Cutter<'_> {
    /// Writes a value in at most `room` bytes, or [`MARK`].
    fn value(&mut self, value: Range<usize>, room: usize, level: usize) {
        let text = self.text.part(value.clone());
        if text.len() <= room.max(MARK.len()) && depth(text) + level <= DEPTH_MAX {
            return self.out.push_str(text);
        }
        match text.as_bytes().first() {
            Some(b'"') => self.string(text, room),
            Some(b'[' | b'{') if level < LEVELS_MAX => self.container(value, room, level),
            // A number of many digits, or what is nested beyond all use.
            _ => self.nothing(text),
        }
    }

    fn nothing(&mut self, text: &str) {
        self.tell("characters", text.len(), 0);
        self.out.push_str(MARK);
    }

    fn string(&mut self, text: &str, room: usize) {
        let Ok(string) = serde_json::from_str::<String>(text) else { return self.nothing(text) };
        if string.chars().map(text::in_json).sum::<usize>() + 2 <= room {
            return self.out.push_str(&Value::from(string).to_string());
        }
        let count = string.chars().count();
        let (head, tail) = text::middle_out(&string, room.saturating_sub(2), text::in_json);
        self.tell("characters", count, head.chars().count() + tail.chars().count());
        let left_out = count - head.chars().count() - tail.chars().count();
        let shown = match tail.is_empty() {
            true => format!("{head}…"),
            false => format!("{head}{}{tail}", text::mark(left_out)),
        };
        self.out.push_str(&Value::from(shown).to_string());
    }

    fn container(&mut self, value: Range<usize>, room: usize, level: usize) {
        let is_list = self.text.part(value.clone()).starts_with('[');
        let (open, close) = if is_list { ('[', ']') } else { ('{', '}') };
        let room = room.saturating_sub(2);
        let ends = self.ends(value, room);
        let with = |most: usize| -> usize {
            ends.head.iter().map(|entry| around(entry) + entry.value.len().min(most)).sum()
        };
        let least = if is_list && ends.count > FEW { usize::MAX } else { SHARE_MIN };
        if ends.tail.is_empty() && with(least) <= room {
            let share = share(&ends.head, room);
            self.out.push(open);
            self.entries(&ends.head, 0, share, level);
            self.out.push(close);
            return;
        }
        let Some(room) = room.checked_sub(MARK_BYTES_MAX) else {
            self.tell(if is_list { "items" } else { "keys" }, ends.count, 0);
            return self.out.push_str(MARK);
        };
        let most = (room / ITEMS_MIN).max(MARK.len());
        let (head, tail) = ends.that_fit(room, most);
        let shown = head.len() + tail.len();
        self.tell(if is_list { "items" } else { "keys" }, ends.count, shown);
        self.out.push(open);
        self.entries(head, 0, most, level);
        if !head.is_empty() {
            self.out.push(',');
        }
        let left_out = grouped(ends.count - shown);
        if is_list {
            let (first, last) = (head.len(), (ends.count - tail.len()).saturating_sub(1));
            self.out.push_str(&format!("\"… {left_out} more items, [{first}] to [{last}] …\""));
        } else {
            // A member of that name must not be mistaken for this one.
            let taken =
                |name: &str| head.iter().chain(&tail).any(|entry| self.text.part(entry.key.clone()) == name);
            let name = (1..=4).map(|dots| format!("\"{}\"", "…".repeat(dots))).find(|name| !taken(name));
            self.out
                .push_str(&format!("{}:\"{left_out} more keys\"", name.unwrap_or_else(|| MARK.to_owned())));
        }
        if !tail.is_empty() {
            self.out.push(',');
        }
        let tail_from = ends.count - tail.len();
        self.entries(&tail, tail_from, most, level);
        self.out.push(close);
    }

    /// Writes entries with commas between them, each value in at most `most` bytes.
    fn entries(&mut self, entries: &[Entry], first: usize, most: usize, level: usize) {
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            let key = self.text.part(entry.key.clone());
            if key.is_empty() {
                self.path.push(format!("[{}]", first + index));
            } else {
                self.out.push_str(key);
                self.out.push(':');
                self.path.push(step(key));
            }
            self.value(entry.value.clone(), most, level + 1);
            self.path.pop();
        }
    }

    /// As many of the first and the last entries as could be shown in that room.
    fn ends(&self, value: Range<usize>, room: usize) -> Ends {
        // An item and its comma take two bytes.
        let most = room / 2 + 1;
        let mut ends = Ends { count: 0, head: Vec::new(), tail: VecDeque::new() };
        for entry in self.text.entries(value) {
            ends.count += 1;
            if ends.head.len() < most {
                ends.head.push(entry);
                continue;
            }
            if ends.tail.len() == most {
                ends.tail.pop_front();
            }
            ends.tail.push_back(entry);
        }
        ends
    }

    fn tell(&mut self, what: &str, of: usize, shown: usize) {
        if self.places.len() < TOLD_MAX {
            self.places.push(json!({"path": format!("${}", self.path.concat()), what: of, "shown": shown}));
        } else {
            self.untold += 1;
        }
    }
}

impl Ends {
    /// Of the entries, each with at most `most` bytes of its value, those that fit: two thirds of the room for the head.
    fn that_fit(&self, room: usize, most: usize) -> (&[Entry], Vec<Entry>) {
        let cost = |entry: &Entry| around(entry) + entry.value.len().min(most).max(1);
        let (mut used, mut first) = (0, 0);
        for entry in &self.head {
            if used + cost(entry) > room / 3 * 2 {
                break;
            }
            (used, first) = (used + cost(entry), first + 1);
        }
        let mut tail = VecDeque::new();
        for entry in self.head.iter().skip(first).chain(&self.tail).rev() {
            if used + cost(entry) > room {
                break;
            }
            used += cost(entry);
            tail.push_front(entry.clone());
        }
        (&self.head[..first], tail.into())
    }
}

/// What an entry takes besides its value: name, colon and comma.
fn around(entry: &Entry) -> usize {
    if entry.key.is_empty() { 1 } else { entry.key.len() + 2 }
}

/// The most that each value may take so that together they fit: short ones leave their part to the others.
fn share(entries: &[Entry], room: usize) -> usize {
    let mut room = room.saturating_sub(entries.iter().map(around).sum());
    let mut lengths: Vec<usize> = entries.iter().map(|entry| entry.value.len()).collect();
    lengths.sort_unstable();
    let mut left = lengths.len();
    for &length in &lengths {
        if length > room / left {
            return room / left;
        }
        (room, left) = (room - length, left - 1);
    }
    lengths.last().copied().unwrap_or_default()
}

/// A member in a path.
fn step(key: &str) -> String {
    let name = key.trim_matches('"');
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let short = |text: &str| match text.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    if is_plain { format!(".{}", short(name)) } else { format!("[\"{}\"]", short(name)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of this thread: the machine may be busy.
    fn cpu_time() -> std::time::Duration {
        let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
        nix::time::clock_gettime(clock).expect("a clock").into()
    }

    fn shown(value: &Value, limit: usize) -> (Value, Value) {
        let Cut { json, places } = cut(&value.to_string(), limit);
        assert!(json.len() <= limit.max(MARK.len()), "{} > {limit}: {json}", json.len());
        (serde_json::from_str(&json).expect("JSON"), places.into())
    }

    #[test]
    fn a_table_keeps_whole_rows_of_its_head_and_tail() {
        let rows: Vec<Value> = (0..10_000).map(|id| json!({"id": id, "name": format!("row {id}")})).collect();
        let (value, places) = shown(&json!({"rows": rows, "total": 10_000}), 300);
        assert_eq!(value["total"], 10_000);
        let list = value["rows"].as_array().expect("a list");
        insta::assert_snapshot!(value["rows"].to_string(), @r#"[{"id":0,"name":"row 0"},{"id":1,"name":"row 1"},{"id":2,"name":"row 2"},{"id":3,"name":"row 3"},{"id":4,"name":"row 4"},"… 9,993 more items, [5] to [9997] …",{"id":9998,"name":"row 9998"},{"id":9999,"name":"row 9999"}]"#);
        assert_eq!(list.len(), 8);
        assert_eq!(places, json!([{"path": "$.rows", "items": 10_000, "shown": 7}]));
    }

    #[test]
    fn an_object_keeps_its_keys_and_cuts_its_values() {
        let value = json!({"a": 1, "text": format!("start{}end", "-".repeat(5_000)), "list": vec![7; 5_000], "z": null});
        let (cut, places) = shown(&value, 400);
        let keys: Vec<&String> = cut.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["a", "text", "list", "z"]);
        let text = cut["text"].as_str().expect("text");
        assert!(
            text.starts_with("start---") && text.ends_with("---end") && text.contains(" more characters "),
            "{text}"
        );
        let list = cut["list"].as_array().expect("a list");
        assert!(list.len() > 10 && list[0] == 7 && list[list.len() - 1] == 7, "{list:?}");
        assert_eq!(places[0]["path"], "$.text");
        assert_eq!((&places[0]["characters"], &places[1]["items"]), (&json!(5_008), &json!(5_000)));
    }

    #[test]
    fn many_keys_are_cut_like_many_items() {
        let value: Value = Value::Object((0..5_000).map(|n| (format!("key{n}"), json!(n))).collect());
        let (cut, places) = shown(&value, 300);
        let keys: Vec<&String> = cut.as_object().expect("an object").keys().collect();
        assert!(keys[0] == "key0" && keys.last().is_some_and(|key| *key == "key4999"), "{keys:?}");
        assert_eq!(cut["…"], json!(format!("{} more keys", grouped(5_000 - (keys.len() - 1)))));
        assert_eq!(places, json!([{"path": "$", "keys": 5_000, "shown": keys.len() - 1}]));
        // A key that looks like the mark keeps its value.
        let mut members: Vec<(String, Value)> = vec![("…".into(), json!("mine"))];
        members.extend((0..5_000).map(|n| (format!("key{n}"), json!(n))));
        let (cut, _) = shown(&Value::Object(members.into_iter().collect()), 300);
        assert!(cut["…"] == "mine" && cut["……"].is_string(), "{cut}");
    }

    #[test]
    fn a_few_large_items_share_the_room() {
        let value = json!(["ok", "x".repeat(9_000), vec![1; 9_000]]);
        let (cut, places) = shown(&value, 1_000);
        assert_eq!(cut[0], "ok");
        assert!(cut[1].as_str().is_some_and(|text| text.len() > 400), "{cut}");
        assert!(cut[2].as_array().is_some_and(|list| list.len() > 100), "{cut}");
        assert_eq!(places.as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn hostile_values_take_time_in_proportion_to_their_length() {
        let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let nested = format!("{}{}{}", "[".repeat(50), "1,".repeat(500_000) + "1", "]".repeat(50));
        let values = [
            deep(1_000_000),
            deep(90),
            nested,
            format!("[{}1]", "[],".repeat(1_000_000)),
            format!("[{}1]", " ".repeat(2_000_000)),
            format!("{{{}\"z\":1}}", "\"a\":{},".repeat(300_000)),
            format!("{{\"{}\":1,\"b\":[1]}}", "k".repeat(2_000_000)),
            "9".repeat(2_000_000),
            format!("\"{}\"", "\\u0000".repeat(300_000)),
            format!("[{}]", vec![deep(100); 5_000].join(",")),
        ];
        for value in values {
            for limit in [5, 100, 1_000, 10_000] {
                let began = cpu_time();
                let Cut { json, places } = cut(&value, limit);
                let took = cpu_time() - began;
                assert!(json.len() <= limit, "{} > {limit}: {:.200}", json.len(), json);
                assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json:.200}");
                assert!(places.len() <= TOLD_MAX + 1);
                assert!(took < std::time::Duration::from_secs(5), "{took:?}: {value:.40}");
            }
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            ".{0,80}".prop_map(Value::from),
            "[a\"\n]{0,300}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 200, 30, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..30).prop_map(Value::from),
                prop::collection::hash_map(".{0,9}", inner, 0..12)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Whether a part that is shown agrees with what it is of: the same type, the same head and the same tail.
    fn agrees(cut: &Value, whole: &Value) -> bool {
        match (cut, whole) {
            (Value::String(mark), _) if mark == "…" => true,
            (Value::String(cut), Value::String(whole)) => match cut.split_once(" … ") {
                _ if cut == whole => true,
                Some((head, rest)) => {
                    let tail = rest.split_once(" … ").map_or("", |(_, tail)| tail);
                    whole.starts_with(head) && whole.ends_with(tail)
                }
                None => whole.starts_with(cut.trim_end_matches('…')),
            },
            (Value::Array(cut), Value::Array(whole)) => {
                let is_mark =
                    |item: &Value| item.as_str().is_some_and(|text| text.contains(" more items, ["));
                let at = cut.iter().position(is_mark).unwrap_or(cut.len());
                let tail = cut.iter().skip(at + 1).rev().zip(whole.iter().rev());
                (at < cut.len() || cut.len() == whole.len())
                    && cut[..at].iter().zip(whole).chain(tail).all(|(cut, whole)| agrees(cut, whole))
            }
            (Value::Object(cut), Value::Object(whole)) => cut.iter().all(|(key, value)| {
                whole.get(key).is_some_and(|of| agrees(value, of))
                    || key.starts_with('…') && value.as_str().is_some_and(|text| text.ends_with(" more keys"))
            }),
            _ => cut == whole,
        }
    }

    proptest! {
        #[test]
        fn what_is_cut_agrees_with_the_whole(value in any_json(), limit in 5_usize..3_000) {
            let whole = value.to_string();
            let (cut, places) = shown(&value, limit);
            prop_assert!(agrees(&cut, &value), "{cut}\n{value}");
            prop_assert_eq!(places == json!([]), cut == value);
            if whole.len() <= limit {
                prop_assert_eq!(cut, value);
            }
        }
    }
}

//! Truncates JSON along its structure: keeps the head and the tail of long lists, objects and strings, and inserts a
//! mark with the number of omitted parts. The result is valid JSON.

mod text;

use std::collections::VecDeque;
use std::ops::Range;

use serde_json::{Value, json};

use super::{Entry, JsonText, nesting_depth};
pub use text::{group_thousands, truncate as truncate_text};

/// Number of nesting levels at which lists and objects are truncated entry by entry. At deeper levels, a list or object
/// that does not fit is replaced by [`ELLIPSIS`].
/// Bound: values and answers.
const LEVELS_MAX: usize = 60;
/// Maximum nesting depth of the result. A value that is nested more deeply is truncated, even if its bytes fit.
const DEPTH_MAX: usize = 100;
/// Maximum number of omissions that are listed with the result. Further omissions are only counted.
/// Bound: values and answers.
const OMISSIONS_MAX: usize = 8;
/// Maximum number of characters of a member's name in the path of an omission.
const NAME_CHARS_MAX: usize = 40;
/// Maximum number of items of a small list. A small list that does not fit can keep all its items, each truncated if
/// necessary. A longer list that does not fit keeps only items of its head and its tail.
const SMALL_LIST_ITEMS_MAX: usize = 8;
/// A small list or an object that does not fit keeps all its entries if there is room for at least this number of bytes
/// of each value.
const ENTRY_BYTES_MIN: usize = 32;
/// In a list or object that does not keep all its entries, a value that takes more than 1/`ITEM_SHARE` of the bytes
/// available to the list or object is truncated.
const ITEM_SHARE: usize = 4;
/// The string that replaces a value that does not fit at all. No value is rendered in fewer bytes, except values that
/// are shorter themselves.
const ELLIPSIS: &str = "\"…\"";
/// Number of bytes that are reserved for the mark of an omission between the head and the tail of a list or object.
const MARK_BYTES_MAX: usize = 80;

/// A truncated JSON text, and the list of the omissions in it.
#[derive(Debug)]
pub struct TruncatedJson {
    /// Valid JSON. Its maximum length is the limit, or the length of [`ELLIPSIS`] if the limit is lower.
    pub json: String,
    /// The places at which something was omitted, each as a JSON object: `{"path", "items" | "keys" | "characters",
    /// "shown"}`. A list or object is listed before the places inside it. If there are more than [`OMISSIONS_MAX`]
    /// places, the last entry is `{"more": NUMBER}`.
    pub omissions: Vec<Value>,
}

impl TruncatedJson {
    /// Parses the truncated JSON. Returns the JSON text as a JSON string if it cannot be parsed.
    pub fn value(&self) -> Value {
        super::parse_bounded(self.json.as_bytes(), usize::MAX).unwrap_or_else(|_| self.json.as_str().into())
    }
}

/// Returns the decoded string if the JSON text is a string; `None` if it is another value.
pub fn decode_string(json: &str) -> Option<String> {
    if json.trim_start().starts_with('"') { serde_json::from_str(json).ok() } else { None }
}

/// Truncates valid JSON to at most `limit` bytes (or to the length of [`ELLIPSIS`], if the limit is lower), in linear
/// time. JSON that fits and is not nested too deeply is returned unchanged.
pub fn truncate(json: &str, limit: usize) -> TruncatedJson {
    let text = JsonText::new(json, limit);
    let mut truncator =
        Truncator { text: &text, out: String::new(), path: Vec::new(), omissions: Vec::new(), unlisted: 0 };
    truncator.value(text.whole(), limit, 0);
    let Truncator { out, mut omissions, unlisted, .. } = truncator;
    if unlisted > 0 {
        omissions.push(json!({"more": unlisted}));
    }
    TruncatedJson { json: out, omissions }
}

struct Truncator<'t> {
    text: &'t JsonText<'t>,
    out: String,
    path: Vec<String>,
    omissions: Vec<Value>,
    unlisted: usize,
}

/// The first and the last entries of a list or object, from which the entries to keep are selected.
struct EndEntries {
    count: usize,
    head: Vec<Entry>,
    /// The last entries of the list or object, without those in `head`.
    tail: VecDeque<Entry>,
}

impl Truncator<'_> {
    /// Writes the value at the byte range `value` in at most `room` bytes (or in the length of [`ELLIPSIS`], if the
    /// room is smaller). `level` is the nesting level of the value.
    fn value(&mut self, value: Range<usize>, room: usize, level: usize) {
        let text = self.text.part(value.clone());
        if text.len() <= room.max(ELLIPSIS.len()) && nesting_depth(text) + level <= DEPTH_MAX {
            return self.out.push_str(text);
        }
        match text.as_bytes().first() {
            Some(b'"') => self.string(text, room),
            Some(b'[' | b'{') if level < LEVELS_MAX => self.container(value, room, level),
            // A number of many digits, or a value that is nested too deeply.
            _ => self.write_mark(text),
        }
    }

    fn write_mark(&mut self, text: &str) {
        self.record_omission("characters", text.len(), 0);
        self.out.push_str(ELLIPSIS);
    }

    fn string(&mut self, text: &str, room: usize) {
        let Ok(string) = serde_json::from_str::<String>(text) else { return self.write_mark(text) };
        if string.chars().map(text::json_length).sum::<usize>() + 2 <= room {
            return self.out.push_str(&Value::from(string).to_string());
        }
        let count = string.chars().count();
        let (head, tail) = text::head_and_tail(&string, room.saturating_sub(2), text::json_length);
        self.record_omission("characters", count, head.chars().count() + tail.chars().count());
        let left_out = count - head.chars().count() - tail.chars().count();
        let shown = match tail.is_empty() {
            true => format!("{head}…"),
            false => format!("{head}{}{tail}", text::omission_mark(left_out)),
        };
        self.out.push_str(&Value::from(shown).to_string());
    }

    fn container(&mut self, value: Range<usize>, room: usize, level: usize) {
        let is_list = self.text.part(value.clone()).starts_with('[');
        let (open, close) = if is_list { ('[', ']') } else { ('{', '}') };
        let room = room.saturating_sub(2);
        let end_entries = self.end_entries(value, room);
        let with = |value_bytes_max: usize| -> usize {
            end_entries
                .head
                .iter()
                .map(|entry| entry_overhead(entry) + entry.value.len().min(value_bytes_max))
                .sum()
        };
        let least =
            if is_list && end_entries.count > SMALL_LIST_ITEMS_MAX { usize::MAX } else { ENTRY_BYTES_MIN };
        if end_entries.tail.is_empty() && with(least) <= room {
            let fair_share = fair_share(&end_entries.head, room);
            self.out.push(open);
            self.entries(&end_entries.head, 0, fair_share, level);
            self.out.push(close);
            return;
        }
        let Some(room) = room.checked_sub(MARK_BYTES_MAX) else {
            self.record_omission(if is_list { "items" } else { "keys" }, end_entries.count, 0);
            return self.out.push_str(ELLIPSIS);
        };
        let value_bytes_max = (room / ITEM_SHARE).max(ELLIPSIS.len());
        let (head, tail) = end_entries.fitting(room, value_bytes_max);
        let shown = head.len() + tail.len();
        self.record_omission(if is_list { "items" } else { "keys" }, end_entries.count, shown);
        self.out.push(open);
        self.entries(head, 0, value_bytes_max, level);
        if !head.is_empty() {
            self.out.push(',');
        }
        let left_out = group_thousands(end_entries.count - shown);
        if is_list {
            let (first, last) = (head.len(), (end_entries.count - tail.len()).saturating_sub(1));
            self.out.push_str(&format!("\"… {left_out} more items, [{first}] to [{last}] …\""));
        } else {
            // Choose a key for the mark that no shown member has.
            let taken =
                |name: &str| head.iter().chain(&tail).any(|entry| self.text.part(entry.key.clone()) == name);
            let name = (1..=4).map(|dots| format!("\"{}\"", "…".repeat(dots))).find(|name| !taken(name));
            self.out.push_str(&format!(
                "{}:\"{left_out} more keys\"",
                name.unwrap_or_else(|| ELLIPSIS.to_owned())
            ));
        }
        if !tail.is_empty() {
            self.out.push(',');
        }
        let tail_from = end_entries.count - tail.len();
        self.entries(&tail, tail_from, value_bytes_max, level);
        self.out.push(close);
    }

    /// Writes entries of a list or object with commas between them, each value in at most `value_bytes_max` bytes.
    /// `first` is the position of the first of them in its list, counted from 0; it is not used for an object. `level`
    /// is the nesting level of the list or object.
    fn entries(&mut self, entries: &[Entry], first: usize, value_bytes_max: usize, level: usize) {
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
                self.path.push(path_segment(key));
            }
            self.value(entry.value.clone(), value_bytes_max, level + 1);
            self.path.pop();
        }
    }

    /// Collects as many of the first and the last entries of a list or object as could fit into `room` bytes.
    fn end_entries(&self, value: Range<usize>, room: usize) -> EndEntries {
        // The smallest entry takes two bytes: one for the item, one for its comma.
        let value_bytes_max = room / 2 + 1;
        let mut end_entries = EndEntries { count: 0, head: Vec::new(), tail: VecDeque::new() };
        for entry in self.text.entries(value) {
            end_entries.count += 1;
            if end_entries.head.len() < value_bytes_max {
                end_entries.head.push(entry);
                continue;
            }
            if end_entries.tail.len() == value_bytes_max {
                end_entries.tail.pop_front();
            }
            end_entries.tail.push_back(entry);
        }
        end_entries
    }

    fn record_omission(&mut self, what: &str, of: usize, shown: usize) {
        if self.omissions.len() < OMISSIONS_MAX {
            self.omissions
                .push(json!({"path": format!("${}", self.path.concat()), what: of, "shown": shown}));
        } else {
            self.unlisted += 1;
        }
    }
}

impl EndEntries {
    /// Selects the first and the last entries that fit into `room` bytes if each value takes at most `value_bytes_max`
    /// bytes. The first entries get two thirds of the room.
    fn fitting(&self, room: usize, value_bytes_max: usize) -> (&[Entry], Vec<Entry>) {
        let cost = |entry: &Entry| entry_overhead(entry) + entry.value.len().min(value_bytes_max).max(1);
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

/// Returns the number of bytes that an entry takes besides its value: for its name, a colon and a comma.
fn entry_overhead(entry: &Entry) -> usize {
    if entry.key.is_empty() { 1 } else { entry.key.len() + 2 }
}

/// Returns the maximum number of bytes for each value with which all entries fit into `room` bytes. Short values leave
/// their unused share to longer ones.
fn fair_share(entries: &[Entry], room: usize) -> usize {
    let mut room = room.saturating_sub(entries.iter().map(entry_overhead).sum());
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

/// Returns the name of an object's member as one segment of a path, such as `.rows` or `["a b"]` in `$.rows["a b"]`.
fn path_segment(key: &str) -> String {
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

    /// Returns the CPU time that this thread has used. Unlike wall-clock time, it does not depend on the load of the
    /// machine.
    fn cpu_time() -> std::time::Duration {
        let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
        nix::time::clock_gettime(clock).expect("a clock").into()
    }

    fn shown(value: &Value, limit: usize) -> (Value, Value) {
        let TruncatedJson { json, omissions } = truncate(&value.to_string(), limit);
        assert!(json.len() <= limit.max(ELLIPSIS.len()), "{} > {limit}: {json}", json.len());
        (serde_json::from_str(&json).expect("JSON"), omissions.into())
    }

    #[test]
    fn a_table_keeps_whole_rows_of_its_head_and_tail() {
        let rows: Vec<Value> = (0..10_000).map(|id| json!({"id": id, "name": format!("row {id}")})).collect();
        let (value, omissions) = shown(&json!({"rows": rows, "total": 10_000}), 300);
        assert_eq!(value["total"], 10_000);
        let list = value["rows"].as_array().expect("a list");
        insta::assert_snapshot!(value["rows"].to_string(), @r#"[{"id":0,"name":"row 0"},{"id":1,"name":"row 1"},{"id":2,"name":"row 2"},{"id":3,"name":"row 3"},{"id":4,"name":"row 4"},"… 9,993 more items, [5] to [9997] …",{"id":9998,"name":"row 9998"},{"id":9999,"name":"row 9999"}]"#);
        assert_eq!(list.len(), 8);
        assert_eq!(omissions, json!([{"path": "$.rows", "items": 10_000, "shown": 7}]));
    }

    #[test]
    fn an_object_keeps_its_keys_and_cuts_its_values() {
        let value = json!({"a": 1, "text": format!("start{}end", "-".repeat(5_000)), "list": vec![7; 5_000], "z": null});
        let (shortened, omissions) = shown(&value, 400);
        let keys: Vec<&String> = shortened.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["a", "text", "list", "z"]);
        let text = shortened["text"].as_str().expect("text");
        assert!(
            text.starts_with("start---") && text.ends_with("---end") && text.contains(" more characters "),
            "{text}"
        );
        let list = shortened["list"].as_array().expect("a list");
        assert!(list.len() > 10 && list[0] == 7 && list[list.len() - 1] == 7, "{list:?}");
        assert_eq!(omissions[0]["path"], "$.text");
        assert_eq!((&omissions[0]["characters"], &omissions[1]["items"]), (&json!(5_008), &json!(5_000)));
    }

    #[test]
    fn many_keys_are_cut_like_many_items() {
        let value: Value = Value::Object((0..5_000).map(|n| (format!("key{n}"), json!(n))).collect());
        let (shortened, omissions) = shown(&value, 300);
        let keys: Vec<&String> = shortened.as_object().expect("an object").keys().collect();
        assert!(keys[0] == "key0" && keys.last().is_some_and(|key| *key == "key4999"), "{keys:?}");
        assert_eq!(shortened["…"], json!(format!("{} more keys", group_thousands(5_000 - (keys.len() - 1)))));
        assert_eq!(omissions, json!([{"path": "$", "keys": 5_000, "shown": keys.len() - 1}]));
        // A member whose name looks like the mark keeps its value.
        let mut members: Vec<(String, Value)> = vec![("…".into(), json!("mine"))];
        members.extend((0..5_000).map(|n| (format!("key{n}"), json!(n))));
        let (shortened, _) = shown(&Value::Object(members.into_iter().collect()), 300);
        assert!(shortened["…"] == "mine" && shortened["……"].is_string(), "{shortened}");
    }

    #[test]
    fn a_few_large_items_share_the_room() {
        let value = json!(["ok", "x".repeat(9_000), vec![1; 9_000]]);
        let (shortened, omissions) = shown(&value, 1_000);
        assert_eq!(shortened[0], "ok");
        assert!(shortened[1].as_str().is_some_and(|text| text.len() > 400), "{shortened}");
        assert!(shortened[2].as_array().is_some_and(|list| list.len() > 100), "{shortened}");
        assert_eq!(omissions.as_array().map(Vec::len), Some(2));
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
                let TruncatedJson { json, omissions } = truncate(&value, limit);
                let took = cpu_time() - began;
                assert!(json.len() <= limit, "{} > {limit}: {:.200}", json.len(), json);
                assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json:.200}");
                assert!(omissions.len() <= OMISSIONS_MAX + 1);
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

    /// Whether a truncated value agrees with the original value: same type, same head and same tail.
    fn agrees(shortened: &Value, whole: &Value) -> bool {
        match (shortened, whole) {
            (Value::String(mark), _) if mark == "…" => true,
            (Value::String(shortened), Value::String(whole)) => match shortened.split_once(" … ") {
                _ if shortened == whole => true,
                Some((head, rest)) => {
                    let tail = rest.split_once(" … ").map_or("", |(_, tail)| tail);
                    whole.starts_with(head) && whole.ends_with(tail)
                }
                None => whole.starts_with(shortened.trim_end_matches('…')),
            },
            (Value::Array(shortened), Value::Array(whole)) => {
                let is_mark =
                    |item: &Value| item.as_str().is_some_and(|text| text.contains(" more items, ["));
                let at = shortened.iter().position(is_mark).unwrap_or(shortened.len());
                let tail = shortened.iter().skip(at + 1).rev().zip(whole.iter().rev());
                (at < shortened.len() || shortened.len() == whole.len())
                    && shortened[..at]
                        .iter()
                        .zip(whole)
                        .chain(tail)
                        .all(|(shortened, whole)| agrees(shortened, whole))
            }
            (Value::Object(shortened), Value::Object(whole)) => shortened.iter().all(|(key, value)| {
                whole.get(key).is_some_and(|of| agrees(value, of))
                    || key.starts_with('…') && value.as_str().is_some_and(|text| text.ends_with(" more keys"))
            }),
            _ => shortened == whole,
        }
    }

    proptest! {
        #[test]
        fn what_is_cut_agrees_with_the_whole(value in any_json(), limit in 5_usize..3_000) {
            let whole = value.to_string();
            let (shortened, omissions) = shown(&value, limit);
            prop_assert!(agrees(&shortened, &value), "{shortened}\n{value}");
            prop_assert_eq!(omissions == json!([]), shortened == value);
            if whole.len() <= limit {
                prop_assert_eq!(shortened, value);
            }
        }
    }
}

//! The next part of a result. A list goes by items; everything else by characters: text, or the JSON that it is.

use lockhouse_base::json::{self, JsonText};
use serde_json::{Value, json};

/// There is nothing from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset} is beyond the end: the result has {of} {unit}")]
pub struct Beyond {
    offset: usize,
    of: usize,
    unit: &'static str,
}

/// What is shown from `offset` on, in at most `limit` bytes: `{"value", "offset", "next_offset"?, "of", "unit"}`.
pub fn part(json: &str, offset: usize, limit: usize) -> Result<Value, Beyond> {
    if json.trim_start().starts_with('[') {
        return items(json, offset, limit);
    }
    let text = json::text_of(json);
    characters(text.as_deref().unwrap_or(json), offset, limit)
}

fn items(json: &str, offset: usize, limit: usize) -> Result<Value, Beyond> {
    let text = JsonText::new(json, limit);
    let (mut of, mut used, mut full) = (0, 2, false);
    let (mut value, mut cut) = (Vec::new(), Vec::new());
    for entry in text.entries(text.whole()) {
        of += 1;
        if of <= offset || full {
            continue;
        }
        let bytes = entry.value.len() + 1;
        // An item that would not fit even alone is cut, so that there is always a next one.
        full = used + bytes > limit && !value.is_empty();
        if !full {
            let item = json::cut(text.part(entry.value), limit.saturating_sub(3));
            value.push(item.value());
            cut = item.places;
            used += bytes;
        }
    }
    let next = offset + value.len();
    told(Value::Array(value), offset, next, of, "items").map(|mut part| {
        if !cut.is_empty() {
            part["cut"] = cut.into();
        }
        part
    })
}

fn characters(text: &str, offset: usize, limit: usize) -> Result<Value, Beyond> {
    let of = text.chars().count();
    let start = text.char_indices().nth(offset).map_or(text.len(), |(start, _)| start);
    let rest = &text[start..];
    // At least one, whatever it takes.
    let end = rest.floor_char_boundary(limit).max(rest.chars().next().map_or(0, char::len_utf8));
    let shown = &rest[..end];
    told(shown.into(), offset, offset + shown.chars().count(), of, "characters")
}

fn told(value: Value, offset: usize, next: usize, of: usize, unit: &'static str) -> Result<Value, Beyond> {
    if offset > 0 && offset >= of {
        return Err(Beyond { offset, of, unit });
    }
    let mut part = json!({"value": value, "offset": offset, "of": of, "unit": unit});
    if next < of {
        part["next_offset"] = next.into();
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All parts, one after the other.
    fn parts(json: &str, limit: usize) -> Vec<Value> {
        let (mut parts, mut offset) = (Vec::new(), Some(0));
        while let Some(from) = offset {
            let found = part(json, from as usize, limit).expect("a part");
            offset = found["next_offset"].as_u64();
            parts.push(found["value"].clone());
        }
        parts
    }

    #[test]
    fn a_list_goes_by_items() {
        let list = json!(["aaaa", "bbbb", "cccc", "dddd", "eeee"]).to_string();
        assert_eq!(
            part(&list, 1, 18),
            Ok(json!({"value": ["bbbb", "cccc"], "offset": 1, "of": 5, "unit": "items", "next_offset": 3}))
        );
        assert_eq!(
            part(&list, 3, 100),
            Ok(json!({"value": ["dddd", "eeee"], "offset": 3, "of": 5, "unit": "items"}))
        );
    }

    #[test]
    fn an_item_that_is_too_long_is_cut() {
        let list = json!([1, "x".repeat(1_000), 2]).to_string();
        let found = parts(&list, 200);
        assert_eq!(found.len(), 3);
        assert!(found[1].to_string().len() <= 200, "{}", found[1]);
        assert_eq!(part(&list, 1, 200).expect("a part")["cut"][0]["characters"], 1_000);
    }

    #[test]
    fn offsets_beyond_the_end_are_told() {
        for (json, of) in [("[1,2]", "2 items"), ("\"ž\"", "1 characters"), ("{}", "2 characters")] {
            for offset in [2, 3, usize::MAX] {
                let told = part(json, offset, 100).expect_err("nothing").to_string();
                assert_eq!(told, format!("offset {offset} is beyond the end: the result has {of}"));
            }
        }
        assert_eq!(part("[]", 0, 100).map(|part| part["of"].clone()), Ok(json!(0)));
    }

    proptest! {
        #[test]
        fn parts_together_are_the_whole(items in prop::collection::vec("[ -~ž]{0,20}", 0..40), limit in 80_usize..300) {
            let list = json!(items).to_string();
            let all: Vec<Value> = parts(&list, limit).iter().flat_map(|part| part.as_array().cloned().unwrap_or_default()).collect();
            prop_assert_eq!(Value::from(all).to_string(), list);
            let text = items.concat();
            let all: String = parts(&json!(text).to_string(), limit).iter().filter_map(Value::as_str).collect();
            prop_assert_eq!(all, text);
            let object = json!({"items": items}).to_string();
            let all: String = parts(&object, limit).iter().filter_map(Value::as_str).collect();
            prop_assert_eq!(all, object);
        }
    }
}

//! Divides a stored result into pages. A list is divided by items, and a string by its characters. Any other
//! result is divided by the characters of its JSON text.

use lockhouse_base::json::{self, JsonText};
use serde_json::{Value, json};

/// The error for a page offset beyond the end of the stored result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset} is beyond the end: the result has {total} {unit}")]
pub struct OffsetError {
    offset: usize,
    total: usize,
    /// The unit of `offset` and `total`: `items` or `characters`.
    unit: &'static str,
}

/// Returns the page of a stored result that starts at `offset`, counted in items or characters. The value of the
/// page has at most about `limit` bytes of JSON text. The page is a JSON object with the members `value`,
/// `offset`, `next_offset` (except on the last page), `of` (the total number of items or characters) and `unit`.
/// The member `cut` describes what was left out of an item that is too long. Fails if the offset is beyond the end
/// of the result.
pub fn page(json: &str, offset: usize, limit: usize) -> Result<Value, OffsetError> {
    if json.trim_start().starts_with('[') {
        return item_page(json, offset, limit);
    }
    let text = json::decode_string(json);
    character_page(text.as_deref().unwrap_or(json), offset, limit)
}

/// Returns a page of a stored result that is a list.
fn item_page(json: &str, offset: usize, limit: usize) -> Result<Value, OffsetError> {
    let text = JsonText::new(json, limit);
    let (mut total, mut used, mut full) = (0, 2, false);
    let (mut value, mut cut) = (Vec::new(), Vec::new());
    for entry in text.entries(text.whole()) {
        total += 1;
        if total <= offset || full {
            continue;
        }
        let bytes = entry.value.len() + 1;
        // An item that exceeds the limit alone is truncated, so that each page has at least one item.
        full = used + bytes > limit && !value.is_empty();
        if !full {
            let item = json::truncate(text.part(entry.value), limit.saturating_sub(3));
            value.push(item.value());
            cut = item.omissions;
            used += bytes;
        }
    }
    let next = offset + value.len();
    page_json(Value::Array(value), offset, next, total, "items").map(|mut part| {
        if !cut.is_empty() {
            part["cut"] = cut.into();
        }
        part
    })
}

/// Returns a page of a stored result that is not a list, given as text.
fn character_page(text: &str, offset: usize, limit: usize) -> Result<Value, OffsetError> {
    let total = text.chars().count();
    let start = text.char_indices().nth(offset).map_or(text.len(), |(start, _)| start);
    let rest = &text[start..];
    // A page has at least one character, even if the character has more bytes than the limit.
    let end = rest.floor_char_boundary(limit).max(rest.chars().next().map_or(0, char::len_utf8));
    let shown = &rest[..end];
    page_json(shown.into(), offset, offset + shown.chars().count(), total, "characters")
}

/// Builds the JSON object of a page: `value` is its content, `next` the offset after it, and `total` the size of
/// the whole result, all in `unit`. Fails if the offset is beyond the end of the result.
fn page_json(
    value: Value,
    offset: usize,
    next: usize,
    total: usize,
    unit: &'static str,
) -> Result<Value, OffsetError> {
    if offset > 0 && offset >= total {
        return Err(OffsetError { offset, total, unit });
    }
    let mut part = json!({"value": value, "offset": offset, "of": total, "unit": unit});
    if next < total {
        part["next_offset"] = next.into();
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads all pages of a result in order.
    fn pages(json: &str, limit: usize) -> Vec<Value> {
        let (mut parts, mut offset) = (Vec::new(), Some(0));
        while let Some(from) = offset {
            let found = page(json, from as usize, limit).expect("a part");
            offset = found["next_offset"].as_u64();
            parts.push(found["value"].clone());
        }
        parts
    }

    #[test]
    fn a_list_is_paged_by_items() {
        let list = json!(["aaaa", "bbbb", "cccc", "dddd", "eeee"]).to_string();
        assert_eq!(
            page(&list, 1, 18),
            Ok(json!({"value": ["bbbb", "cccc"], "offset": 1, "of": 5, "unit": "items", "next_offset": 3}))
        );
        assert_eq!(
            page(&list, 3, 100),
            Ok(json!({"value": ["dddd", "eeee"], "offset": 3, "of": 5, "unit": "items"}))
        );
    }

    #[test]
    fn an_item_that_is_too_long_is_truncated() {
        let list = json!([1, "x".repeat(1_000), 2]).to_string();
        let found = pages(&list, 200);
        assert_eq!(found.len(), 3);
        assert!(found[1].to_string().len() <= 200, "{}", found[1]);
        assert_eq!(page(&list, 1, 200).expect("a part")["cut"][0]["characters"], 1_000);
    }

    #[test]
    fn offsets_beyond_the_end_are_errors() {
        for (json, total) in [("[1,2]", "2 items"), ("\"ž\"", "1 characters"), ("{}", "2 characters")] {
            for offset in [2, 3, usize::MAX] {
                let message = page(json, offset, 100).expect_err("nothing").to_string();
                assert_eq!(message, format!("offset {offset} is beyond the end: the result has {total}"));
            }
        }
        assert_eq!(page("[]", 0, 100).map(|part| part["of"].clone()), Ok(json!(0)));
    }

    proptest! {
        #[test]
        fn all_pages_together_are_the_whole_result(items in prop::collection::vec("[ -~ž]{0,20}", 0..40), limit in 80_usize..300) {
            let list = json!(items).to_string();
            let all: Vec<Value> = pages(&list, limit).iter().flat_map(|part| part.as_array().cloned().unwrap_or_default()).collect();
            prop_assert_eq!(Value::from(all).to_string(), list);
            let text = items.concat();
            let all: String = pages(&json!(text).to_string(), limit).iter().filter_map(Value::as_str).collect();
            prop_assert_eq!(all, text);
            let object = json!({"items": items}).to_string();
            let all: String = pages(&object, limit).iter().filter_map(Value::as_str).collect();
            prop_assert_eq!(all, object);
        }
    }
}

//! Replaces invisible characters in tool definitions, so that a definition has no text that only the model can see.
//!
//! Fingerprints and pins (stored definitions that were accepted) use the original text of the upstream server, so that
//! a change of invisible text counts as a change.

use std::borrow::Cow;
use std::ops::Range;

use lockhouse_policies::visible_text;
use serde_json::Value;

/// Replaces invisible characters in every key and string of a JSON value. The upstream server does not know a key whose
/// characters were replaced, so a model cannot use a parameter whose name a person cannot read.
pub(crate) fn make_visible(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible_text(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(make_visible).collect(),
        Value::Object(members) => {
            let member =
                |(name, value): (String, Value)| (visible_text(&name).into_owned(), make_visible(value));
            members.into_iter().map(member).collect()
        }
        other => other,
    }
}

/// Replaces invisible characters in the strings of JSON text. All other bytes are unchanged.
pub fn make_json_visible(json: &str) -> Cow<'_, str> {
    let (mut shown, mut copied) = (String::new(), 0);
    for literal in string_literals(json) {
        let visible = match serde_json::from_str::<String>(&json[literal.clone()]) {
            Ok(text) => match visible_text(&text) {
                Cow::Owned(visible) => visible,
                Cow::Borrowed(_) => continue,
            },
            // Not valid Unicode, such as half of a surrogate pair.
            Err(_) => char::REPLACEMENT_CHARACTER.to_string(),
        };
        shown.push_str(&json[copied..literal.start]);
        shown.push_str(&Value::String(visible).to_string());
        copied = literal.end;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    shown.push_str(&json[copied..]);
    Cow::Owned(shown)
}

/// Returns the byte ranges of the string literals in JSON text, including their quotation marks.
fn string_literals(json: &str) -> impl Iterator<Item = Range<usize>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next + json[next..].find('"')?;
        let mut is_escaped = false;
        let is_end = |byte: u8| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        };
        let length = json.as_bytes()[start + 1..].iter().copied().position(is_end)?;
        next = start + length + 2;
        Some(start..next)
    })
}

/// Returns whether [`make_visible`] would change a key or string of the value.
pub(crate) fn has_hidden_text(value: &Value) -> bool {
    let hidden = |text: &str| matches!(visible_text(text), Cow::Owned(_));
    match value {
        Value::String(text) => hidden(text),
        Value::Array(items) => items.iter().any(has_hidden_text),
        Value::Object(members) => members.iter().any(|(name, value)| hidden(name) || has_hidden_text(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_without_invisible_characters_is_unchanged() {
        for plain in
            [r#"{ "b":1.0,"a" : "x\n\ty \u00e9 \"q\" \\u202e é", "n":1e2 }"#, "{\r\n\t\"a\": [null, true]\n}"]
        {
            assert_eq!(make_json_visible(plain), plain);
        }
        for (hiding, shown) in [
            (r#"{ "d":"a\u202eb", "n":1e400}"#, "{ \"d\":\"a\u{fffd}b\", \"n\":1e400}"),
            ("{\"d\":\"a\u{200b}b\"}", "{\"d\":\"a\u{fffd}b\"}"),
            (r#"{"d":{"p\udb40\udc41":["\u001b[2J"]}}"#, "{\"d\":{\"p\u{fffd}\":[\"\u{fffd}[2J\"]}}"),
        ] {
            assert_eq!(make_json_visible(hiding), shown);
        }
    }
}

//! Definitions as AI clients and models read them: without anything that is hidden from a person who reads along.
//!
//! Pins and fingerprints are of the server's own text: a change of what is hidden is a change.

use std::borrow::Cow;
use std::ops::Range;

use lockhouse_policies::visible_text;
use serde_json::Value;

/// Makes every name and text of a piece of JSON visible. A name with hidden characters becomes another one, under which no
/// server knows anything: what cannot be read cannot be used.
pub(crate) fn visible(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible_text(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(visible).collect(),
        Value::Object(members) => {
            let member = |(name, value): (String, Value)| (visible_text(&name).into_owned(), visible(value));
            members.into_iter().map(member).collect()
        }
        other => other,
    }
}

/// The same of JSON as it is written: all but the texts that hide something stays as it is, byte for byte.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let (mut shown, mut copied) = (String::new(), 0);
    for literal in literals(json) {
        let visible = match serde_json::from_str::<String>(&json[literal.clone()]) {
            Ok(text) => match visible_text(&text) {
                Cow::Owned(visible) => visible,
                Cow::Borrowed(_) => continue,
            },
            // No text, such as half of a surrogate pair: nobody can read it.
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

/// Where the names and texts of a piece of JSON are, with their quotes.
fn literals(json: &str) -> impl Iterator<Item = Range<usize>> {
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

/// Whether a name or a text in it has something that [`visible`] changes.
pub(crate) fn hides(value: &Value) -> bool {
    let hidden = |text: &str| matches!(visible_text(text), Cow::Owned(_));
    match value {
        Value::String(text) => hidden(text),
        Value::Array(items) => items.iter().any(hides),
        Value::Object(members) => members.iter().any(|(name, value)| hidden(name) || hides(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_as_it_is_written_unless_it_hides_something() {
        for plain in
            [r#"{ "b":1.0,"a" : "x\n\ty \u00e9 \"q\" \\u202e é", "n":1e2 }"#, "{\r\n\t\"a\": [null, true]\n}"]
        {
            assert_eq!(visible_json(plain), plain);
        }
        for (hiding, shown) in [
            (r#"{ "d":"a\u202eb", "n":1e400}"#, "{ \"d\":\"a\u{fffd}b\", \"n\":1e400}"),
            ("{\"d\":\"a\u{200b}b\"}", "{\"d\":\"a\u{fffd}b\"}"),
            (r#"{"d":{"p\udb40\udc41":["\u001b[2J"]}}"#, "{\"d\":{\"p\u{fffd}\":[\"\u{fffd}[2J\"]}}"),
        ] {
            assert_eq!(visible_json(hiding), shown);
        }
    }
}

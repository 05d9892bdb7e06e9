//! Definitions as AI clients and models read them: without anything that is hidden from a person who reads along.
//!
//! Pins and fingerprints are of the server's own text: a change of what is hidden is a change.

use std::borrow::Cow;

use lockhouse_policies::{is_hidden, visible_text};
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

/// The same of JSON as it is written, which stays as it is where nothing is hidden.
pub(crate) fn visible_json(json: &str) -> Cow<'_, str> {
    // Written out or as an escape. The escapes of quotes and backslashes stand for what can be seen, and so do \n and \t.
    let may_hide = json.chars().any(|c| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t'))
        || ["\\u", "\\r", "\\b", "\\f"].iter().any(|escape| json.contains(escape));
    if !may_hide {
        return Cow::Borrowed(json);
    }
    match serde_json::from_str(json) {
        Ok(value) if hides(&value) => Cow::Owned(visible(value).to_string()),
        Ok(_) => Cow::Borrowed(json),
        // Whoever shows it has read it as JSON before.
        Err(_) => Cow::Borrowed("null"),
    }
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
            (r#"{"d":"a\u202eb"}"#, "{\"d\":\"a\u{fffd}b\"}"),
            ("{\"d\":\"a\u{200b}b\"}", "{\"d\":\"a\u{fffd}b\"}"),
            (r#"{"d":{"p\udb40\udc41":["\u001b[2J"]}}"#, "{\"d\":{\"p\u{fffd}\":[\"\u{fffd}[2J\"]}}"),
        ] {
            assert_eq!(visible_json(hiding), shown);
        }
    }
}

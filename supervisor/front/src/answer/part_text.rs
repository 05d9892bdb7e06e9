//! Formats a part of a stored result as text.

use lockhouse_base::json::group_thousands;
use lockhouse_protocol::ResultHandle;
use serde_json::{Map, Value};

/// Returns a part of a stored result, after a sentence with the position of the part in the result. If the result is a
/// list and the part contains all of it, returns only the JSON of the list.
pub(super) fn text(part: &Value, handle: &ResultHandle, reader: &str) -> String {
    if let Some(file) = part.get("file") {
        let bytes = group_thousands(file["bytes"].as_u64().unwrap_or_default() as usize);
        let (name, uri) =
            (file["name"].as_str().unwrap_or_default(), file["uri"].as_str().unwrap_or_default());
        return format!(
            "This is the file {name} ({bytes} bytes), whose content is not shown. Code reads it with open(\"{uri}\"), and \
             `lockhouse result {handle} --out DIR` saves it."
        );
    }
    let number = |name: &str| part[name].as_u64().unwrap_or_default();
    let (offset, total, next) = (number("offset"), number("of"), part["next_offset"].as_u64());
    let is_list = part["value"].is_array();
    if is_list && offset == 0 && next.is_none() && part.get("cut").is_none() {
        return part["value"].to_string();
    }
    let end = next.unwrap_or(total);
    let position = format!(
        "{} {offset} to {} of {}",
        if is_list { "items" } else { "characters" },
        end.saturating_sub(1),
        group_thousands(total as usize)
    );
    let cut = if part.get("cut").is_some() { ", the last one cut" } else { "" };
    let more = match next {
        Some(next) => format!("{reader}(\"{handle}\", offset={next}) reads on"),
        None => "this is the last part".to_owned(),
    };
    let value = match &part["value"] {
        Value::String(text) => text.clone(),
        items => items.to_string(),
    };
    format!("Part of the value: {position}{cut}; {more}.\n{value}")
}

/// Returns the members of a part that its text does not contain. They are sent in `_meta` of the tool result.
pub(super) fn remaining_members(part: &Value) -> Value {
    let members = part.as_object().into_iter().flatten().filter(|(name, _)| *name != "value");
    members.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>().into()
}

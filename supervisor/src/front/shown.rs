//! What of an answer is shown to a model: all of it up to a limit, then its beginning and how much there is.

use serde_json::{Value, json};

use crate::execution::{Answer, parsed};
use crate::gate::CallRecord;

/// More calls than these are grouped.
const CALLS_SHOWN_MAX: usize = 20;
const GROUPS_MAX: usize = 40;

/// The answer with value, stdout and stderr of at most `limit` bytes each.
pub(super) fn shorten(answer: &Answer, limit: usize) -> Value {
    let mut truncated = json!({});
    let mut cut = |part: &str, text: &str| -> Option<Value> {
        (text.len() > limit).then(|| {
            let shown = beginning(text, limit);
            truncated[part] = json!({"bytes": text.len(), "shown": shown.len()});
            shown.into()
        })
    };
    let value = answer.value.as_deref().map(|raw| match serde_json::from_str::<String>(raw.get()) {
        Ok(text) => cut("value", &text).unwrap_or_else(|| text.into()),
        Err(_) => cut("value", raw.get()).unwrap_or_else(|| parsed(raw)),
    });
    let stdout = cut("stdout", &answer.stdout);
    let stderr = cut("stderr", &answer.stderr);
    let mut json = answer.to_json_with(value);
    for (part, shown) in [("stdout", stdout), ("stderr", stderr)] {
        if let Some(shown) = shown {
            json[part] = shown;
        }
    }
    if truncated.as_object().is_some_and(|parts| !parts.is_empty()) {
        truncated["hint"] = "return or print less: filter, aggregate or slice in the code".into();
    }
    if answer.calls.len() > CALLS_SHOWN_MAX {
        json["calls"] = grouped(&answer.calls);
        truncated["calls"] = json!({"count": answer.calls.len(), "shown": "grouped by tool and outcome"});
    }
    if truncated.as_object().is_some_and(|parts| !parts.is_empty()) {
        json["truncated"] = truncated;
    }
    json
}

/// One row for the calls that differ in nothing that a model would act on.
fn grouped(calls: &[CallRecord]) -> Value {
    let mut groups: Vec<(&CallRecord, usize, f64, usize)> = Vec::new();
    for call in calls {
        let alike = |other: &CallRecord| {
            (&other.server, other.kind, &other.name, other.outcome, other.changes)
                == (&call.server, call.kind, &call.name, call.outcome, call.changes)
        };
        let room = groups.len() < GROUPS_MAX;
        match groups.iter_mut().find(|(other, ..)| alike(other)) {
            Some((_, count, ms, bytes)) => {
                (*count, *ms, *bytes) = (*count + 1, *ms + call.ms, *bytes + call.bytes)
            }
            None if room => groups.push((call, 1, call.ms, call.bytes)),
            None => {}
        }
    }
    let row = |(call, count, ms, bytes): (&CallRecord, usize, f64, usize)| {
        json!({
            "server": call.server, call.kind: call.name, "outcome": call.outcome, "changes": call.changes,
            "count": count, "ms": (ms * 1000.0).round() / 1000.0, "bytes": bytes,
        })
    };
    groups.into_iter().map(row).collect()
}

fn beginning(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_never_splits_a_character() {
        assert_eq!(beginning("aé", 2), "a");
        assert_eq!(beginning("aé", 3), "aé");
    }
}

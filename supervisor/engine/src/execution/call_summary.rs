//! Converts the calls of an execution to JSON: a few calls are listed one by one, many are grouped.

use lockhouse_gate::CallRecord;
use serde_json::{Value, json};

use super::display_limits::{CALL_GROUPS_MAX, CALLS_MAX};

/// Returns the calls of an execution as JSON: one by one, or grouped if there are more than [`CALLS_MAX`].
pub(super) fn summarise(calls: &[CallRecord]) -> Value {
    if calls.len() > CALLS_MAX { group(calls) } else { list(calls) }
}

/// Lists each call as JSON with its outcome, its duration and the size of its result.
pub(crate) fn list(calls: &[CallRecord]) -> Value {
    let row = |call: &CallRecord| {
        let mut row = described(call);
        (row["ms"], row["bytes"]) = (call.ms.into(), call.bytes.into());
        row
    };
    calls.iter().map(row).collect()
}

/// Returns what a call and all calls of its group have in common: the target, the outcome, and whether it may have changed
/// something.
fn described(call: &CallRecord) -> Value {
    let mut row = json!({
        "server": call.server, call.kind: call.name, "outcome": call.outcome, "changes": call.changes.are_possible(),
    });
    if call.is_likely_read() {
        row["likely_read"] = true.into();
    }
    if call.has_content_aside {
        row["content_aside"] = true.into();
    }
    row
}

/// Groups the calls to the same tool with the same outcome. Each group has the number of its calls, their total
/// duration and the total size of their results.
fn group(calls: &[CallRecord]) -> Value {
    let mut groups: Vec<(&CallRecord, usize, f64, usize)> = Vec::new();
    for call in calls {
        let alike = |other: &CallRecord| {
            let kept = |call: &CallRecord| (call.outcome, call.changes, call.has_content_aside);
            (&other.server, other.kind, &other.name, kept(other))
                == (&call.server, call.kind, &call.name, kept(call))
        };
        let has_capacity = groups.len() < CALL_GROUPS_MAX;
        match groups.iter_mut().find(|(other, ..)| alike(other)) {
            Some((_, count, ms, bytes)) => {
                (*count, *ms, *bytes) = (*count + 1, *ms + call.ms, *bytes + call.bytes)
            }
            None if has_capacity => groups.push((call, 1, call.ms, call.bytes)),
            None => {}
        }
    }
    let row = |(call, count, ms, bytes): (&CallRecord, usize, f64, usize)| {
        let mut row = described(call);
        row["count"] = count.into();
        (row["ms"], row["bytes"]) = (((ms * 1000.0).round() / 1000.0).into(), bytes.into());
        row
    };
    groups.into_iter().map(row).collect()
}

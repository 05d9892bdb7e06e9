//! The calls of an execution: each of a few, and many by what they have in common.

use lockhouse_gate::CallRecord;
use serde_json::{Value, json};

use super::display::{CALL_GROUPS_MAX, CALLS_MAX};

/// One by one, or grouped.
pub(super) fn shown(calls: &[CallRecord]) -> Value {
    if calls.len() > CALLS_MAX { grouped(calls) } else { each(calls) }
}

/// One by one.
pub(crate) fn each(calls: &[CallRecord]) -> Value {
    let row = |call: &CallRecord| {
        json!({
            "server": call.server, call.kind: call.name, "outcome": call.outcome, "changes": call.changes.are_possible(),
            "ms": call.ms, "bytes": call.bytes,
        })
    };
    calls.iter().map(row).collect()
}

/// One row for the calls that differ in nothing that a model would act on.
fn grouped(calls: &[CallRecord]) -> Value {
    let mut groups: Vec<(&CallRecord, usize, f64, usize)> = Vec::new();
    for call in calls {
        let alike = |other: &CallRecord| {
            (&other.server, other.kind, &other.name, other.outcome, other.changes)
                == (&call.server, call.kind, &call.name, call.outcome, call.changes)
        };
        let room = groups.len() < CALL_GROUPS_MAX;
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
            "server": call.server, call.kind: call.name, "outcome": call.outcome, "changes": call.changes.are_possible(),
            "count": count, "ms": (ms * 1000.0).round() / 1000.0, "bytes": bytes,
        })
    };
    groups.into_iter().map(row).collect()
}

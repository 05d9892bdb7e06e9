//! Reports the calls of an execution in its answer: a few calls one by one, many in groups.

use lockhouse_gate::CallRecord;
use lockhouse_messages::{CallReport, CalledItem};
use lockhouse_policies::CallTarget;

use super::display_limits::{CALL_GROUPS_MAX, CALLS_MAX};

/// The reports about the calls of an execution.
pub(super) struct CallReports {
    pub(super) reports: Vec<CallReport>,
    /// Whether a report is about a group of calls.
    pub(super) is_grouped: bool,
}

/// Reports the calls of an execution: one by one, or grouped if there are more than [`CALLS_MAX`].
pub(super) fn summarise(calls: &[CallRecord]) -> CallReports {
    match calls.len() > CALLS_MAX {
        true => CallReports { reports: group(calls), is_grouped: true },
        false => list(calls),
    }
}

/// Reports each call with its outcome, its duration and the size of its result.
pub(super) fn list(calls: &[CallRecord]) -> CallReports {
    CallReports { reports: calls.iter().map(report).collect(), is_grouped: false }
}

fn report(call: &CallRecord) -> CallReport {
    CallReport {
        server: call.server.clone(),
        item: called_item(&call.item),
        outcome: call.outcome,
        changes: call.changes.are_possible(),
        likely_read: call.is_likely_read(),
        content_aside: call.has_content_aside,
        count: None,
        ms: call.ms,
        bytes: call.bytes,
    }
}

fn called_item(item: &CallTarget) -> CalledItem {
    let name = item.to_string();
    match item {
        CallTarget::Tool(_) => CalledItem::Tool(name),
        CallTarget::Resource(_) => CalledItem::Resource(name),
        CallTarget::Prompt(_) => CalledItem::Prompt(name),
        CallTarget::List(_) => CalledItem::List(name),
    }
}

/// Groups the calls to the same tool with the same outcome. Each group has the number of its calls, their total
/// duration and the total size of their results.
fn group(calls: &[CallRecord]) -> Vec<CallReport> {
    let mut groups: Vec<(&CallRecord, CallReport)> = Vec::new();
    for call in calls {
        let next = report(call);
        let alike = |(first, group): &(&CallRecord, CallReport)| {
            (&group.server, &group.item, group.outcome, first.changes, group.content_aside)
                == (&next.server, &next.item, next.outcome, call.changes, next.content_aside)
        };
        match groups.iter().position(alike) {
            Some(position) => {
                let group = &mut groups[position].1;
                group.count = group.count.map(|count| count + 1);
                (group.ms, group.bytes) = (group.ms + next.ms, group.bytes + next.bytes);
            }
            None if groups.len() < CALL_GROUPS_MAX => {
                groups.push((call, CallReport { count: Some(1), ..next }))
            }
            None => {}
        }
    }
    let rounded =
        |(_, group): (_, CallReport)| CallReport { ms: (group.ms * 1000.0).round() / 1000.0, ..group };
    groups.into_iter().map(rounded).collect()
}

//! Converts audit records to events of OCSF, the Open Cybersecurity Schema Framework. A call together with its outcome, a
//! denied call, an execution with its end, a loaded skill, an approval, a question and a rejected run are events of the
//! class API Activity (6003). `ocsf/administration.rs` converts administrative records, gaps and set clocks.

mod administration;

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::reader::LocatedRecord;
use super::record::{Arguments, AuditEvent, CallIdentity};
use super::severity::Severity;

/// Version of the OCSF schema. The class of the events supports the profile `security_control` (action and disposition)
/// since version 1.4.0.
const SCHEMA: &str = "1.5.0";
const API_ACTIVITY: u32 = 6003;
/// Maximum number of calls and executions that are kept in memory until their end record is added. When another one
/// would exceed this maximum, the oldest becomes an event with the status `Unknown`. A process that is killed never
/// writes the end records of its calls and executions.
const OPEN_MAX: usize = 65_536;

/// Combines audit records into events of the Open Cybersecurity Schema Framework (OCSF). The records must be added in
/// order of time.
#[derive(Debug, Default)]
pub struct OcsfEvents {
    /// Events of calls and executions whose end record was not added yet, by the ID of the call or execution.
    /// The order of the IDs is the order of time.
    open: BTreeMap<String, Map<String, Value>>,
}

/// The OCSF status of a call or an execution.
struct Status {
    id: u8,
    name: &'static str,
    detail: Option<String>,
}

impl OcsfEvents {
    /// Adds an audit record. Returns the OCSF events that this record completes.
    #[expect(clippy::too_many_lines, reason = "one arm for each event of the log")]
    pub fn add(&mut self, found: LocatedRecord) -> Vec<Value> {
        let LocatedRecord { segment, record, .. } = found;
        let time = millis(&record.time);
        let metadata = |execution: &str| {
            json!({
                "version": SCHEMA,
                "product": {"name": "Lockhouse", "vendor_name": "Lockhouse", "version": env!("CARGO_PKG_VERSION")},
                "profiles": ["security_control"],
                "uid": format!("{segment}:{}", record.seq),
                "sequence": record.seq,
                "correlation_uid": execution,
                "log_name": segment.as_str(),
            })
        };
        match record.event {
            AuditEvent::Call { about, arguments, decision, rule, approval, account } => {
                let mut event = event(time, metadata(&about.execution), &about);
                event["unmapped"]["decision"] = decision.into();
                event["unmapped"]["rule"] = rule.into();
                event["unmapped"]["line"] = json!(about.line);
                event["unmapped"]["approval"] = json!(approval);
                if let Some(account) = account {
                    event["unmapped"]["account"] = account.into();
                }
                event["api"]["request"]["data"] = data(&arguments);
                event["unmapped"]["arguments_hash"] = arguments.hash.into();
                event["unmapped"]["arguments_bytes"] = arguments.bytes.into();
                allow(&mut event, true);
                self.begin(about.call, event)
            }
            AuditEvent::Denial { about, reason, rule, .. } => {
                let mut event = event(time, metadata(&about.execution), &about);
                event["unmapped"]["rule"] = json!(rule);
                allow(&mut event, false);
                set_severity(&mut event, Severity::of("denial", &[]));
                let status = Status { id: 2, name: "Failure", detail: Some(reason) };
                vec![ended(event, &status, "denied", None)]
            }
            AuditEvent::Outcome { about, outcome, ms, result_bytes } => {
                // A call without a call record was never sent.
                let begun = self.open.remove(&about.call);
                let mut event = match begun {
                    Some(begun) => Value::Object(begun),
                    None => event(time, metadata(&about.execution), &about),
                };
                event["unmapped"]["result_bytes"] = result_bytes.into();
                let status = status(&outcome);
                vec![ended(event, &status, &outcome, Some((time, ms)))]
            }
            AuditEvent::Execution {
                execution, client, language, servers, code, code_bytes, claimed, ..
            } => {
                let about = CallIdentity {
                    execution: execution.clone(),
                    call: execution.clone(),
                    client,
                    server: "lockhouse".into(),
                    kind: "tool",
                    item: "run_code".into(),
                    line: None,
                };
                let mut event = event(time, metadata(&execution), &about);
                event["unmapped"] = json!({
                    "language": language, "servers": servers, "code_sha256": code, "code_bytes": code_bytes,
                });
                if !claimed.is_empty() {
                    event["unmapped"]["claimed"] = json!(claimed);
                }
                allow(&mut event, true);
                self.begin(execution, event)
            }
            AuditEvent::Skill { execution, client, skill, version, language, code, .. } => {
                let about = CallIdentity {
                    execution: execution.clone(),
                    call: format!("{execution}:{}", record.seq),
                    client,
                    server: "lockhouse".into(),
                    kind: "tool",
                    item: "load_skill".into(),
                    line: None,
                };
                let mut event = event(time, metadata(&execution), &about);
                event["unmapped"] =
                    json!({"skill": skill, "version": version, "language": language, "code_sha256": code});
                allow(&mut event, true);
                vec![ended(event, &status("ok"), "ok", None)]
            }
            AuditEvent::End { execution, status: outcome, ended_by, wall_ms, calls, .. } => {
                let Some(begun) = self.open.remove(&execution) else { return Vec::new() };
                let mut event = Value::Object(begun);
                event["unmapped"]["calls"] = calls.into();
                if let Some(ended_by) = ended_by {
                    event["unmapped"]["ended_by"] = ended_by.into();
                }
                vec![ended(event, &status(&outcome), &outcome, Some((time, wall_ms)))]
            }
            AuditEvent::Approval {
                about,
                digest,
                through,
                outcome,
                uid,
                presence,
                credential,
                approver,
                break_glass,
            } => {
                let mut event = event(time, metadata(&about.execution), &about);
                event["api"]["operation"] = format!("approve {}", about.item).into();
                event["unmapped"] =
                    json!({"digest": digest, "through": through, "outcome": outcome, "uid": uid});
                for (name, value) in [
                    ("presence", presence),
                    ("credential", credential),
                    ("approver", approver),
                    ("break_glass", break_glass),
                ] {
                    if let Some(value) = value {
                        event["unmapped"][name] = value.into();
                    }
                }
                allow(
                    &mut event,
                    matches!(
                        outcome.as_str(),
                        "asked" | "approved in part" | "once" | "execution" | "always"
                    ),
                );
                vec![ended(event, &status("ok"), &outcome, None)]
            }
            AuditEvent::Question { execution, server, outcome } => {
                let about = of_execution(&execution, record.seq, server, "answer_question");
                let mut event = event(time, metadata(&execution), &about);
                allow(&mut event, true);
                vec![ended(event, &status("ok"), &outcome, None)]
            }
            AuditEvent::Refusal { execution, client, language, outcome, reason, left_out, claimed } => {
                let about = of_execution(&execution, record.seq, "lockhouse".into(), "run_code");
                let mut event = event(time, metadata(&execution), &CallIdentity { client, ..about });
                event["unmapped"] = json!({"language": language, "left_out": left_out, "claimed": claimed});
                set_severity(&mut event, Severity::of("refusal", &[]));
                allow(&mut event, false);
                let status = Status { id: 2, name: "Failure", detail: Some(reason) };
                vec![ended(event, &status, &outcome, None)]
            }
            AuditEvent::Administration(act) => vec![administration::event(metadata(""), time, &act)],
            AuditEvent::Gap { since, records, reason } => {
                let details = json!({"since": since, "records": records, "reason": reason});
                vec![administration::log_event(metadata(""), time, ("gap", details))]
            }
            AuditEvent::Clock { from, to, difference_s } => {
                let details = json!({"from": from, "to": to, "difference_s": difference_s});
                vec![administration::log_event(metadata(""), time, ("clock", details))]
            }
            AuditEvent::Chain => Vec::new(),
        }
    }

    /// Returns the OCSF events of calls and executions without an end record. Their status is `Unknown`.
    pub fn finish(self) -> impl Iterator<Item = Value> {
        self.open.into_values().map(|event| ended(Value::Object(event), &status("unknown"), "unknown", None))
    }

    fn begin(&mut self, id: String, event: Value) -> Vec<Value> {
        let oldest = if self.open.len() >= OPEN_MAX { self.open.pop_first() } else { None };
        if let Value::Object(event) = event {
            self.open.insert(id, event);
        }
        let given_up =
            oldest.map(|(_, event)| ended(Value::Object(event), &status("unknown"), "unknown", None));
        given_up.into_iter().collect()
    }
}

/// Identifies what a record of an execution is about that is no call.
fn of_execution(execution: &str, seq: u64, server: String, item: &str) -> CallIdentity {
    CallIdentity {
        execution: execution.to_owned(),
        call: format!("{execution}:{seq}"),
        client: None,
        server,
        kind: "tool",
        item: item.into(),
        line: None,
    }
}

fn set_severity(event: &mut Value, severity: Severity) {
    let (id, name) = administration::severity(severity);
    event["severity_id"] = id.into();
    event["severity"] = name.into();
}

fn event(time: u64, metadata: Value, about: &CallIdentity) -> Value {
    let (activity_id, activity) = match about.kind {
        // OCSF has no activity for an arbitrary tool call, hence 99 (Other).
        "tool" => (99, "Call"),
        _ => (2, "Read"),
    };
    let operation = match about.kind {
        "tool" => about.item.clone(),
        kind => format!("{kind}:{}", about.item),
    };
    let client = about.client.as_deref().unwrap_or("lockhouse run");
    json!({
        "class_uid": API_ACTIVITY, "class_name": "API Activity",
        "category_uid": 6, "category_name": "Application Activity",
        "activity_id": activity_id, "activity_name": activity,
        "type_uid": API_ACTIVITY * 100 + activity_id, "type_name": format!("API Activity: {activity}"),
        "severity_id": 1, "severity": "Informational",
        "time": time, "start_time": time,
        "metadata": metadata,
        "actor": {"app_name": client, "session": {"uid": about.execution}},
        "api": {
            "operation": operation,
            "service": {"name": about.server},
            "request": {"uid": about.call},
        },
        "src_endpoint": {"name": client},
        "dst_endpoint": {"name": about.server, "svc_name": about.server},
        "unmapped": {},
    })
}

/// Returns the recorded arguments of a call: their values if these were recorded, else their names and types (the
/// shape).
fn data(arguments: &Arguments) -> Value {
    match &arguments.values {
        Some(values) => json!({"values": values}),
        None => json!({"shape": arguments.shape}),
    }
}

fn allow(event: &mut Value, allowed: bool) {
    let (action_id, action, disposition_id, disposition) =
        if allowed { (1, "Allowed", 1, "Allowed") } else { (2, "Denied", 2, "Blocked") };
    event["action_id"] = action_id.into();
    event["action"] = action.into();
    event["disposition_id"] = disposition_id.into();
    event["disposition"] = disposition.into();
}

fn status(outcome: &str) -> Status {
    match outcome {
        "ok" => Status { id: 1, name: "Success", detail: None },
        "unknown" => Status { id: 0, name: "Unknown", detail: Some(outcome.into()) },
        other => Status { id: 2, name: "Failure", detail: Some(other.into()) },
    }
}

fn ended(mut event: Value, status: &Status, code: &str, took: Option<(u64, f64)>) -> Value {
    event["status_id"] = status.id.into();
    event["status"] = status.name.into();
    event["status_code"] = code.into();
    if let Some(detail) = &status.detail {
        event["status_detail"] = detail.as_str().into();
        event["api"]["response"] = json!({"error": code, "error_message": detail});
    }
    if let Some((time, ms)) = took {
        event["end_time"] = time.into();
        event["duration"] = (ms.max(0.0).round() as u64).into();
    }
    event
}

/// Converts an RFC 3339 time to milliseconds since the Unix epoch. An invalid time gives 0.
fn millis(time: &str) -> u64 {
    let time = humantime::parse_rfc3339(time).unwrap_or(SystemTime::UNIX_EPOCH);
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

//! Events of OCSF for administrative records and for records about the log itself. The kind of a record decides their class.

use serde_json::{Value, json};

use crate::record::AdministrativeEvent;
use crate::severity::Severity;

/// A class of OCSF: its number, its name and its category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class {
    uid: u32,
    name: &'static str,
    category: &'static str,
}

const ACCOUNT_CHANGE: Class =
    Class { uid: 3001, name: "Account Change", category: "Identity & Access Management" };
const AUTHENTICATION: Class =
    Class { uid: 3002, name: "Authentication", category: "Identity & Access Management" };
const ENTITY_MANAGEMENT: Class =
    Class { uid: 3004, name: "Entity Management", category: "Identity & Access Management" };
const APPLICATION_LIFECYCLE: Class =
    Class { uid: 6002, name: "Application Lifecycle", category: "Application Activity" };
const API_ACTIVITY: Class = Class { uid: 6003, name: "API Activity", category: "Application Activity" };
const EVENT_LOG: Class = Class { uid: 1008, name: "Event Log Activity", category: "System Activity" };

/// An activity of a class: its number and its name.
type Activity = (u32, &'static str);

const OTHER: u32 = 99;

/// Returns the class and the activity of an administrative record.
fn classify(event: &AdministrativeEvent) -> (Class, Activity) {
    let action = event.action.as_deref().unwrap_or_default();
    let of = |words: [&str; 2]| words.iter().any(|word| action.starts_with(word));
    match (event.event, event.subject.as_str(), event.outcome.as_str()) {
        ("token", _, "revoked") => (ACCOUNT_CHANGE, (5, "Disable")),
        ("token", ..) => (ACCOUNT_CHANGE, (1, "Create")),
        ("login", _, "logged out") => (AUTHENTICATION, (2, "Logoff")),
        ("login" | "authentication", ..) => (AUTHENTICATION, (1, "Logon")),
        ("change", "packages", _) if of(["add", "install"]) => (APPLICATION_LIFECYCLE, (1, "Install")),
        ("change", "packages", _) if of(["remove", "uninstall"]) => (APPLICATION_LIFECYCLE, (2, "Remove")),
        ("change", "packages", _) | ("reload", ..) => (APPLICATION_LIFECYCLE, (8, "Update")),
        ("change", ..) if of(["create", "init"]) => (ENTITY_MANAGEMENT, (1, "Create")),
        ("change", _, _) if action == "removed" => (ENTITY_MANAGEMENT, (4, "Delete")),
        ("change" | "definition", ..) => (ENTITY_MANAGEMENT, (3, "Update")),
        ("process", _, "serving") => (APPLICATION_LIFECYCLE, (6, "Enable")),
        ("process", _, "draining") => (APPLICATION_LIFECYCLE, (7, "Disable")),
        ("process" | "server", _, "started" | "failed") => (APPLICATION_LIFECYCLE, (3, "Start")),
        ("process" | "server", ..) | ("termination", "process" | "all processes", _) => {
            (APPLICATION_LIFECYCLE, (4, "Stop"))
        }
        ("termination", ..) => (API_ACTIVITY, (4, "Delete")),
        _ => (API_ACTIVITY, (OTHER, "Other")),
    }
}

/// Returns the number and the name of a severity.
pub(super) fn severity(severity: Severity) -> (u8, &'static str) {
    match severity {
        Severity::Info => (1, "Informational"),
        Severity::Warning => (3, "Medium"),
        Severity::High => (4, "High"),
    }
}

/// Returns the attributes that every class has.
fn base(class: Class, (activity, name): Activity, severity: Severity) -> Value {
    let (severity_id, severity) = self::severity(severity);
    json!({
        "class_uid": class.uid, "class_name": class.name,
        "category_uid": class.uid / 1_000, "category_name": class.category,
        "activity_id": activity, "activity_name": name,
        "type_uid": class.uid * 100 + activity, "type_name": format!("{}: {name}", class.name),
        "severity_id": severity_id, "severity": severity,
    })
}

/// Returns the event of an administrative record.
pub(super) fn event(mut metadata: Value, time: u64, record: &AdministrativeEvent) -> Value {
    let (class, activity) = classify(record);
    let facts =
        [record.outcome.as_str(), record.subject.as_str(), record.through.as_deref().unwrap_or_default()];
    let severity = record.severity.unwrap_or_else(|| Severity::of(record.event, &facts));
    let mut event = base(class, activity, severity);
    let failed = matches!(record.outcome.as_str(), "failed" | "refused");
    event["time"] = time.into();
    event["status_id"] = if failed { 2 } else { 1 }.into();
    event["status"] = if failed { "Failure" } else { "Success" }.into();
    event["status_code"] = record.outcome.as_str().into();
    if let Some(reason) = &record.reason {
        event["status_detail"] = reason.as_str().into();
    }
    event["actor"] = actor(record);
    add_subject(&mut event, class, record);
    event["unmapped"] = unmapped(record);
    if class == API_ACTIVITY {
        metadata["correlation_uid"] = json!(record.execution.as_deref().unwrap_or_default());
    } else {
        metadata["profiles"] = json!(["host"]);
        if let Some(object) = metadata.as_object_mut() {
            object.remove("correlation_uid");
        }
        add_device(&mut event, record.host.as_deref());
    }
    event["metadata"] = metadata;
    event
}

/// Returns the user and the process that caused the event.
fn actor(record: &AdministrativeEvent) -> Value {
    let mut actor = json!({"app_name": record.client.as_deref().unwrap_or("lockhouse")});
    if let Some(uid) = record.uid {
        actor["user"] = json!({"uid": uid.to_string()});
    }
    if let Some(pid) = record.pid {
        actor["process"] = json!({"pid": pid});
    }
    actor
}

/// Adds the attributes that say what the event is about, which depend on its class.
fn add_subject(event: &mut Value, class: Class, record: &AdministrativeEvent) {
    let subject = record.subject.as_str();
    match class {
        ACCOUNT_CHANGE => event["user"] = json!({"name": subject}),
        AUTHENTICATION if record.event == "login" => {
            event["user"] = json!({"uid": record.uid.unwrap_or_default().to_string()});
            event["service"] = json!({"name": subject});
        }
        AUTHENTICATION => {
            event["user"] = json!({"name": record.client.as_deref().unwrap_or("unknown")});
            event["service"] = json!({"name": format!("lockhouse {subject}")});
        }
        ENTITY_MANAGEMENT => {
            let (name, kind) = match record.event {
                "definition" => (subject, "tool definitions"),
                _ => (record.file.as_deref().unwrap_or(subject), subject),
            };
            event["entity"] = json!({"name": name, "type": kind});
            if let Some(action) = &record.action {
                event["comment"] = action.as_str().into();
            }
        }
        APPLICATION_LIFECYCLE => {
            let name = match record.event {
                "server" => subject,
                "change" => record.action.as_deref().unwrap_or(subject),
                _ => "Lockhouse",
            };
            event["app"] = json!({"name": name});
        }
        _ => {
            let operation = match record.event {
                "termination" => format!("end_{subject}"),
                _ => subject.to_owned(),
            };
            event["api"] = json!({"operation": operation, "service": {"name": "lockhouse"}});
            let mut source = json!({"name": record.client.as_deref().unwrap_or("lockhouse")});
            if let Some(host) = &record.host {
                source["hostname"] = host.as_str().into();
            }
            event["src_endpoint"] = source;
        }
    }
}

/// Returns the members of the record that no attribute has.
fn unmapped(record: &AdministrativeEvent) -> Value {
    let members = [
        ("event", Some(json!(record.event))),
        ("subject", Some(json!(record.subject))),
        ("action", record.action.as_ref().map(|action| json!(action))),
        ("file", record.file.as_ref().map(|file| json!(file))),
        ("through", record.through.as_ref().map(|through| json!(through))),
        ("digest", record.digest.as_ref().map(|digest| json!(digest))),
        ("presence", record.presence.as_ref().map(|presence| json!(presence))),
        ("credential", record.credential.as_ref().map(|credential| json!(credential))),
        ("session", record.session.as_ref().map(|session| json!(session))),
        ("exit_status", record.exit_status.map(|status| json!(status))),
        ("login_uid", record.login_uid.map(|uid| json!(uid))),
        ("left_out", (record.left_out > 0).then(|| json!(record.left_out))),
    ];
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn add_device(event: &mut Value, host: Option<&str>) {
    if let Some(host) = host {
        // The kind of the device is not known.
        event["device"] = json!({"hostname": host, "type_id": 0});
    }
}

/// Returns the event of a record about the log itself: a gap, or a clock that was set.
pub(super) fn log_event(mut metadata: Value, time: u64, (kind, details): (&'static str, Value)) -> Value {
    let mut event = base(EVENT_LOG, (OTHER, kind), Severity::of(kind, &[]));
    event["time"] = time.into();
    event["log_name"] = metadata["log_name"].clone();
    metadata["profiles"] = json!(["host"]);
    if let Some(object) = metadata.as_object_mut() {
        object.remove("correlation_uid");
    }
    event["metadata"] = metadata;
    event["unmapped"] = details;
    event
}

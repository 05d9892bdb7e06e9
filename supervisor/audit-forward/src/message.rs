//! Writes records in the form in which destinations receive them.

use lockhouse_audit::ocsf::OcsfEvents;
use lockhouse_audit::reader::LocatedRecord;
use serde_json::{Value, json};

use crate::ForwardFormat;
use crate::segment_reader::{Batch, OutgoingRecord};

/// The severity of a record, with the numbers of syslog (RFC 5424) and of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Warning = 4,
    Notice = 5,
    Informational = 6,
}

impl Severity {
    /// Returns the severity of a record: a warning if something was refused or is missing, and a notice if an
    /// administrator or an approver acted.
    pub(crate) fn of(record: &OutgoingRecord) -> Self {
        let failed = matches!(record.outcome.as_deref(), Some("refused" | "failed"));
        match record.event.as_str() {
            "denial" | "refusal" | "gap" | "clock" | "delivery" => Self::Warning,
            // Somebody approved alone what requires more.
            "approval" if record.line.contains("\"break_glass\":") => Self::Warning,
            "reload" | "token" | "login" | "definition" if failed => Self::Warning,
            "reload" | "token" | "login" | "definition" | "approval" => Self::Notice,
            _ => Self::Informational,
        }
    }

    /// Returns the number and the name of the severity in the data model for logs of OpenTelemetry.
    pub(crate) fn of_otlp(self) -> (u8, &'static str) {
        match self {
            Self::Warning => (13, "WARN"),
            // INFO2: OpenTelemetry has no notices.
            Self::Notice => (10, "NOTICE"),
            Self::Informational => (9, "INFO"),
        }
    }
}

/// Returns the texts of a record in a format. A record is one text, or several if it completes several events.
pub(crate) fn texts(format: ForwardFormat, batch: &Batch, record: &OutgoingRecord) -> Vec<String> {
    match format {
        ForwardFormat::Json => vec![as_json(batch, record)],
        ForwardFormat::Ocsf => as_ocsf(batch, record),
    }
}

/// Returns the record with its segment and its Unix user. The record is the text of the log, byte by byte, so that its
/// hash can be verified.
fn as_json(batch: &Batch, record: &OutgoingRecord) -> String {
    format!("{{\"segment\":\"{}\",\"uid\":{},\"record\":{}}}", batch.segment, batch.uid, record.line)
}

/// Returns the record as OCSF events. Each record is an event of its own: waiting for the outcome of a call would leave
/// the call undelivered. A record that OCSF has no class for is a base event.
fn as_ocsf(batch: &Batch, record: &OutgoingRecord) -> Vec<String> {
    let mut events = OcsfEvents::default();
    let located = LocatedRecord::parse(batch.segment.clone(), record.line.clone(), &batch.names);
    let mut found: Vec<Value> = located.map(|located| events.add(located)).unwrap_or_default();
    found.extend(events.finish());
    if found.is_empty() {
        found.push(base_event(batch, record));
    }
    for event in &mut found {
        event["raw_data"] = record.line.as_str().into();
        event["unmapped"]["uid"] = batch.uid.into();
    }
    found.iter().map(Value::to_string).collect()
}

fn base_event(batch: &Batch, record: &OutgoingRecord) -> Value {
    let time = humantime::parse_rfc3339(&record.time).ok();
    let time = time.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    let (severity_id, severity) = match Severity::of(record) {
        Severity::Warning => (2, "Low"),
        Severity::Notice | Severity::Informational => (1, "Informational"),
    };
    json!({
        "class_uid": 0, "class_name": "Base Event", "category_uid": 0, "category_name": "Uncategorized",
        "activity_id": 99, "activity_name": record.event, "type_uid": 99, "type_name": "Base Event: Other",
        "severity_id": severity_id, "severity": severity, "time": time.as_millis() as u64,
        "metadata": {
            "version": "1.5.0",
            "product": {"name": "Lockhouse", "vendor_name": "Lockhouse", "version": env!("CARGO_PKG_VERSION")},
            "uid": format!("{}:{}", batch.segment, record.seq), "sequence": record.seq,
            "log_name": batch.segment.as_str(),
        },
        "unmapped": {},
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use lockhouse_audit::NamesById;

    use super::*;
    use crate::cursor_file::Position;

    /// Returns a batch with one record of an event.
    pub(crate) fn batch(event: &str, members: &str) -> Batch {
        let line =
            format!("{{\"seq\":3,\"time\":\"2026-01-31T12:00:00.000001Z\",\"event\":\"{event}\"{members}}}");
        let value: Value = serde_json::from_str(&line).expect("JSON");
        let record = OutgoingRecord {
            seq: 3,
            time: "2026-01-31T12:00:00.000001Z".into(),
            event: event.into(),
            outcome: value["outcome"].as_str().map(str::to_owned),
            line,
        };
        let name = format!("2026-01-31-{:032x}.jsonl", 7);
        Batch {
            segment: lockhouse_audit::SegmentName::parse(&name).expect("a name"),
            uid: 1_000,
            names: NamesById::default(),
            records: vec![record],
            end: Position::default(),
            is_discontinuous: false,
            is_truncated: false,
        }
    }

    #[test]
    fn each_record_is_one_event_at_once_and_has_its_text() {
        for (event, members, class) in [
            ("checkpoint", "", 0),
            ("open", "", 0),
            ("end", ",\"execution\":\"e\"", 0),
            ("reload", ",\"outcome\":\"accepted\"", 0),
            ("call", ",\"execution\":\"e\",\"call\":\"c\",\"server\":\"s\",\"tool\":\"t\"", 6003),
            ("outcome", ",\"execution\":\"e\",\"call\":\"c\",\"server\":\"s\",\"tool\":\"t\"", 6003),
            ("denial", ",\"execution\":\"e\",\"call\":\"c\",\"server\":\"s\",\"tool\":\"t\"", 6003),
        ] {
            let batch = batch(event, members);
            let texts = texts(ForwardFormat::Ocsf, &batch, &batch.records[0]);
            let [text] = &texts[..] else { panic!("{event}: {texts:?}") };
            let ocsf: Value = serde_json::from_str(text).expect("JSON");
            assert!(class == 0 || ocsf["class_uid"] == class, "{event}: {text}");
            assert_eq!(ocsf["raw_data"], batch.records[0].line.as_str(), "{event}");
            assert_eq!(ocsf["metadata"]["uid"], format!("{}:3", batch.segment), "{event}");
        }
    }

    #[test]
    fn what_was_refused_or_is_missing_is_a_warning() {
        for (event, outcome, severity) in [
            ("call", "", Severity::Informational),
            ("denial", "", Severity::Warning),
            ("gap", "", Severity::Warning),
            ("reload", "refused", Severity::Warning),
            ("reload", "accepted", Severity::Notice),
            ("token", "created", Severity::Notice),
            ("an event of a later version", "", Severity::Informational),
            ("approval", "once", Severity::Notice),
            ("approval", "once\",\"break_glass\":\"x", Severity::Warning),
        ] {
            let batch = batch(event, &format!(",\"outcome\":\"{outcome}\""));
            assert_eq!(Severity::of(&batch.records[0]), severity, "{event} {outcome}");
        }
    }
}

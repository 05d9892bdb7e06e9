//! What a receiver has received: the records with their places, in the order of their arrival.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lockhouse_tests::Lockhouse;
use parking_lot::Mutex;
use serde_json::Value;

/// A received record.
#[derive(Clone, Debug)]
struct Record {
    segment: String,
    seq: u64,
    /// The record as the log has it.
    line: String,
    /// The text in which the receiver got it.
    text: String,
}

/// The records that a receiver has received.
#[derive(Clone, Debug, Default)]
pub(super) struct Received(Arc<Mutex<Vec<Record>>>);

impl Received {
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Returns the texts of the records, as the receiver got them.
    pub(super) fn texts(&self) -> Vec<String> {
        self.0.lock().iter().map(|record| record.text.clone()).collect()
    }

    /// Adds a record in the form of `forward_format`.
    pub(super) fn add_text(&self, text: &str) {
        let value: Value = serde_json::from_str(text).expect("JSON");
        let (segment, line) = match value["raw_data"].as_str() {
            Some(line) => (value["metadata"]["log_name"].clone(), line.to_owned()),
            None => {
                // The record is the last member, byte by byte as in the log.
                let (_, record) = text.split_once(",\"record\":").expect("a record");
                (value["segment"].clone(), record.strip_suffix('}').expect("an end").to_owned())
            }
        };
        self.add(segment.as_str().expect("a segment"), &line, text);
    }

    /// Adds the records of an export request of OTLP.
    pub(super) fn add_otlp(&self, request: &Value) {
        let records = request["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array();
        for record in records.into_iter().flatten() {
            let line = record["body"]["stringValue"].as_str().expect("a body");
            let segment = record["attributes"][0]["value"]["stringValue"].as_str().expect("a segment");
            self.add(segment, line, line);
        }
    }

    fn add(&self, segment: &str, line: &str, text: &str) {
        let value: Value = serde_json::from_str(line).expect("a record");
        let seq = value["seq"].as_u64().expect("a number");
        let (segment, line, text) = (segment.to_owned(), line.to_owned(), text.to_owned());
        self.0.lock().push(Record { segment, seq, line, text });
    }

    /// Returns the number of records that arrived more than once.
    pub(super) fn duplicates(&self) -> usize {
        let records = self.0.lock();
        let mut places: Vec<_> = records.iter().map(|record| (&record.segment, record.seq)).collect();
        places.sort();
        places.dedup();
        records.len() - places.len()
    }

    /// Checks that every record of the log has arrived as it is there, and that the records of each segment arrived in their
    /// order, repetitions apart.
    pub(super) fn has_all(&self, lockhouse: &Lockhouse) -> Result<(), String> {
        self.has_all_of(&lockhouse.segments())
    }

    /// As [`Self::has_all`], of the segments at these paths.
    pub(super) fn has_all_of(&self, segments: &[PathBuf]) -> Result<(), String> {
        let records = self.0.lock().clone();
        let mut arrived = BTreeMap::<&str, Vec<&Record>>::new();
        for record in &records {
            let of_segment = arrived.entry(&record.segment).or_default();
            let is_new = of_segment.iter().all(|earlier| earlier.seq != record.seq);
            if is_new && of_segment.last().is_some_and(|last| last.seq > record.seq) {
                return Err(format!("{}: {} came too late", record.segment, record.seq));
            }
            if is_new {
                of_segment.push(record);
            }
        }
        let mut count = 0;
        for path in segments {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            for line in std::fs::read_to_string(path).map_err(|error| error.to_string())?.lines() {
                let of_segment = arrived.get(name.as_str()).map_or(&[][..], Vec::as_slice);
                if !of_segment.iter().any(|record| record.line == line) {
                    return Err(format!("{name}: not received: {line}"));
                }
                count += 1;
            }
        }
        if count == 0 { Err("the log is empty".into()) } else { Ok(()) }
    }
}

//! One connection of an engine to the audit sink: the chain of its records.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_protocol::Language;
use parking_lot::Mutex;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use super::erasures::Erasures;
use super::forwarding::{MissingDestinations, SinkForwarding};
use super::messages::{FromSink, ToSink, VERSION};
use super::quota::{QuotaError, Quotas};
use crate::AuditError;
use crate::chain_writer::{Peer, Writer};
use crate::hash_chain::{RecordBody, hash};
use crate::moment::Moment;
use crate::program_store::ProgramStore;
use data_encoding::HEXLOWER;

/// Events that the log writes itself.
const OWN_EVENTS: [&str; 5] = ["open", "checkpoint", "close", "gap", "clock"];
/// The event of a record after which a call is made.
const CALL: &str = "call";
/// Members that the log adds to a record itself.
const OWN_MEMBERS: [&str; 6] = ["seq", "prev", "time", "key", "next", "signature"];

/// A connection, and the segment that it writes.
#[derive(Debug)]
pub(super) struct SinkConnection {
    pub(super) peer: Peer,
    pub(super) writer: Mutex<Writer>,
    pub(super) programs: Arc<ProgramStore>,
    pub(super) quotas: Arc<Mutex<Quotas>>,
    /// Held while a segment begins: connections wait here for each other, and not with the limited time of the index's lock.
    pub(super) beginning: Arc<Mutex<()>>,
    pub(super) forwarding: Arc<SinkForwarding>,
    pub(super) erasures: Arc<Erasures>,
    /// Whether the peer is a sandboxed upstream server, or cannot be told from one.
    pub(super) is_sandboxed: bool,
    /// Maximum age of an undelivered record that the configuration of the engine permits, if it has one.
    pub(super) within: Mutex<Option<Duration>>,
}

impl SinkConnection {
    /// Serves the engine until it closes the connection, or sends what is not a message.
    pub(super) fn serve(&self, stream: &UnixStream) -> io::Result<()> {
        let (mut reader, mut answers) = (BufReader::new(stream), stream);
        let mut is_greeted = false;
        while let Some(message) = ToSink::read(&mut reader)? {
            let written = match message {
                ToSink::Hello(_) if self.is_sandboxed => Err(SinkRefusal::Sandboxed(self.peer.pid)),
                ToSink::Hello(VERSION) => {
                    is_greeted = true;
                    Ok(())
                }
                ToSink::Hello(version) => Err(SinkRefusal::Version(version)),
                _ if !is_greeted => return Err(io::ErrorKind::InvalidData.into()),
                ToSink::Record(record) => self.append(&record),
                ToSink::Program { language, text } => self.keep(language, &text),
                ToSink::Gap(missed) => {
                    self.writer.lock().record_gap(Moment::now(), missed.records, missed.reason);
                    Ok(())
                }
                ToSink::Ids => {
                    self.writer.lock().write_ids();
                    Ok(())
                }
                ToSink::Erase(names) => Ok(self.erasures.erase(self.peer.uid, names)?),
                ToSink::Forwarding(required) => {
                    *self.within.lock() = required.within_s.map(Duration::from_secs);
                    let forwards = self.forwarding.check_destinations(&required.destinations);
                    forwards.map_err(SinkRefusal::from).and_then(|()| self.check_delivery())
                }
            };
            let answer = match written {
                Ok(()) => FromSink::Written,
                Err(SinkRefusal::Undelivered(late)) => FromSink::Undelivered(late.to_string()),
                Err(refusal) => FromSink::Refused(refusal.to_string()),
            };
            answer.write(&mut answers)?;
        }
        Ok(())
    }

    fn append(&self, record: &str) -> Result<(), SinkRefusal> {
        if check_record(record).map_err(SinkRefusal::Record)? == CALL {
            self.check_delivery()?;
        }
        self.quotas.lock().write(self.peer.uid, record.len(), Instant::now())?;
        let mut writer = self.writer.lock();
        let _turn = writer.begins_segment().then(|| self.beginning.lock());
        Ok(writer.append(Moment::now(), &RecordBody::from_object(record))?)
    }

    fn check_delivery(&self) -> Result<(), SinkRefusal> {
        let within = *self.within.lock();
        self.forwarding.check_delivery(within).map_err(SinkRefusal::Undelivered)
    }

    fn keep(&self, language: Language, text: &str) -> Result<(), SinkRefusal> {
        let hash = HEXLOWER.encode(&hash(text.as_bytes()));
        if self.programs.is_kept(language, &hash) {
            return Ok(());
        }
        self.quotas.lock().write(self.peer.uid, text.len(), Instant::now())?;
        Ok(self.programs.keep(language, text, &hash)?)
    }
}

/// Why the sink did not write a record or a program. The words reach the user of the engine.
#[derive(Debug, thiserror::Error)]
enum SinkRefusal {
    #[error(
        "the engine speaks version {0} of its messages, and the sink version {VERSION}: install the same build"
    )]
    Version(u32),
    #[error(
        "the process {0} is a sandboxed server, which may not write records, or the account of the sink cannot read /proc/{0}/limits"
    )]
    Sandboxed(i32),
    #[error("the record is not valid: {0}")]
    Record(serde_json::Error),
    #[error(transparent)]
    Quota(#[from] QuotaError),
    #[error("the log cannot be written: {0}")]
    Write(#[from] io::Error),
    #[error(transparent)]
    Destinations(#[from] MissingDestinations),
    #[error(transparent)]
    Undelivered(AuditError),
}

/// Checks that a record is one JSON object on one line, begins with its event, and has neither a member twice nor one that the
/// log adds: readers of the log would otherwise take what an engine claims for what the sink states. Returns the event.
pub(super) fn check_record(record: &str) -> Result<String, serde_json::Error> {
    if record.contains(['\n', '\r']) || !record.starts_with("{\"event\":\"") || !record.ends_with('}') {
        return Err(serde_json::Error::custom("it is not an object on one line that begins with its event"));
    }
    let mut deserializer = serde_json::Deserializer::from_str(record);
    let event = deserializer.deserialize_map(RecordVisitor)?;
    deserializer.end().map(|()| event)
}

struct RecordVisitor;

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an audit record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<String, A::Error> {
        let (mut seen, mut event) = (HashSet::new(), String::new());
        while let Some(name) = members.next_key::<String>()? {
            if name == "event" {
                event = members.next_value()?;
                if OWN_EVENTS.contains(&event.as_str()) {
                    return Err(A::Error::custom(format_args!("only the log writes the event {event}")));
                }
            } else {
                members.next_value::<serde::de::IgnoredAny>()?;
            }
            if OWN_MEMBERS.contains(&name.as_str()) {
                return Err(A::Error::custom(format_args!("only the log adds the member {name}")));
            }
            if !seen.insert(name) {
                return Err(A::Error::custom("it has a member twice"));
            }
        }
        Ok(event)
    }
}

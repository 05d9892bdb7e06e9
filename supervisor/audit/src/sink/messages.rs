//! The messages between an engine and the audit sink. Each is a length (4 bytes, big-endian), a kind (1 byte) and a content. Each
//! message of an engine has one answer.

use std::io::{self, Read, Write};

use lockhouse_protocol::Language;
use serde::{Deserialize, Serialize};

/// Version of these messages. Engine and sink may be of different builds; an engine of another version is refused.
pub(super) const VERSION: u32 = 1;
/// Maximum size of a record that the sink accepts, in bytes.
/// Bound: the audit log.
pub(super) const RECORD_BYTES_MAX: usize = 512 * 1024;
/// Maximum size of a program that the sink accepts, in bytes. Longer programs are not stored.
/// Bound: the audit log.
pub(super) const PROGRAM_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum size of an answer of the sink, in bytes.
const ANSWER_BYTES_MAX: usize = 4 * 1024;
/// Maximum size of what an engine requires of the delivery, in bytes.
const FORWARDING_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of the names that are erased at once, in bytes.
const NAMES_BYTES_MAX: usize = 16 * 1024;

const HELLO: u8 = 0;
const RECORD: u8 = 1;
const PROGRAM: u8 = 2;
const GAP: u8 = 3;
const FORWARDING: u8 = 4;
const IDS: u8 = 5;
const ERASE: u8 = 6;
const WRITTEN: u8 = 0;
const REFUSED: u8 = 1;
const UNDELIVERED: u8 = 2;

/// A message of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToSink {
    /// The first message of a connection, with [`VERSION`].
    Hello(u32),
    /// The members of a record from `event` on, as a JSON object.
    Record(String),
    /// A program that is about to run.
    Program { language: Language, text: String },
    /// Records before this message that the sink did not get.
    Gap(MissedRecords),
    /// What the configuration of the engine requires of the delivery of its records. The answer also says whether a call
    /// may be made now.
    Forwarding(RequiredForwarding),
    /// The records after this message get ids in place of the names of clients.
    Ids,
    /// Names of clients that the records of this account have, and that are erased.
    Erase(Vec<String>),
}

/// How the records of an engine must be forwarded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequiredForwarding {
    /// The destinations, as the configuration names them.
    pub(crate) destinations: Vec<String>,
    /// Maximum age of an undelivered record in seconds, beyond which no call may be made.
    pub(crate) within_s: Option<u64>,
}

/// Records that an engine could not send to the sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MissedRecords {
    pub(super) records: u64,
    pub(super) reason: String,
}

/// An answer of the sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FromSink {
    /// The kernel has the record or the program.
    Written,
    /// Why it was not written.
    Refused(String),
    /// The record is that of a call, and was not written because a destination is behind by more than is permitted.
    Undelivered(String),
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn write(to: &mut impl Write, kind: u8, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).map_err(|_| invalid("the message is too long"))?;
    let mut bytes = Vec::with_capacity(content.len() + 5);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(content);
    to.write_all(&bytes)
}

/// Reads a message whose content has at most `bytes_max(KIND)` bytes. Returns `None` if the peer closed the connection.
fn read(from: &mut impl Read, bytes_max: fn(u8) -> usize) -> io::Result<Option<(u8, String)>> {
    let mut header = [0; 5];
    match from.read(&mut header[..1])? {
        0 => return Ok(None),
        _ => from.read_exact(&mut header[1..])?,
    }
    let [length @ .., kind] = header;
    let length = u32::from_be_bytes(length) as usize;
    if length > bytes_max(kind) {
        return Err(invalid("the message is too long, or of an unknown kind"));
    }
    let mut content = Vec::new();
    // Memory grows with what arrives, and not with the length that the peer states.
    if from.take(length as u64).read_to_end(&mut content)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let text = String::from_utf8(content).map_err(|_| invalid("the message is not UTF-8"))?;
    Ok(Some((kind, text)))
}

fn shortened(reason: &str) -> &[u8] {
    &reason.as_bytes()[..reason.floor_char_boundary(ANSWER_BYTES_MAX)]
}

impl ToSink {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Hello(version) => write(to, HELLO, version.to_string().as_bytes()),
            Self::Record(body) => write(to, RECORD, body.as_bytes()),
            Self::Program { language, text } => {
                write(to, PROGRAM, format!("{}\n{text}", language.as_str()).as_bytes())
            }
            Self::Gap(missed) => write(to, GAP, &serde_json::to_vec(missed)?),
            Self::Forwarding(required) => write(to, FORWARDING, &serde_json::to_vec(required)?),
            Self::Ids => write(to, IDS, b""),
            Self::Erase(names) => write(to, ERASE, &serde_json::to_vec(names)?),
        }
    }

    /// Reads a message. Returns `None` if the engine closed the connection.
    ///
    /// # Errors
    /// Also if the message is not valid: the connection must then be closed.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let bytes_max = |kind| match kind {
            HELLO => 16,
            RECORD => RECORD_BYTES_MAX,
            PROGRAM => PROGRAM_BYTES_MAX + 32,
            GAP => ANSWER_BYTES_MAX,
            FORWARDING => FORWARDING_BYTES_MAX,
            ERASE => NAMES_BYTES_MAX,
            _ => 0,
        };
        let Some((kind, content)) = read(from, bytes_max)? else { return Ok(None) };
        Ok(Some(match kind {
            HELLO => Self::Hello(content.parse().map_err(|_| invalid("no version"))?),
            RECORD => Self::Record(content),
            PROGRAM => {
                let (language, text) = content.split_once('\n').ok_or_else(|| invalid("no language"))?;
                let all = [Language::Python, Language::Typescript];
                let language = all.into_iter().find(|known| known.as_str() == language);
                let language = language.ok_or_else(|| invalid("an unknown language"))?;
                Self::Program { language, text: text.to_owned() }
            }
            GAP => Self::Gap(serde_json::from_str(&content)?),
            FORWARDING => Self::Forwarding(serde_json::from_str(&content)?),
            IDS => Self::Ids,
            ERASE => Self::Erase(serde_json::from_str(&content)?),
            _ => return Err(invalid("an unknown kind of message")),
        }))
    }
}

impl FromSink {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Written => write(to, WRITTEN, b""),
            Self::Refused(reason) => write(to, REFUSED, shortened(reason)),
            Self::Undelivered(reason) => write(to, UNDELIVERED, shortened(reason)),
        }
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        match read(from, |_| ANSWER_BYTES_MAX)? {
            Some((WRITTEN, _)) => Ok(Self::Written),
            Some((REFUSED, reason)) => Ok(Self::Refused(reason)),
            Some((UNDELIVERED, reason)) => Ok(Self::Undelivered(reason)),
            Some(_) => Err(invalid("an unknown answer")),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

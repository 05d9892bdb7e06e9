//! The side of an engine: sends records to the audit sink, and waits for each answer.
//!
//! A sink that is away or slow makes calls fail, and does not hold them up: one call waits at most [`ANSWER_TIMEOUT`], and later
//! calls fail at once until the sink answers again.

use std::io::{self, Read as _, Write};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lockhouse_protocol::Language;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

use super::messages::{
    FromSink, MissedRecords, PROGRAM_BYTES_MAX, RECORD_BYTES_MAX, RequiredForwarding, ToSink, VERSION,
};
use crate::AuditError;
use crate::hash_chain::RecordBody;

/// Maximum time that one call waits for the audit sink.
/// Bound: the audit log.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum time between two attempts to connect to an audit sink that is away.
/// Bound: the audit log.
const RECONNECT_AFTER: Duration = Duration::from_secs(1);
/// Maximum number of characters of the reason in the record of missed records.
const REASON_CHARS_MAX: usize = 500;

/// The connection of an engine to the audit sink.
#[derive(Debug)]
pub(crate) struct SinkClient {
    path: PathBuf,
    required: RequiredForwarding,
    connection: Option<UnixStream>,
    /// When the sink may be tried again. `None` if it was not away.
    retry_at: Option<Instant>,
    /// Why the sink refused the last connection. `None` if it did not.
    refusal: Option<String>,
    /// Records that the sink does not have, of which its log gets a `gap` record.
    missed: Option<MissedRecords>,
    /// Whether records have ids in place of the names of clients.
    writes_ids: bool,
}

impl SinkClient {
    /// Returns a client that connects with the first record to the socket at `path`.
    pub(crate) fn new(path: PathBuf, required: RequiredForwarding) -> Self {
        Self {
            path,
            required,
            connection: None,
            retry_at: None,
            refusal: None,
            missed: None,
            writes_ids: false,
        }
    }

    /// Lets the sink write ids in place of the names of clients.
    pub(crate) fn writing_ids(self) -> Self {
        Self { writes_ids: true, ..self }
    }

    /// Erases names of the records of this account.
    ///
    /// # Errors
    /// [`AuditError::Write`] if the sink is away or could not erase them.
    pub(crate) fn erase_names(&mut self, names: &[String]) -> Result<(), AuditError> {
        let answer = self.exchange(&ToSink::Erase(names.to_vec()));
        self.result_of(answer)
    }

    /// Sends a record. After success, the kernel has it in the file of the log.
    ///
    /// # Errors
    /// [`AuditError::Write`] if the sink is away, does not answer in time, or refuses the record. The next record that it
    /// accepts follows a `gap`. [`AuditError::UndeliveredBySink`] if the record is that of a call, and a destination is
    /// behind.
    pub(crate) fn append(&mut self, body: &RecordBody) -> Result<(), AuditError> {
        let text = body.as_object();
        let answer = match text.len() > RECORD_BYTES_MAX {
            true => Err(io::Error::other(format!("the record has more than {RECORD_BYTES_MAX} bytes"))),
            false => self.exchange(&ToSink::Record(text)),
        };
        let sent = self.result_of(answer);
        if let Err(AuditError::Write { source, .. }) = &sent {
            let missed = self.missed.get_or_insert(MissedRecords { records: 0, reason: String::new() });
            missed.records += 1;
            missed.reason = source.to_string().chars().take(REASON_CHARS_MAX).collect();
        }
        sent
    }

    /// Asks the sink whether a call may be made now.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub(crate) fn check_delivery(&mut self) -> Result<(), AuditError> {
        let answer = self.exchange(&ToSink::Forwarding(self.required.clone()));
        self.result_of(answer)
    }

    fn result_of(&self, answer: io::Result<FromSink>) -> Result<(), AuditError> {
        match answer.and_then(without_refusal) {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(AuditError::UndeliveredBySink { reason }),
            Err(source) => Err(AuditError::Write { path: self.path.clone(), source }),
        }
    }

    /// Sends a program, which the sink stores beside its log.
    pub(crate) fn keep(&mut self, language: Language, text: &str) -> io::Result<()> {
        if text.len() > PROGRAM_BYTES_MAX {
            return Err(io::Error::other(format!("the program has more than {PROGRAM_BYTES_MAX} bytes")));
        }
        let answer = self.exchange(&ToSink::Program { language, text: text.to_owned() })?;
        without_refusal(answer).map(drop)
    }

    /// Whether the sink can be reached now.
    pub(crate) fn is_reachable(&mut self) -> bool {
        self.connected(Instant::now() + ANSWER_TIMEOUT).is_ok()
    }

    /// Ends the connection, and with it its segment.
    pub(crate) fn close(&mut self) {
        self.connection = None;
    }

    fn exchange(&mut self, message: &ToSink) -> io::Result<FromSink> {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        self.connected(deadline)?;
        if let Some(missed) = self.missed.clone() {
            without_refusal(self.ask(&ToSink::Gap(missed), deadline)?)?;
            self.missed = None;
        }
        self.ask(message, deadline)
    }

    /// Connects if there is no connection, or the sink has closed it. There is a connection afterwards only if the sink
    /// speaks the same messages and forwards the log as the configuration requires.
    fn connected(&mut self, deadline: Instant) -> io::Result<()> {
        if self.connection.as_ref().is_some_and(is_open) {
            return Ok(());
        }
        self.connection = None;
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return Err(match &self.refusal {
                Some(refusal) => io::Error::other(refusal.clone()),
                None => away(&self.path, &io::ErrorKind::NotConnected.into()),
            });
        }
        self.retry_at = Some(Instant::now() + RECONNECT_AFTER);
        self.refusal = None;
        self.connection = Some(connect_to(&self.path).map_err(|error| away(&self.path, &error))?);
        self.greet(deadline).inspect_err(|_| self.connection = None)?;
        self.retry_at = None;
        Ok(())
    }

    fn greet(&mut self, deadline: Instant) -> io::Result<()> {
        let mut greetings = vec![ToSink::Hello(VERSION)];
        if self.required != RequiredForwarding::default() {
            greetings.push(ToSink::Forwarding(self.required.clone()));
        }
        if self.writes_ids {
            greetings.push(ToSink::Ids);
        }
        for greeting in greetings {
            let answer = self.ask(&greeting, deadline)?;
            // A destination may be behind: only calls depend on that.
            without_refusal(answer).inspect_err(|refusal| self.refusal = Some(refusal.to_string()))?;
        }
        Ok(())
    }

    /// Sends a message and reads the answer. After an error, the connection is closed: an answer that arrives later would be
    /// taken for that of another message.
    fn ask(&mut self, message: &ToSink, deadline: Instant) -> io::Result<FromSink> {
        let answer = match &self.connection {
            Some(connection) => {
                let mut connection = WithDeadline { connection, deadline };
                message.write(&mut connection).and_then(|()| FromSink::read(&mut connection))
            }
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        answer.map_err(|error| {
            self.connection = None;
            self.retry_at = Some(Instant::now() + RECONNECT_AFTER);
            away(&self.path, &error)
        })
    }
}

/// Returns the refusal of the sink as an error, and otherwise why a call may not be made. `None` if it may.
fn without_refusal(answer: FromSink) -> io::Result<Option<String>> {
    match answer {
        FromSink::Written => Ok(None),
        FromSink::Undelivered(reason) => Ok(Some(reason)),
        FromSink::Refused(reason) => Err(io::Error::other(format!("the audit sink: {reason}"))),
    }
}

fn away(path: &Path, error: &io::Error) -> io::Error {
    let what = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("it did not answer within {} s", ANSWER_TIMEOUT.as_secs())
        }
        _ => error.to_string(),
    };
    io::Error::new(
        error.kind(),
        format!(
            "the audit sink at {} is away ({what}): start lockhouse-audit.service, or ask its administrator",
            path.display()
        ),
    )
}

/// Whether the sink has not closed the connection. A sink sends nothing of its own accord.
fn is_open(connection: &UnixStream) -> bool {
    let mut one = [0];
    let read = connection.set_nonblocking(true).and_then(|()| {
        let read = (&*connection).read(&mut one);
        connection.set_nonblocking(false).and(read)
    });
    read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Connects without waiting: if the sink accepts no connections, the queue of its socket may be full.
fn connect_to(path: &Path) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket: OwnedFd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A connection whose reads and writes end at a point in time.
struct WithDeadline<'a> {
    connection: &'a UnixStream,
    deadline: Instant,
}

impl WithDeadline<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl io::Read for WithDeadline<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.connection.set_read_timeout(self.left()?)?;
        self.connection.read(buffer)
    }
}

impl Write for WithDeadline<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.connection.set_write_timeout(self.left()?)?;
        self.connection.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

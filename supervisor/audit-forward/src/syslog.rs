//! Sends records to a syslog server over TLS (RFC 5425), as messages of RFC 5424.
//!
//! Syslog has no acknowledgements. A batch counts as delivered when the machine of the server has acknowledged its bytes,
//! [`SETTLE_TIME`] has passed since it was sent, and the connection is still open. After a lost connection, everything that
//! does not count as delivered is sent again. What a server loses after that, nobody can see.

use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use lockhouse_base::host_name::host_name;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::ForwardFormat;
use crate::acceptance::Acceptance;
use crate::delivery_error::{DeliveryError, TlsError};
use crate::message::{Severity, texts};
use crate::segment_reader::{Batch, OutgoingRecord};
use crate::tls::{TlsFiles, client_config};

/// How long the connection to a syslog server must stay open after a batch, before the batch counts as delivered.
/// Bound: the audit log.
const SETTLE_TIME: Duration = Duration::from_secs(5);
/// Maximum time to connect to a syslog server, with TLS, or for it to take one batch.
/// Bound: the audit log.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time in which a server confirms the end of a connection, when this process ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of bytes that are read at once, and discarded: a syslog server has nothing to say.
const READ_BYTES: usize = 4 * 1024;
/// Maximum number of reads at once.
const READS_MAX: usize = 16;
/// The number of the facility *log audit*.
const FACILITY_AUDIT: u8 = 13;
/// Maximum number of characters of a host name in a message (RFC 5424).
const HOST_CHARS_MAX: usize = 255;
/// Maximum number of characters of the kind of a message (RFC 5424).
const MESSAGE_ID_CHARS_MAX: usize = 32;

/// A syslog server.
#[derive(Debug)]
pub(crate) struct SyslogServer {
    host: String,
    port: u16,
    tls: TlsFiles,
    format: ForwardFormat,
    connection: Option<TlsStream<TcpStream>>,
    /// When this connection began. What was sent before was sent over a connection that is lost.
    connected: Instant,
    /// When the server's machine had last acknowledged everything that was sent. `None` if it never had.
    acknowledged: Option<Instant>,
}

impl SyslogServer {
    pub(crate) fn new(host: String, port: u16, tls: TlsFiles, format: ForwardFormat) -> Self {
        Self { host, port, tls, format, connection: None, connected: Instant::now(), acknowledged: None }
    }

    pub(crate) async fn send(&mut self, batch: &Batch) -> Result<Acceptance, DeliveryError> {
        // A server may close a connection that was idle: everything that was sent counts as delivered then.
        let open = self.connection.take().and_then(|mut open| check_open(&mut open).ok().map(|()| open));
        let mut connection = match open {
            Some(connection) => connection,
            None => {
                self.connected = Instant::now();
                timeout(TIMEOUT, self.connect()).await.map_err(|_| DeliveryError::Silent)??
            }
        };
        let mut frames = Vec::new();
        let host = header_field(&host_name().unwrap_or_default(), HOST_CHARS_MAX);
        for record in &batch.records {
            for text in texts(self.format, batch, record) {
                push_frame(&mut frames, &host, record, &text);
            }
        }
        let written = async {
            connection.write_all(&frames).await?;
            connection.flush().await
        };
        let written = timeout(TIMEOUT, written).await.map_err(|_| DeliveryError::Silent)?;
        written.map_err(DeliveryError::Broken)?;
        self.connection = Some(connection);
        Ok(Acceptance::Accepted)
    }

    async fn connect(&self) -> Result<TlsStream<TcpStream>, DeliveryError> {
        let config = Arc::new(client_config(&self.tls)?);
        let name = ServerName::try_from(self.host.clone()).map_err(|_| TlsError::HostName)?;
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(DeliveryError::Connect)?;
        let connection = TlsConnector::from(config).connect(name, stream).await;
        connection.map_err(DeliveryError::Handshake)
    }

    /// Whether a batch counts as delivered.
    pub(crate) fn has_received(&mut self, sent: Instant) -> Result<bool, DeliveryError> {
        let connection = self.connection.as_mut().filter(|_| sent >= self.connected);
        let Some(connection) = connection else { return Err(DeliveryError::Closed) };
        if let Err(error) = check_open(connection) {
            self.connection = None;
            return Err(error);
        }
        let unacknowledged = unacknowledged_bytes(connection.get_ref().0).map_err(DeliveryError::Broken)?;
        if unacknowledged == 0 {
            self.acknowledged = Some(Instant::now());
        }
        Ok(self.acknowledged.is_some_and(|at| at > sent) && sent.elapsed() >= SETTLE_TIME)
    }

    /// Ends the connection, and waits until the server has ended it too. A server that does so in order has read everything:
    /// the kernel would otherwise report a broken connection.
    pub(crate) async fn close(&mut self) -> bool {
        let Some(mut connection) = self.connection.take() else { return false };
        let closing = async {
            connection.shutdown().await?;
            let mut discarded = [0; READ_BYTES];
            for _ in 0..READS_MAX {
                match connection.read(&mut discarded).await {
                    Ok(0) => return io::Result::Ok(true),
                    Ok(_) => {}
                    // The end of the connection without the end of TLS, as many servers leave it out.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
                    Err(error) => return Err(error),
                }
            }
            Ok(false)
        };
        matches!(timeout(CLOSE_TIMEOUT, closing).await, Ok(Ok(true)))
    }
}

/// Checks that the server has not closed the connection. Discards what it sends.
fn check_open(connection: &mut TlsStream<TcpStream>) -> Result<(), DeliveryError> {
    let mut discarded = [0; READ_BYTES];
    for _ in 0..READS_MAX {
        match connection.read(&mut discarded).now_or_never() {
            None => return Ok(()),
            Some(Ok(0)) => return Err(DeliveryError::Closed),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(DeliveryError::Broken(error)),
        }
    }
    Ok(())
}

/// Returns the number of bytes that the kernel has sent or will send, and that the other machine has not acknowledged.
#[allow(unsafe_code, reason = "SIOCOUTQ has no safe wrapper in nix")]
fn unacknowledged_bytes(stream: &TcpStream) -> io::Result<libc::c_int> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which has the number of TIOCOUTQ, writes one `int` to the address, which is valid during the call.
    let result = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { Ok(bytes) } else { Err(io::Error::last_os_error()) }
}

/// Appends a message with its length (RFC 5425, octet counting).
fn push_frame(frames: &mut Vec<u8>, host: &str, record: &OutgoingRecord, text: &str) {
    let priority = u32::from(FACILITY_AUDIT) * 8 + Severity::of(record) as u32;
    let time = humantime::parse_rfc3339(&record.time).ok();
    let time = time.map(|time| humantime::format_rfc3339_micros(time).to_string());
    let time = time.as_deref().unwrap_or("-");
    let event = header_field(&record.event, MESSAGE_ID_CHARS_MAX);
    let message = format!("<{priority}>1 {time} {host} lockhouse - {event} - {text}");
    frames.extend(message.len().to_string().as_bytes());
    frames.push(b' ');
    frames.extend(message.as_bytes());
}

/// Returns a text as a field of a message's header: visible ASCII characters, or `-` if there are none.
fn header_field(text: &str, chars_max: usize) -> String {
    let field: String = text.chars().filter(char::is_ascii_graphic).take(chars_max).collect();
    if field.is_empty() { "-".to_owned() } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_length_a_header_and_the_record() {
        let batch = crate::message::tests::batch("denial", ",\"reason\":\"é\"");
        let mut frames = Vec::new();
        push_frame(&mut frames, "desk-7", &batch.records[0], "{\"é\":1}");
        let text = String::from_utf8(frames).expect("UTF-8");
        let (length, message) = text.split_once(' ').expect("a length");
        assert_eq!(length.parse(), Ok(message.len()));
        assert_eq!(message, "<108>1 2026-01-31T12:00:00.000001Z desk-7 lockhouse - denial - {\"é\":1}");
    }

    #[test]
    fn nothing_in_a_record_changes_the_header() {
        let mut batch = crate::message::tests::batch("call", "");
        (batch.records[0].event, batch.records[0].time) = ("x - y\n<0>1".into(), "now - a b".into());
        let mut frames = Vec::new();
        push_frame(&mut frames, "h", &batch.records[0], "text");
        assert_eq!(
            String::from_utf8_lossy(&frames),
            "41 <110>1 - h lockhouse - x-y<0>1 - text".replace("41", "37")
        );
        assert_eq!(header_field("", 9), "-");
    }
}

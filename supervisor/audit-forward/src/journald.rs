//! Sends records to the systemd journal, in its native protocol: a datagram with fields for each record, or a sealed file in
//! memory if a datagram would be too large. The journal has accepted a datagram when the kernel has taken it.

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::time::timeout;

use crate::ForwardFormat;
use crate::acceptance::Acceptance;
use crate::delivery_error::DeliveryError;
use crate::message::{Severity, texts};
use crate::segment_reader::{Batch, OutgoingRecord};

/// The id of journal entries that are records of the audit log, as `journalctl MESSAGE_ID=…` finds them.
const MESSAGE_ID: &str = "c5a3f4d0e9b24c7d8f6a1b2c3d4e5f60";
/// The number of the facility *log audit* of syslog.
const FACILITY_AUDIT: u8 = 13;
/// Maximum time for the journal to take one record.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The systemd journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    format: ForwardFormat,
    socket: Option<UnixDatagram>,
}

impl Journal {
    pub(crate) fn new(path: PathBuf, format: ForwardFormat) -> Self {
        Self { path, format, socket: None }
    }

    pub(crate) async fn send(&mut self, batch: &Batch) -> Result<Acceptance, DeliveryError> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.connect().map_err(DeliveryError::Connect)?,
        };
        for record in &batch.records {
            for message in texts(self.format, batch, record) {
                let sent = timeout(TIMEOUT, send_entry(&socket, &entry(batch, record, &message))).await;
                sent.map_err(|_| DeliveryError::Silent)?.map_err(DeliveryError::Broken)?;
            }
        }
        self.socket = Some(socket);
        Ok(Acceptance::Accepted)
    }

    /// Returns a connected socket: the kernel wakes its owner when the journal has room again.
    fn connect(&self) -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(&self.path)?;
        Ok(socket)
    }
}

async fn send_entry(socket: &UnixDatagram, entry: &[u8]) -> io::Result<()> {
    match socket.send(entry).await {
        Err(error) if error.raw_os_error() == Some(Errno::EMSGSIZE as i32) => {}
        sent => return sent.map(|_| ()),
    }
    let file = sealed_file(entry)?;
    let send = || {
        let descriptors = [file.as_raw_fd()];
        let message = [ControlMessage::ScmRights(&descriptors)];
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        let nothing = [IoSlice::new(&[])];
        Ok(sendmsg(socket.as_raw_fd(), &nothing, &message, flags, None::<&UnixAddr>)?)
    };
    socket.async_io(Interest::WRITABLE, send).await.map(|_| ())
}

/// Returns a file in memory that nobody can change any more, as the journal requires.
fn sealed_file(content: &[u8]) -> io::Result<OwnedFd> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"lockhouse-audit", flags)?);
    file.write_all(content)?;
    let seals =
        SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}

/// Returns the journal entry of a record.
fn entry(batch: &Batch, record: &OutgoingRecord, message: &str) -> Vec<u8> {
    let mut entry = Vec::with_capacity(message.len() + 512);
    push(&mut entry, "MESSAGE", message);
    push(&mut entry, "MESSAGE_ID", MESSAGE_ID);
    push(&mut entry, "PRIORITY", &(Severity::of(record) as u8).to_string());
    push(&mut entry, "SYSLOG_FACILITY", &FACILITY_AUDIT.to_string());
    push(&mut entry, "SYSLOG_IDENTIFIER", "lockhouse-audit");
    push(&mut entry, "LOCKHOUSE_EVENT", &record.event);
    push(&mut entry, "LOCKHOUSE_SEGMENT", batch.segment.as_str());
    push(&mut entry, "LOCKHOUSE_SEQ", &record.seq.to_string());
    push(&mut entry, "LOCKHOUSE_UID", &batch.uid.to_string());
    entry
}

/// Appends a field. A value with a line feed is written with its length, so that no value can add a field.
fn push(entry: &mut Vec<u8>, name: &str, value: &str) {
    entry.extend(name.as_bytes());
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend((value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend(value.as_bytes());
    entry.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_adds_a_field() {
        let mut batch = crate::message::tests::batch("denial", "");
        batch.records[0].event = "a\nPRIORITY=7".into();
        let entry = entry(&batch, &batch.records[0], "text");
        let text = String::from_utf8_lossy(&entry);
        assert!(text.starts_with("MESSAGE=text\nMESSAGE_ID="), "{text}");
        let length = [b"LOCKHOUSE_EVENT\n", &12_u64.to_le_bytes()[..], b"a\nPRIORITY=7\nLOCKHOUSE"].concat();
        assert!(entry.windows(length.len()).any(|part| part == length), "{text}");
    }
}

//! A socket that receives datagrams as the systemd journal does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IoSliceMut, Read as _, Seek as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixDatagram;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, recvmsg};

use super::received::Received;

/// Largest datagram that the socket takes.
const DATAGRAM_BYTES_MAX: usize = 256 * 1024;

pub(super) struct Journal {
    directory: tempfile::TempDir,
    received: Received,
}

impl Journal {
    /// Starts to receive, until the test ends.
    pub(super) fn start() -> Self {
        let journal =
            Self { directory: tempfile::tempdir().expect("a directory"), received: Received::default() };
        let socket = UnixDatagram::bind(journal.directory.path().join("socket")).expect("a socket");
        let received = journal.received();
        std::thread::spawn(move || {
            loop {
                let entry = receive(&socket);
                let fields = fields(&entry);
                assert_eq!(fields["SYSLOG_FACILITY"], "13", "{fields:?}");
                assert_eq!(fields["SYSLOG_IDENTIFIER"], "lockhouse-audit", "{fields:?}");
                assert!(fields["PRIORITY"].parse::<u8>().is_ok() && fields["MESSAGE_ID"].len() == 32);
                let place = format!("\"{}\"", fields["LOCKHOUSE_SEGMENT"]);
                assert!(fields["MESSAGE"].contains(&place), "{fields:?}");
                received.add_text(&fields["MESSAGE"]);
            }
        });
        journal
    }

    pub(super) fn destination(&self) -> String {
        format!("journald:{}", self.directory.path().join("socket").display())
    }

    pub(super) fn received(&self) -> Received {
        self.received.clone()
    }
}

/// Receives an entry: a datagram, or a file whose descriptor came with an empty datagram.
#[allow(unsafe_code, reason = "a descriptor arrives as a bare number")]
fn receive(socket: &UnixDatagram) -> Vec<u8> {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    let mut space = nix::cmsg_space!(std::os::fd::RawFd);
    let (bytes, file) = {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let message =
            recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty());
        let message = message.expect("a datagram");
        let mut file = None;
        for control in message.cmsgs().expect("control messages") {
            if let ControlMessageOwned::ScmRights(descriptors) = control {
                // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
                file = descriptors.first().map(|number| unsafe { OwnedFd::from_raw_fd(*number) });
            }
        }
        (message.bytes, file)
    };
    buffer.truncate(bytes);
    if let Some(file) = file {
        assert_eq!(bytes, 0, "an entry in a file has an empty datagram");
        let mut file = File::from(file);
        file.rewind().expect("the start");
        file.read_to_end(&mut buffer).expect("the entry");
    }
    buffer
}

/// Parses the fields of an entry. No value in these tests has a line feed.
fn fields(entry: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8(entry.to_vec()).expect("text");
    let field = |line: &str| {
        let (name, value) = line.split_once('=').expect("a field");
        (name.to_owned(), value.to_owned())
    };
    text.lines().map(field).collect()
}

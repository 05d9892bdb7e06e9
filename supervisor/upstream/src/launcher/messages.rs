//! The messages between the engine and a launcher: JSON text after its length in four bytes (big endian). With the length of a
//! request, the engine passes the server's ends of the pipes.
#![allow(unsafe_code, reason = "descriptors arrive as bare numbers")]

use std::io::{ErrorKind, IoSlice, IoSliceMut, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use lockhouse_base::plain_text::plain_text;
use lockhouse_protocol::ServerName;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

use crate::child_process::ProcessEnd;
use crate::definition::ServerCommand;

/// Maximum size of a request in bytes: the arguments and environment of a server.
/// Bound: upstream servers.
const REQUEST_BYTES_MAX: usize = 1024 * 1024;
/// Maximum size of a report in bytes. It comes from a process of the person.
/// Bound: upstream servers.
const REPORT_BYTES_MAX: usize = 8 * 1024;
/// Maximum length of the reason in a report, in characters.
const REASON_CHARS_MAX: usize = 1_000;
const LENGTH_BYTES: usize = 4;

/// Asks a launcher to start a process.
#[derive(Serialize, Deserialize)]
pub(super) enum LaunchRequest {
    Server {
        name: ServerName,
        command: ServerCommand,
    },
    /// The helper that uses files of the person for the server `files`. It reaches these folders and no others.
    FileHelper {
        read: Vec<PathBuf>,
        write: Vec<PathBuf>,
    },
}

/// What a launcher says about its server: that it has started or why not, and then how it ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LaunchReport {
    Started,
    Failed(String),
    /// The program cannot be executed with or without the sandbox of the server.
    NotExecutable(String),
    Ended(ProcessEnd),
}

/// Sends a request with the descriptors of the server's standard input, output and error.
///
/// # Errors
/// `InvalidInput`: the request is too long. Otherwise the launcher has ended.
pub(super) async fn send_request(
    connection: &mut UnixStream,
    request: &LaunchRequest,
    descriptors: [&OwnedFd; 3],
) -> Result<()> {
    let text = serde_json::to_vec(request)?;
    if text.len() > REQUEST_BYTES_MAX {
        return Err(ErrorKind::InvalidInput.into());
    }
    let length = (text.len() as u32).to_be_bytes();
    let numbers = descriptors.map(AsRawFd::as_raw_fd);
    let send = || send_length(connection.as_fd(), length, &numbers);
    connection.async_io(Interest::WRITABLE, send).await?;
    connection.write_all(&text).await
}

/// Receives a request. `None` if the engine needs no further server of this launcher.
///
/// # Errors
/// The engine has ended, or does not keep to the protocol.
pub(super) async fn receive_request(
    connection: &mut UnixStream,
) -> Result<Option<(LaunchRequest, [OwnedFd; 3])>> {
    let receive = || receive_length(connection.as_fd());
    let Some((length, descriptors)) = connection.async_io(Interest::READABLE, receive).await? else {
        return Ok(None);
    };
    let request = receive_text(connection, length, REQUEST_BYTES_MAX).await?;
    Ok(Some((request, descriptors)))
}

/// Sends a report.
///
/// # Errors
/// The engine has ended.
pub(super) async fn send_report(
    connection: &mut (impl AsyncWrite + Unpin),
    report: &LaunchReport,
) -> Result<()> {
    let text = serde_json::to_vec(report)?;
    let length = (text.len() as u32).to_be_bytes();
    connection.write_all(&[length.as_slice(), &text].concat()).await
}

/// Receives a report.
///
/// # Errors
/// The launcher has ended, or does not keep to the protocol.
pub(super) async fn receive_report(connection: &mut (impl AsyncRead + Unpin)) -> Result<LaunchReport> {
    let length = connection.read_u32().await?;
    let report = receive_text(connection, length, REPORT_BYTES_MAX).await?;
    Ok(match report {
        LaunchReport::Failed(reason) => LaunchReport::Failed(plain_text(&reason, REASON_CHARS_MAX)),
        LaunchReport::NotExecutable(reason) => {
            LaunchReport::NotExecutable(plain_text(&reason, REASON_CHARS_MAX))
        }
        report @ (LaunchReport::Started | LaunchReport::Ended(_)) => report,
    })
}

async fn receive_text<M: DeserializeOwned>(
    connection: &mut (impl AsyncRead + Unpin),
    length: u32,
    bytes_max: usize,
) -> Result<M> {
    let length = usize::try_from(length).ok().filter(|length| *length <= bytes_max);
    let mut text = vec![0; length.ok_or(ErrorKind::InvalidData)?];
    connection.read_exact(&mut text).await?;
    Ok(serde_json::from_slice(&text)?)
}

fn send_length(
    connection: BorrowedFd<'_>,
    length: [u8; LENGTH_BYTES],
    descriptors: &[RawFd; 3],
) -> Result<()> {
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let control = [ControlMessage::ScmRights(descriptors)];
    match sendmsg::<()>(connection.as_raw_fd(), &[IoSlice::new(&length)], &control, flags, None)? {
        LENGTH_BYTES => Ok(()),
        _ => Err(ErrorKind::WriteZero.into()),
    }
}

fn receive_length(connection: BorrowedFd<'_>) -> Result<Option<(u32, [OwnedFd; 3])>> {
    let (mut length, mut space) = ([0; LENGTH_BYTES], nix::cmsg_space!([RawFd; 3]));
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let mut parts = [IoSliceMut::new(&mut length)];
    let message = recvmsg::<()>(connection.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in message.cmsgs().into_iter().flatten() {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just created these descriptors for this process, and nothing else knows their
            // numbers.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    match message.bytes {
        0 => Ok(None),
        LENGTH_BYTES => {
            let descriptors = descriptors.try_into().map_err(|_| ErrorKind::InvalidData)?;
            Ok(Some((u32::from_be_bytes(length), descriptors)))
        }
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

//! Sends and receives the first message in each direction of a connection: the length in four bytes (big endian), and the
//! message as JSON. All versions of the protocol begin so.

use std::io::{Error, ErrorKind, Result};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum length of a greeting or its reply, in bytes.
const BYTES_MAX: usize = 16 * 1024;

/// Writes a greeting or its reply.
///
/// # Errors
/// The connection is broken.
pub async fn write(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> Result<()> {
    write_json(to, serde_json::to_vec(message)?).await
}

/// Writes a greeting that ends with a line feed, so that a process which expects a line does not wait for the rest of it.
///
/// # Errors
/// The connection is broken.
pub(crate) async fn write_line(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> Result<()> {
    let mut json = serde_json::to_vec(message)?;
    json.push(b'\n');
    write_json(to, json).await
}

async fn write_json(to: &mut (impl AsyncWrite + Unpin), json: Vec<u8>) -> Result<()> {
    let length = u32::try_from(json.len()).map_err(|_| ErrorKind::InvalidInput)?;
    to.write_all(&[&length.to_be_bytes()[..], &json].concat()).await
}

/// Reads a greeting or its reply. Returns `None` if the peer has closed the connection.
///
/// # Errors
/// The connection is broken, or the message is too long or none that this build knows.
pub async fn read<M: DeserializeOwned>(from: &mut (impl AsyncRead + Unpin)) -> Result<Option<M>> {
    let mut length = [0; 4];
    if from.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut length[1..]).await?;
    let length = u32::from_be_bytes(length) as usize;
    if length > BYTES_MAX {
        return Err(Error::new(ErrorKind::InvalidData, "the first message is too long"));
    }
    let mut json = vec![0; length];
    from.read_exact(&mut json).await?;
    Ok(Some(serde_json::from_slice(&json)?))
}

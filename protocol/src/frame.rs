//! Encodes and decodes frames. A frame is a length of four bytes, little endian, followed by one message in bincode's
//! fixed-width encoding.
//!
//! The length is checked before anything is allocated or decoded, and a message must fill its frame exactly. Only this
//! file depends on bincode. Another codec that produces the same bytes can replace bincode here.

use bincode::error::DecodeError;
use bincode::serde::decode_from_slice;
use serde::{Serialize, de::DeserializeOwned};

const LENGTH_BYTES: usize = 4;

/// Small frames: the maximum length of the message in bytes, and the maximum number of bytes that bincode may allocate
/// for it. The limit depends on the length, so that a short frame that claims to contain a long text cannot cause a
/// large allocation. It exceeds the length, because elements of containers take more space in memory than in the frame.
const SMALL: (usize, usize) = (64 * 1024, 1024 * 1024);
/// The maximum message length and the maximum allocation for medium frames, in bytes, as [`SMALL`] has them
/// for small frames.
const MEDIUM: (usize, usize) = (1024 * 1024, 8 * 1024 * 1024);
/// The maximum number of bytes that bincode may allocate for the message in a large frame, which is longer
/// than the length in [`MEDIUM`].
const LARGE_ALLOCATION: usize = 64 * 1024 * 1024;

/// Returns the configuration of bincode: little endian, fixed-width integers, lengths of eight bytes. `ALLOCATION` is
/// the maximum number of bytes that decoding may allocate.
fn encoding<const ALLOCATION: usize>() -> impl bincode::config::Config {
    bincode::config::legacy().with_limit::<ALLOCATION>()
}

fn decode_body<T: DeserializeOwned>(body: &[u8]) -> Result<(T, usize), DecodeError> {
    match body.len() {
        length if length <= SMALL.0 => decode_from_slice(body, encoding::<{ SMALL.1 }>()),
        length if length <= MEDIUM.0 => decode_from_slice(body, encoding::<{ MEDIUM.1 }>()),
        _ => decode_from_slice(body, encoding::<LARGE_ALLOCATION>()),
    }
}

/// Returns a description of a decoding error in plain language, because bincode's own error texts are in Rust's debug
/// format.
fn describe(error: DecodeError) -> String {
    match error {
        DecodeError::OtherString(words) => words,
        DecodeError::Other(words) => words.to_owned(),
        DecodeError::UnexpectedEnd { .. } => "it ends too early".to_owned(),
        DecodeError::LimitExceeded => "it claims to hold more than its length allows".to_owned(),
        DecodeError::Utf8 { .. } => "a text is not valid UTF-8".to_owned(),
        DecodeError::InvalidBooleanValue(byte) => format!("the byte {byte} is neither true nor false"),
        DecodeError::UnexpectedVariant { found, .. } => format!("there is no variant {found}"),
        _ => "it has an unexpected form".to_owned(),
    }
}

/// Why bytes are not a valid frame, or a message cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The message in the frame is longer than the limit.
    #[error("a message of {bytes} bytes exceeds the limit of {limit} bytes")]
    TooLarge {
        /// The length of the message in bytes, without the four bytes of the frame's length.
        bytes: u64,
        /// The maximum length of a message in bytes, without the four bytes of the frame's length.
        limit: u32,
    },
    /// The bytes in the frame are not a message of the expected type. The text is the reason.
    #[error("the bytes are not a valid message: {0}")]
    Malformed(String),
}

/// Encodes one message as a frame.
///
/// # Errors
/// [`FrameError::TooLarge`] if the encoded message exceeds `limit` bytes.
pub fn encode<T: Serialize>(message: &T, limit: u32) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; LENGTH_BYTES];
    bincode::serde::encode_into_std_write(message, &mut frame, encoding::<LARGE_ALLOCATION>())
        .map_err(|error| FrameError::Malformed(error.to_string()))?;
    let bytes = (frame.len() - LENGTH_BYTES) as u64;
    match u32::try_from(bytes) {
        Ok(length) if length <= limit => frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes()),
        _ => return Err(FrameError::TooLarge { bytes, limit }),
    }
    Ok(frame)
}

/// Decodes a datagram that contains exactly one frame: the four bytes of its length and a message of at most `limit`
/// bytes.
///
/// # Errors
/// [`FrameError`] if the datagram is not exactly one valid frame.
pub fn decode<T: DeserializeOwned>(datagram: &[u8], limit: u32) -> Result<T, FrameError> {
    let mut decoder = FrameDecoder::new(limit);
    decoder.push(datagram);
    match decoder.next()? {
        Some(message) if decoder.is_empty() => Ok(message),
        _ => Err(FrameError::Malformed("a datagram must hold exactly one frame".into())),
    }
}

/// Decodes the messages in a stream of bytes. [`push`](Self::push) adds received bytes, [`next`](Self::next) returns
/// the messages.
#[derive(Debug)]
pub struct FrameDecoder {
    limit: u32,
    buffer: Vec<u8>,
    consumed: usize,
}

impl FrameDecoder {
    /// Creates a decoder that rejects frames whose message is longer than `limit` bytes.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self { limit, buffer: Vec::new(), consumed: 0 }
    }

    /// Adds bytes that were received. Before the caller reads more bytes, it must call [`next`](Self::next) until that
    /// returns `None`. The decoder then never buffers more than one frame and the bytes of one read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether all bytes that were added have been decoded, so that no part of a frame is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.consumed == self.buffer.len()
    }

    /// Returns the next message; `None` if its frame is not complete yet.
    ///
    /// # Errors
    /// [`FrameError`] if the frame is too long or its message is not valid. The rest of the stream cannot be decoded.
    #[allow(clippy::should_implement_trait)] // Each call chooses its type of message.
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let rest = &self.buffer[self.consumed..];
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length);
        if length > self.limit {
            return Err(FrameError::TooLarge { bytes: length.into(), limit: self.limit });
        }
        let Some(body) = rest.get(..length as usize) else { return Ok(None) };
        let (message, used) = decode_body(body).map_err(|error| FrameError::Malformed(describe(error)))?;
        if used != body.len() {
            return Err(FrameError::Malformed(format!("{} bytes too many", body.len() - used)));
        }
        self.consumed += LENGTH_BYTES + body.len();
        Ok(Some(message))
    }
}

//! Frames: a length of four bytes, little endian, followed by a message in bincode's fixed-width encoding.
//!
//! The length is checked before anything is allocated or decoded, and a message must fill its frame exactly. Only
//! this file depends on bincode; another codec that produces the same bytes can replace it here.

use bincode::error::DecodeError;
use bincode::serde::decode_from_slice;
use serde::{Serialize, de::DeserializeOwned};

const LENGTH_BYTES: usize = 4;

/// The class of small frames: the longest frame, and the bytes that bincode may allocate for its message. The allocation is
/// bounded by class, so that a short frame cannot claim a long text. The margin between the two numbers exceeds the
/// overhead of container elements in memory.
const SMALL: (usize, usize) = (64 * 1024, 1024 * 1024);
const MEDIUM: (usize, usize) = (1024 * 1024, 8 * 1024 * 1024);
const LARGE_ALLOCATION: usize = 64 * 1024 * 1024;

/// Returns the encoding: little endian, fixed-width integers, lengths of eight bytes.
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

/// Describes a decoding error in plain language; bincode's own errors are in Rust's debug form.
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
    /// The frame is larger than the limit.
    #[error("a message of {bytes} bytes exceeds the limit of {limit} bytes")]
    TooLarge {
        /// The frame's length, without its four length bytes.
        bytes: u64,
        /// The maximum length of a frame in bytes, without its four length bytes.
        limit: u32,
    },
    /// The bytes of the frame are not a message of the expected type, for this reason.
    #[error("the bytes are not a valid message: {0}")]
    Malformed(String),
}

/// Encodes one message as a frame.
///
/// # Errors
/// [`FrameError::TooLarge`] when it exceeds `limit` bytes.
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

/// Decodes a datagram that holds one whole frame, including its length.
///
/// # Errors
/// [`FrameError`] when the datagram is not exactly one valid frame.
pub fn decode<T: DeserializeOwned>(datagram: &[u8], limit: u32) -> Result<T, FrameError> {
    let mut decoder = FrameDecoder::new(limit);
    decoder.push(datagram);
    match decoder.next()? {
        Some(message) if decoder.is_empty() => Ok(message),
        _ => Err(FrameError::Malformed("a datagram must hold exactly one frame".into())),
    }
}

/// Splits a stream of bytes into messages. [`push`](Self::push) adds bytes, [`next`](Self::next) returns messages.
#[derive(Debug)]
pub struct FrameDecoder {
    limit: u32,
    buffer: Vec<u8>,
    consumed: usize,
}

impl FrameDecoder {
    /// Makes a decoder that rejects frames of more than `limit` bytes.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self { limit, buffer: Vec::new(), consumed: 0 }
    }

    /// Adds bytes that were read. Call [`next`](Self::next) until it returns `None` before reading more, so that the
    /// decoder never holds more than one frame and one read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether all bytes have been decoded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.consumed == self.buffer.len()
    }

    /// Returns the next message, or `None` if its frame is incomplete.
    ///
    /// # Errors
    /// [`FrameError`]. The stream cannot be decoded further.
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

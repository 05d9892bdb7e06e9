//! Encodes and decodes frames. A frame is a length of four bytes, little endian, followed by one message in bincode's
//! fixed-width encoding.
//!
//! The length is checked before anything is allocated or decoded, and a message must fill its frame exactly. Only this
//! file depends on bincode. Another codec that produces the same bytes can replace bincode here.

use bincode::error::DecodeError;
use bincode::serde::decode_from_slice;
use serde::{Serialize, de::DeserializeOwned};

const LENGTH_BYTES: usize = 4;

/// Minimum size in bytes of the space that a decoder offers for received bytes. Most messages are shorter.
const SPACE_BYTES_MIN: usize = 4 * 1024;

/// The limits of small frames: the maximum length of the message in bytes, and the maximum number of bytes that bincode
/// may allocate for the message. The allocation limit depends on the length, so that a short frame that claims to
/// contain a long text cannot cause a large allocation. The allocation limit exceeds the length, because elements of
/// containers take more space in memory than in the frame.
const SMALL: (usize, usize) = (64 * 1024, 1024 * 1024);
/// The limits of medium frames: the maximum length of the message and the maximum allocation, both in bytes.
const MEDIUM: (usize, usize) = (1024 * 1024, 8 * 1024 * 1024);
/// The maximum number of bytes that bincode may allocate for the message in a large frame, which is longer
/// than the length in [`MEDIUM`]. The largest frame that can be configured has 64 MiB and 64 KiB.
const LARGE_ALLOCATION: usize = 80 * 1024 * 1024;
/// The maximum size of a buffer that a decoder keeps for later frames, in bytes. A larger buffer is freed when its
/// messages have been decoded, so that it does not count towards the memory limit of a worker.
const KEPT_BUFFER_BYTES_MAX: usize = 1024 * 1024;

/// Returns the configuration of bincode: little endian, fixed-width integers, and lengths encoded in eight bytes.
/// `ALLOCATION` is the maximum number of bytes that decoding may allocate.
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

/// Encodes a frame whose message ends with a byte sequence of `tail` bytes, but omits these bytes: the caller sends
/// them separately, to save a copy. `message` is the message with an empty byte sequence in their place.
///
/// # Errors
/// [`FrameError::TooLarge`] if the encoded message would exceed `limit` bytes with the tail.
pub fn encode_without_tail<T: Serialize>(
    message: &T,
    tail: usize,
    limit: u32,
) -> Result<Vec<u8>, FrameError> {
    let mut frame = encode(message, limit)?;
    let bytes = (frame.len() - LENGTH_BYTES + tail) as u64;
    let length = u32::try_from(bytes).ok().filter(|length| *length <= limit);
    let length = length.ok_or(FrameError::TooLarge { bytes, limit })?;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    // The length of the empty byte sequence is the last number of the message.
    if let Some(count) = frame.last_chunk_mut() {
        *count = (tail as u64).to_le_bytes();
    }
    Ok(frame)
}

/// Decodes a datagram that contains exactly one frame: the four bytes of its length and a message of at most `limit`
/// bytes.
///
/// # Errors
/// [`FrameError`] if the datagram is not exactly one valid frame.
pub fn decode<T: DeserializeOwned>(datagram: &[u8], limit: u32) -> Result<T, FrameError> {
    match body_of_first(datagram, limit)? {
        Some(body) if LENGTH_BYTES + body.len() == datagram.len() => decode_message(body),
        _ => Err(FrameError::Malformed("a datagram must hold exactly one frame".into())),
    }
}

/// Returns the encoded message in the first frame of `bytes`; `None` if the frame is not complete.
///
/// # Errors
/// [`FrameError::TooLarge`] if the frame claims a message of more than `limit` bytes.
fn body_of_first(bytes: &[u8], limit: u32) -> Result<Option<&[u8]>, FrameError> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length);
    if length > limit {
        return Err(FrameError::TooLarge { bytes: length.into(), limit });
    }
    Ok(rest.get(..length as usize))
}

fn decode_message<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    let (message, used) = decode_body(body).map_err(|error| FrameError::Malformed(describe(error)))?;
    match body.len() - used {
        0 => Ok(message),
        rest => Err(FrameError::Malformed(format!("{rest} bytes too many"))),
    }
}

/// Decodes the messages in a stream of bytes. Received bytes are written to [`space`](Self::space) and added with
/// [`received`](Self::received), or are copied with [`push`](Self::push). [`next`](Self::next) returns the messages.
#[derive(Debug)]
pub struct FrameDecoder {
    limit: u32,
    /// The buffer contains decoded bytes up to `consumed`, then received bytes up to `end`, then free space.
    buffer: Vec<u8>,
    consumed: usize,
    end: usize,
}

impl FrameDecoder {
    /// Creates a decoder that rejects frames whose message is longer than `limit` bytes.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self { limit, buffer: Vec::new(), consumed: 0, end: 0 }
    }

    /// Returns at least 4 KiB of free space for the bytes that are received next. The buffer grows with the number of
    /// received bytes, not with the length that a frame claims.
    ///
    /// Before the caller reads more bytes, it must call [`next`](Self::next) until `next` returns `None`. The decoder
    /// then never buffers more than one frame and the bytes of one read.
    pub fn space(&mut self) -> &mut [u8] {
        self.discard_decoded();
        if self.buffer.len() - self.end < SPACE_BYTES_MIN {
            let length = (2 * self.buffer.len()).min(self.claimed_length());
            self.buffer.resize(length.max(self.end + SPACE_BYTES_MIN), 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Adds the first `count` bytes of the [`space`](Self::space), into which the caller has written received bytes.
    pub fn received(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// Adds a copy of `bytes` to the received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.discard_decoded();
        self.buffer.truncate(self.end);
        self.buffer.extend_from_slice(bytes);
        self.end = self.buffer.len();
    }

    /// Returns the length in bytes of the first frame, including its length field, as the length field claims it.
    /// Returns `usize::MAX` if the length field has not been received completely.
    fn claimed_length(&self) -> usize {
        let length = self.buffer[..self.end].first_chunk::<LENGTH_BYTES>();
        length.map_or(usize::MAX, |length| LENGTH_BYTES + u32::from_le_bytes(*length) as usize)
    }

    fn discard_large_buffer(&mut self) {
        if self.is_empty() && self.buffer.len() > KEPT_BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
            (self.consumed, self.end) = (0, 0);
        }
    }

    fn discard_decoded(&mut self) {
        self.buffer.copy_within(self.consumed..self.end, 0);
        self.end -= self.consumed;
        self.consumed = 0;
    }

    /// Whether all bytes that were added have been decoded, so that no part of a frame is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.consumed == self.end
    }

    /// Returns the next message; `None` if its frame is not complete yet.
    ///
    /// # Errors
    /// [`FrameError`] if the frame is too long or its message is not valid. The rest of the stream cannot be decoded.
    #[allow(clippy::should_implement_trait, reason = "each call chooses its type of message")]
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some(body) = body_of_first(&self.buffer[self.consumed..self.end], self.limit)? else {
            return Ok(None);
        };
        let message = decode_message(body)?;
        self.consumed += LENGTH_BYTES + body.len();
        self.discard_large_buffer();
        Ok(Some(message))
    }
}

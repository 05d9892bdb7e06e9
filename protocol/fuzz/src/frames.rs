//! Fuzzes the decoding of frames and datagrams: any division of a stream yields the same messages and the same error.

use std::fmt::Debug;

use lockhouse_protocol::frame::{decode, encode};
use lockhouse_protocol::zygote_messages::ZYGOTE_FRAME_BYTES_MAX;
use lockhouse_protocol::{FrameDecoder, FromWorker, FromZygote, ToWorker, ToZygote};
use serde::{Serialize, de::DeserializeOwned};

use super::Coverage;
use super::input::Input;

/// Frame limits in bytes: 0, which every message exceeds; 5, which only the smallest messages do not exceed; three
/// larger limits; and the largest number.
const LIMITS: [u32; 6] = [0, 5, 64 * 1024, 8 * 1024 * 1024, 60 * 1024 * 1024, u32::MAX];

/// Maximum length of an error text, in bytes. Error texts become part of responses, so they must be short.
const ERROR_BYTES_MAX: usize = 4 * 1024;

/// Decodes a stream in one piece and in several, and checks that both have the same result. The input selects the frame
/// limit, the message type and the pieces. The rest of the input is the stream itself, or message bodies to which
/// correct lengths are added.
pub fn frame_decoder(bytes: &[u8]) -> Coverage {
    let mut input = Input(bytes);
    let limit = LIMITS[usize::from(input.byte()) % LIMITS.len()];
    let kind = input.byte();
    let pieces = input.counted();
    let stream = match input.byte() % 2 {
        0 => input.rest().to_vec(),
        _ => framed(&mut input),
    };
    match kind % 4 {
        0 => any_pieces::<FromWorker>(&stream, pieces, limit),
        1 => any_pieces::<ToWorker>(&stream, pieces, limit),
        2 => any_pieces::<FromZygote>(&stream, pieces, limit),
        _ => any_pieces::<ToZygote>(&stream, pieces, limit),
    }
}

/// Decodes a datagram as a message from a zygote and as a message to a zygote. The input is the datagram itself, or a
/// body to which its correct length is added.
pub fn zygote_messages(bytes: &[u8]) -> Coverage {
    let mut input = Input(bytes);
    let datagram = match input.byte() % 2 {
        0 => input.rest().to_vec(),
        _ => with_length(input.rest()),
    };
    let mut reached = datagram_is_exact::<FromZygote>(&datagram);
    reached.extend(datagram_is_exact::<ToZygote>(&datagram));
    reached
}

fn framed(input: &mut Input<'_>) -> Vec<u8> {
    let mut stream = Vec::new();
    while !input.is_empty() {
        stream.extend(with_length(input.counted()));
    }
    stream
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a short input");
    [&length.to_le_bytes(), body].concat()
}

/// The messages that were decoded from a stream, and the error that ended the decoding, in `refusal`.
struct DecodedStream<T> {
    messages: Vec<T>,
    refusal: Option<String>,
    is_empty: bool,
}

fn decode_stream<'a, T: DeserializeOwned>(
    pieces: impl Iterator<Item = &'a [u8]>,
    limit: u32,
) -> DecodedStream<T> {
    let mut decoder = FrameDecoder::new(limit);
    let mut messages = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => {
                    let again = decoder.next::<T>().err().map(|error| error.to_string());
                    assert_eq!(again.as_deref(), Some(&*error.to_string()), "a broken stream stays broken");
                    assert!(!decoder.is_empty());
                    return DecodedStream { messages, refusal: again, is_empty: false };
                }
            }
        }
    }
    DecodedStream { messages, refusal: None, is_empty: decoder.is_empty() }
}

fn any_pieces<T>(stream: &[u8], sizes: &[u8], limit: u32) -> Coverage
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let whole = decode_stream::<T>(std::iter::once(stream), limit);
    let cut = decode_stream::<T>(cut(stream, sizes).into_iter(), limit);
    assert_eq!(whole.messages, cut.messages);
    assert_eq!(whole.refusal, cut.refusal);
    assert_eq!(whole.is_empty, cut.is_empty);

    // The stream starts with the exact encoding of the decoded messages. The rest of the stream explains why decoding
    // ended.
    let encoded: Vec<u8> =
        whole.messages.iter().flat_map(|message| encode(message, limit).expect("it came in")).collect();
    let rest = stream.strip_prefix(&*encoded).expect("the same bytes");
    assert_eq!(whole.is_empty, rest.is_empty());
    let refusal = whole.refusal.map(|refusal| refused(&refusal));
    assert_eq!(refusal.as_deref(), expected_error(rest, limit));

    let mut reached: Coverage = whole.messages.iter().map(|message| label(message)).collect();
    reached.extend(refusal);
    reached
}

/// Returns the kind of error that decoding must report for `rest`, the bytes after the last valid message.
/// Returns `None` if `rest` is an incomplete frame.
fn expected_error(rest: &[u8], limit: u32) -> Option<&'static str> {
    let (length, body) = rest.split_first_chunk()?;
    match u32::from_le_bytes(*length) {
        length if length > limit => Some("TooLarge"),
        length if body.len() >= length as usize => Some("Malformed"),
        _ => None,
    }
}

/// Divides the stream into pieces of the given sizes. When the sizes are used up, they are used again from the first.
fn cut<'a>(mut stream: &'a [u8], sizes: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    if sizes.iter().any(|size| *size > 0) {
        for size in sizes.iter().cycle() {
            let (piece, rest) = stream.split_at(usize::from(*size).min(stream.len()));
            pieces.push(piece);
            stream = rest;
            if stream.is_empty() {
                break;
            }
        }
    }
    pieces.push(stream);
    pieces
}

fn datagram_is_exact<T: Serialize + DeserializeOwned + Debug>(datagram: &[u8]) -> Coverage {
    let kind = match decode::<T>(datagram, ZYGOTE_FRAME_BYTES_MAX) {
        Ok(message) => {
            assert_eq!(encode(&message, ZYGOTE_FRAME_BYTES_MAX).expect("it came in"), datagram);
            label(&message)
        }
        Err(error) => refused(&error.to_string()),
    };
    Coverage::from([kind])
}

/// Returns the names of the message's enum variants, at most four: the capitalized words of its debug format.
fn label(message: &impl Debug) -> String {
    let text = format!("{message:?}");
    let mut quoted = false;
    let mut words: Vec<String> = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if c.is_ascii_alphanumeric() && !quoted => words.last_mut().expect("one").push(c),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
    words.dedup();
    words.truncate(4);
    words.join(" ")
}

fn refused(error: &str) -> String {
    assert!(error.len() <= ERROR_BYTES_MAX, "an error of {} bytes", error.len());
    let kinds = [("exceeds the limit", "TooLarge"), ("not a valid message", "Malformed")];
    let (_, kind) = kinds.iter().find(|(words, _)| error.contains(words)).expect("a kind of refusal");
    (*kind).to_owned()
}

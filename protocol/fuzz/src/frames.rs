//! Frames and datagrams: whatever the bytes and whatever their pieces, the same messages or the same refusal.

use std::fmt::Debug;

use lockhouse_protocol::frame::{decode, encode};
use lockhouse_protocol::zygote::ZYGOTE_FRAME_BYTES_MAX;
use lockhouse_protocol::{FrameDecoder, FromWorker, FromZygote, ToWorker, ToZygote};
use serde::{Serialize, de::DeserializeOwned};

use super::Reached;
use super::input::Input;

/// Limits of a frame: none fits, the smallest messages alone, then what a configuration may set and what it has by
/// default, and all there is.
const LIMITS: [u32; 6] = [0, 5, 64 * 1024, 8 * 1024 * 1024, 60 * 1024 * 1024, u32::MAX];

/// What an error may say: it goes into an answer.
const ERROR_BYTES_MAX: usize = 4 * 1024;

/// Which limit, which type, how it is cut, and then the stream: raw, or bodies that get their true length.
pub fn frame_decoder(bytes: &[u8]) -> Reached {
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

/// A datagram, raw or as a body that gets its true length, to either side.
pub fn zygote_messages(bytes: &[u8]) -> Reached {
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

/// The messages up to the end of what is there, and the refusal if there is one.
struct Heard<T> {
    messages: Vec<T>,
    refusal: Option<String>,
    is_empty: bool,
}

fn hear<'a, T: DeserializeOwned>(pieces: impl Iterator<Item = &'a [u8]>, limit: u32) -> Heard<T> {
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
                    return Heard { messages, refusal: again, is_empty: false };
                }
            }
        }
    }
    Heard { messages, refusal: None, is_empty: decoder.is_empty() }
}

fn any_pieces<T>(stream: &[u8], sizes: &[u8], limit: u32) -> Reached
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let whole = hear::<T>(std::iter::once(stream), limit);
    let cut = hear::<T>(cut(stream, sizes).into_iter(), limit);
    assert_eq!(whole.messages, cut.messages);
    assert_eq!(whole.refusal, cut.refusal);
    assert_eq!(whole.is_empty, cut.is_empty);

    // The stream begins with the messages' only encoding, and what comes then is what ended them.
    let encoded: Vec<u8> =
        whole.messages.iter().flat_map(|message| encode(message, limit).expect("it came in")).collect();
    let rest = stream.strip_prefix(&*encoded).expect("the same bytes");
    assert_eq!(whole.is_empty, rest.is_empty());
    let refusal = whole.refusal.map(|refusal| refused(&refusal));
    assert_eq!(refusal.as_deref(), what_ends(rest, limit));

    let mut reached: Reached = whole.messages.iter().map(|message| label(message)).collect();
    reached.extend(refusal);
    reached
}

/// Why bytes give no message: their length is too large, or they are there and are none. Otherwise more may come.
fn what_ends(rest: &[u8], limit: u32) -> Option<&'static str> {
    let (length, body) = rest.split_first_chunk()?;
    match u32::from_le_bytes(*length) {
        length if length > limit => Some("TooLarge"),
        length if body.len() >= length as usize => Some("Malformed"),
        _ => None,
    }
}

/// Pieces of these sizes, again and again.
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

fn datagram_is_exact<T: Serialize + DeserializeOwned + Debug>(datagram: &[u8]) -> Reached {
    let told = match decode::<T>(datagram, ZYGOTE_FRAME_BYTES_MAX) {
        Ok(message) => {
            assert_eq!(encode(&message, ZYGOTE_FRAME_BYTES_MAX).expect("it came in"), datagram);
            label(&message)
        }
        Err(error) => refused(&error.to_string()),
    };
    Reached::from([told])
}

/// The kind of a message, with the kinds inside it: the words of its debug form that begin with a capital.
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

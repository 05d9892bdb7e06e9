//! Property tests of protocol frames: messages are unchanged by encoding and decoding, however the byte stream is
//! divided. Invalid bytes are rejected without a panic.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod arbitrary;

use std::fmt::Debug;

use lockhouse_protocol::frame::{decode, encode};
use lockhouse_protocol::id::NAME_BYTES_MAX;
use lockhouse_protocol::{
    FrameDecoder, FrameError, FromWorker, FromZygote, ToWorker, ToZygote, ToolName, WorkerRequest,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A frame limit in bytes that exceeds all messages of these tests.
const LIMIT: u32 = 1024 * 1024;
const LENGTH_BYTES: usize = 4;

trait Message: Serialize + DeserializeOwned + PartialEq + Debug {}
impl<T: Serialize + DeserializeOwned + PartialEq + Debug> Message for T {}

/// Decodes and returns all messages whose frames are complete in `decoder`.
fn drain<T: Message>(decoder: &mut FrameDecoder) -> Result<Vec<T>, FrameError> {
    std::iter::from_fn(|| decoder.next().transpose()).collect()
}

/// Checks that messages are decoded unchanged and in order when their byte stream is divided at the positions `cuts`.
fn check_stream<T: Message>(messages: &[T], cuts: &[Index]) -> Result<(), TestCaseError> {
    let stream: Vec<u8> = messages.iter().flat_map(|message| encode(message, LIMIT).unwrap()).collect();
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    ends.push(stream.len());
    ends.sort_unstable();
    let (mut eager, mut late) = (FrameDecoder::new(LIMIT), FrameDecoder::new(LIMIT));
    let mut arrived = Vec::new();
    let mut start = 0;
    for end in ends {
        eager.push(&stream[start..end]);
        arrived.extend(drain::<T>(&mut eager).unwrap());
        late.push(&stream[start..end]);
        start = end;
    }
    prop_assert_eq!(&arrived[..], messages);
    prop_assert!(eager.is_empty());
    prop_assert_eq!(&drain::<T>(&mut late).unwrap()[..], messages);
    prop_assert!(late.is_empty());
    Ok(())
}

/// Checks that a frame is rejected when its body is truncated at the position `at`, or extended by the bytes `extra`,
/// whether or not the frame's length field is changed to match the body.
fn check_exact_length<T: Message>(message: &T, at: Index, extra: &[u8]) -> Result<(), TestCaseError> {
    let frame = encode(message, LIMIT).unwrap();
    prop_assert_eq!(&decode::<T>(&frame, LIMIT).unwrap(), message);

    let short = &frame[..at.index(frame.len())];
    prop_assert!(decode::<T>(short, LIMIT).is_err(), "cut to {} bytes", short.len());
    let mut decoder = FrameDecoder::new(LIMIT);
    decoder.push(short);
    prop_assert!(decoder.next::<T>().unwrap().is_none(), "the rest may still come");
    prop_assert_eq!(decoder.is_empty(), short.is_empty());

    prop_assert!(
        decode::<T>(&[&frame, extra].concat(), LIMIT).is_err(),
        "a datagram with more behind its frame"
    );

    let body = &frame[LENGTH_BYTES..];
    let short_body = with_length(&body[..at.index(body.len())]);
    prop_assert!(matches!(decode::<T>(&short_body, LIMIT), Err(FrameError::Malformed(_))));
    let long_body = with_length(&[body, extra].concat());
    prop_assert!(matches!(decode::<T>(&long_body, LIMIT), Err(FrameError::Malformed(_))));
    Ok(())
}

/// Checks that a frame is accepted if its body is exactly as long as the limit, and rejected if the limit is one byte
/// less.
fn check_limit<T: Message>(message: &T) -> Result<(), TestCaseError> {
    let frame = encode(message, LIMIT).unwrap();
    let size = u32::try_from(frame.len() - LENGTH_BYTES).unwrap();
    prop_assert_eq!(&encode(message, size).unwrap(), &frame);
    prop_assert_eq!(&decode::<T>(&frame, size).unwrap(), message);
    for refused in [encode(message, size - 1).map(drop), decode::<T>(&frame, size - 1).map(drop)] {
        let expected = FrameError::TooLarge { bytes: size.into(), limit: size - 1 };
        prop_assert_eq!(refused.unwrap_err().to_string(), expected.to_string());
    }
    Ok(())
}

/// Checks that bytes either are rejected, or are exactly the encoding of the message that is decoded from them.
fn check_unambiguous<T: Message>(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(message) = decode::<T>(bytes, LIMIT) {
        prop_assert_eq!(encode(&message, LIMIT).unwrap(), bytes);
    }
    // A stream decoder terminates on the same bytes, with or without an error.
    let mut decoder = FrameDecoder::new(LIMIT);
    decoder.push(bytes);
    let _ = drain::<T>(&mut decoder);
    Ok(())
}

fn check_unambiguous_as_each_type(bytes: &[u8]) -> Result<(), TestCaseError> {
    check_unambiguous::<ToWorker>(bytes)?;
    check_unambiguous::<FromWorker>(bytes)?;
    check_unambiguous::<ToZygote>(bytes)?;
    check_unambiguous::<FromZygote>(bytes)
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    [&length.to_le_bytes(), body].concat()
}

/// Encodes a message and replaces bytes of its frame: each change is a position and the new byte.
fn damaged<T: Message>(message: &T, changes: &[(Index, u8)]) -> Vec<u8> {
    let mut frame = encode(message, LIMIT).unwrap();
    for (at, byte) in changes {
        let at = at.index(frame.len());
        frame[at] = *byte;
    }
    frame
}

/// Defines the property tests of frames for one type of message: `$name` is the test module and the strategy that
/// generates messages of the type `$type`.
macro_rules! properties {
    ($name:ident, $type:ty) => {
        mod $name {
            use super::*;
            use crate::arbitrary::$name;

            proptest! {
                #[test]
                fn survive_any_division_of_the_stream(messages in vec($name(), 0..5), cuts in vec(any::<Index>(), 0..20)) {
                    check_stream(&messages, &cuts)?;
                }

                #[test]
                fn survive_byte_by_byte(message in $name()) {
                    let mut decoder = FrameDecoder::new(LIMIT);
                    let frame = encode(&message, LIMIT).unwrap();
                    let (last, rest) = frame.split_last().unwrap();
                    for byte in rest {
                        decoder.push(&[*byte]);
                        prop_assert_eq!(decoder.next().unwrap(), None::<$type>);
                    }
                    decoder.push(&[*last]);
                    prop_assert_eq!(decoder.next().unwrap(), Some(message));
                }

                #[test]
                fn fill_their_frame_exactly(
                    message in $name(), at in any::<Index>(), extra in vec(any::<u8>(), 1..20)
                ) {
                    check_exact_length(&message, at, &extra)?;
                }

                #[test]
                fn keep_the_limit(message in $name()) {
                    check_limit(&message)?;
                }

                #[test]
                fn never_panic_when_damaged(message in $name(), changes in vec(any::<(Index, u8)>(), 1..5)) {
                    check_unambiguous_as_each_type(&damaged(&message, &changes))?;
                }
            }
        }
    };
}

properties!(to_worker, ToWorker);
properties!(from_worker, FromWorker);
properties!(to_zygote, ToZygote);
properties!(from_zygote, FromZygote);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn garbage_never_panics(bytes in vec(any::<u8>(), 0..300)) {
        check_unambiguous_as_each_type(&bytes)?;
        check_unambiguous_as_each_type(&with_length(&bytes))?;
    }

    /// Decodes sequences of random numbers below 9. These are valid variant numbers, lengths and tags, so the
    /// decoder gets further in them than in random bytes.
    #[test]
    fn garbage_that_looks_like_a_message_never_panics(words in vec(0_u32..9, 0..30), tail in vec(any::<u8>(), 0..9)) {
        let mut body: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        body.extend(tail);
        check_unambiguous_as_each_type(&with_length(&body))?;
    }

    #[test]
    fn a_length_that_lies_never_panics(length in any::<u32>(), limit in any::<u32>(), body in vec(any::<u8>(), 0..40)) {
        let mut decoder = FrameDecoder::new(limit);
        decoder.push(&length.to_le_bytes());
        decoder.push(&body);
        match decoder.next::<FromWorker>() {
            Err(FrameError::TooLarge { bytes, limit: reported }) => {
                prop_assert!(length > limit);
                prop_assert_eq!((bytes, reported), (length.into(), limit));
            }
            Err(FrameError::Malformed(_)) | Ok(Some(_)) => prop_assert!(length as usize <= body.len()),
            Ok(None) => prop_assert!(length <= limit && length as usize > body.len()),
        }
    }

    /// Checks that the decoder rejects the same server and tool names as the constructors of the name types.
    #[test]
    fn names_from_the_wire_are_checked(name in "[a-z./_ \n\u{0}é*-]{0,3}|[a-z]{126,131}") {
        let allowed = |extra: &str| {
            let letters = name.chars().all(|c| c.is_ascii_lowercase() || extra.contains(c));
            !name.is_empty() && name.len() <= NAME_BYTES_MAX && letters
        };
        let from_wire = |variant: u32, after: &[&str]| {
            let body = [&variant.to_le_bytes()[..], &after.iter().flat_map(|text| raw_text(text)).collect::<Vec<_>>()];
            decode::<WorkerRequest>(&with_length(&body.concat()), LIMIT)
        };
        // Variant numbers as in the snapshots of `bytes.rs`: ListTools has a server, GetPrompt a server, a name and arguments.
        prop_assert_eq!(from_wire(2, &[&name]).is_ok(), allowed("_-"));
        let described = [&3_u32.to_le_bytes()[..], &raw_text("s"), &[1], &raw_text(&name)].concat();
        let is_tool = decode::<WorkerRequest>(&with_length(&described), LIMIT).is_ok();
        prop_assert_eq!(is_tool, ToolName::new(name.as_str()).is_ok());
    }
}

/// Encodes a text as in a frame: its length in eight bytes, then its bytes.
fn raw_text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

#[test]
fn a_stream_yields_nothing_after_an_error() {
    let mut decoder = FrameDecoder::new(LIMIT);
    decoder.push(&with_length(&[0xff; 4]));
    decoder.push(&encode(&FromWorker::Ready, LIMIT).unwrap());
    for _ in 0..3 {
        assert!(matches!(decoder.next::<FromWorker>(), Err(FrameError::Malformed(_))));
    }
}

#[test]
fn an_empty_frame_is_no_message() {
    let empty = with_length(&[]);
    assert!(decode::<FromWorker>(&empty, LIMIT).is_err());
    assert!(decode::<FromWorker>(&[], LIMIT).is_err());
}

#[test]
fn errors_of_frames_are_in_plain_language() {
    let texts = |body: &[u8]| decode::<FromWorker>(&with_length(body), LIMIT).unwrap_err().to_string();
    let no_utf8 = [&1_u32.to_le_bytes()[..], &1_u64.to_le_bytes(), &[0xff]].concat();
    let words = [
        (vec![0xff; 4], "expected variant index 0 <= i < 5"),
        (vec![0; 2], "it ends too early"),
        (no_utf8, "a text is not valid UTF-8"),
        (vec![0; 5], "1 bytes too many"),
    ];
    for (body, words) in words {
        let message = texts(&body);
        assert!(
            message.starts_with("the bytes are not a valid message: ") && message.ends_with(words),
            "{message}"
        );
        assert!(!message.contains(['{', '"', '(']), "{message}");
    }
}

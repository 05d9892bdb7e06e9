//! Frames: what goes in comes out, whatever the pieces it arrives in; what is no frame is refused and never panics.
#![allow(missing_docs, clippy::unwrap_used)]

mod arbitrary;

use std::fmt::Debug;

use lockhouse_protocol::frame::{decode, encode};
use lockhouse_protocol::id::NAME_BYTES_MAX;
use lockhouse_protocol::{FrameDecoder, FrameError, FromWorker, FromZygote, Request, ToWorker, ToZygote};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Above every message of these tests, in bytes.
const LIMIT: u32 = 1024 * 1024;
const LENGTH_BYTES: usize = 4;

trait Message: Serialize + DeserializeOwned + PartialEq + Debug {}
impl<T: Serialize + DeserializeOwned + PartialEq + Debug> Message for T {}

/// Whatever the decoder has now.
fn drain<T: Message>(decoder: &mut FrameDecoder) -> Result<Vec<T>, FrameError> {
    std::iter::from_fn(|| decoder.next().transpose()).collect()
}

/// The messages arrive as they were, whole and in order, however the bytes are cut.
fn arrives<T: Message>(messages: &[T], cuts: &[Index]) -> Result<(), TestCaseError> {
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

/// Only the frame as it was made is accepted: not a shorter one, not a longer one, not one with another body length.
fn is_exact<T: Message>(message: &T, at: Index, extra: &[u8]) -> Result<(), TestCaseError> {
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

/// The limit is the size of the body: it just fits, or it does not.
fn keeps_the_limit<T: Message>(message: &T) -> Result<(), TestCaseError> {
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

/// Refused, or a message whose only encoding is these bytes.
fn means_one_thing<T: Message>(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(message) = decode::<T>(bytes, LIMIT) {
        prop_assert_eq!(encode(&message, LIMIT).unwrap(), bytes);
    }
    // The same bytes as a stream: it ends somewhere, with or without an error.
    let mut decoder = FrameDecoder::new(LIMIT);
    decoder.push(bytes);
    let _ = drain::<T>(&mut decoder);
    Ok(())
}

fn means_one_thing_at_most(bytes: &[u8]) -> Result<(), TestCaseError> {
    means_one_thing::<ToWorker>(bytes)?;
    means_one_thing::<FromWorker>(bytes)?;
    means_one_thing::<ToZygote>(bytes)?;
    means_one_thing::<FromZygote>(bytes)
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    [&length.to_le_bytes(), body].concat()
}

/// The frame with some of its bytes changed.
fn damaged<T: Message>(message: &T, changes: &[(Index, u8)]) -> Vec<u8> {
    let mut frame = encode(message, LIMIT).unwrap();
    for (at, byte) in changes {
        let at = at.index(frame.len());
        frame[at] = *byte;
    }
    frame
}

/// Every property of a message, for one type of message.
macro_rules! properties {
    ($name:ident, $type:ty) => {
        mod $name {
            use super::*;
            use crate::arbitrary::$name;

            proptest! {
                #[test]
                fn arrive_in_any_pieces(messages in vec($name(), 0..5), cuts in vec(any::<Index>(), 0..20)) {
                    arrives(&messages, &cuts)?;
                }

                #[test]
                fn arrive_byte_by_byte(message in $name()) {
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
                    is_exact(&message, at, &extra)?;
                }

                #[test]
                fn keep_the_limit(message in $name()) {
                    keeps_the_limit(&message)?;
                }

                #[test]
                fn never_panic_when_damaged(message in $name(), changes in vec(any::<(Index, u8)>(), 1..5)) {
                    means_one_thing_at_most(&damaged(&message, &changes))?;
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
        means_one_thing_at_most(&bytes)?;
        means_one_thing_at_most(&with_length(&bytes))?;
    }

    /// Small numbers are variants, lengths and tags: such garbage comes further than any other.
    #[test]
    fn garbage_that_looks_like_a_message_never_panics(words in vec(0_u32..9, 0..30), tail in vec(any::<u8>(), 0..9)) {
        let mut body: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        body.extend(tail);
        means_one_thing_at_most(&with_length(&body))?;
    }

    #[test]
    fn a_length_that_lies_never_panics(length in any::<u32>(), limit in any::<u32>(), body in vec(any::<u8>(), 0..40)) {
        let mut decoder = FrameDecoder::new(limit);
        decoder.push(&length.to_le_bytes());
        decoder.push(&body);
        match decoder.next::<FromWorker>() {
            Err(FrameError::TooLarge { bytes, limit: told }) => {
                prop_assert!(length > limit);
                prop_assert_eq!((bytes, told), (length.into(), limit));
            }
            Err(FrameError::Malformed(_)) | Ok(Some(_)) => prop_assert!(length as usize <= body.len()),
            Ok(None) => prop_assert!(length <= limit && length as usize > body.len()),
        }
    }

    /// A name that the types would refuse does not come in by way of the wire either.
    #[test]
    fn names_from_the_wire_are_checked(name in "[a-z./_ \n\u{0}é*-]{0,3}|[a-z]{126,131}") {
        let allowed = |extra: &str| {
            let letters = name.chars().all(|c| c.is_ascii_lowercase() || extra.contains(c));
            !name.is_empty() && name.len() <= NAME_BYTES_MAX && letters
        };
        let from_wire = |variant: u32, after: &[&str]| {
            let body = [&variant.to_le_bytes()[..], &after.iter().flat_map(|text| raw_text(text)).collect::<Vec<_>>()];
            decode::<Request>(&with_length(&body.concat()), LIMIT)
        };
        // Variants as the snapshots of the bytes show them: ListTools has a server, Describe a server and a tool.
        prop_assert_eq!(from_wire(2, &[&name]).is_ok(), allowed("_-"));
        prop_assert_eq!(from_wire(3, &["s", &name]).is_ok(), allowed("_-./"));
    }
}

/// Text as it is encoded: its length in eight bytes, then itself.
fn raw_text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

#[test]
fn a_stream_that_broke_stays_broken() {
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
fn what_is_wrong_with_a_frame_is_told_in_words() {
    let texts = |body: &[u8]| decode::<FromWorker>(&with_length(body), LIMIT).unwrap_err().to_string();
    let no_utf8 = [&1_u32.to_le_bytes()[..], &1_u64.to_le_bytes(), &[0xff]].concat();
    let words = [
        (vec![0xff; 4], "expected variant index 0 <= i < 5"),
        (vec![0; 2], "it ends too early"),
        (no_utf8, "a text is not valid UTF-8"),
        (vec![0; 5], "1 bytes too many"),
    ];
    for (body, words) in words {
        let told = texts(&body);
        assert!(told.starts_with("the bytes are not a valid message: ") && told.ends_with(words), "{told}");
        assert!(!told.contains(['{', '"', '(']), "{told}");
    }
}

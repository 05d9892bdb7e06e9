//! Tests that the frame decoder allocates only a bounded amount of memory for bytes from a hostile peer.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod counting;

use counting::{largest, peak};
use lockhouse_protocol::frame::{decode, encode};
use lockhouse_protocol::{FrameDecoder, FrameError, FromWorker, FromZygote, Stream, ToWorker, ToZygote};

const LIMIT: u32 = 8 * 1024 * 1024;

#[test]
fn the_counting_allocator_counts() {
    assert_eq!(largest(|| Vec::<u8>::with_capacity(12_345)).0, 12_345);
    assert_eq!(largest(|| vec![0_u8; 54_321]).0, 54_321);
    assert_eq!(largest(|| 1 + 1).0, 0);
    let twice = || [1_000, 2_000].map(|bytes| drop(Vec::<u8>::with_capacity(bytes)));
    assert_eq!(peak(twice).0, 2_000);
    let both = || [1_000, 2_000].map(Vec::<u8>::with_capacity);
    assert_eq!(peak(both).0, 3_000);
    assert_eq!(peak(|| 1 + 1).0, 0);
}

#[test]
fn a_length_over_the_limit_is_rejected_before_the_body_and_without_allocating() {
    for length in [LIMIT + 1, LIMIT * 2, u32::MAX] {
        let mut decoder = FrameDecoder::new(LIMIT);
        decoder.push(&length.to_le_bytes());
        let (bytes, refused) = largest(|| decoder.next::<FromWorker>());
        assert!(matches!(refused, Err(FrameError::TooLarge { limit: LIMIT, .. })), "{refused:?}");
        assert_eq!(bytes, 0, "for a length of {length}");
    }
}

#[test]
fn a_length_alone_allocates_nothing() {
    let mut decoder = FrameDecoder::new(u32::MAX);
    decoder.push(&u32::MAX.to_le_bytes());
    let (bytes, message) = largest(|| decoder.next::<FromWorker>());
    assert!(matches!(message, Ok(None)), "{message:?}");
    assert_eq!(bytes, 0);
}

#[test]
fn a_datagram_allocates_no_more_than_itself() {
    let datagram = u32::MAX.to_le_bytes();
    assert!(largest(|| decode::<FromZygote>(&datagram, LIMIT).unwrap_err()).0 < 256);
    assert!(largest(|| decode::<FromZygote>(&datagram, u32::MAX).unwrap_err()).0 < 256);
}

/// Decodes a frame whose body is `before` followed by `length`, the length of a text or list that extends beyond the
/// frame. Returns the size in bytes of the largest allocation.
fn largest_allocation<T: serde::de::DeserializeOwned>(before: &[u8], length: u64) -> usize {
    let mut body = before.to_vec();
    body.extend(length.to_le_bytes());
    let mut frame = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
    frame.extend(body);
    let (bytes, refused) = largest(|| decode::<T>(&frame, LIMIT).map(drop));
    assert!(matches!(refused, Err(FrameError::Malformed(_))), "{refused:?}");
    bytes
}

/// Tests a frame that contains a text or list with a length beyond the end of the frame. The decoder
/// allocates at most 64 MiB for text and at most 1 MiB for lists, and notices missing bytes before it writes
/// to the memory for text.
#[test]
fn a_length_inside_a_frame_is_bounded_too() {
    const TEXT_MAX: usize = 64 * 1024 * 1024;
    const LIST_MAX: usize = 1024 * 1024;
    let number = |number: u32| number.to_le_bytes();
    for length in [64, 1 << 20, 1 << 26, 1 << 32, 1 << 60, u64::MAX] {
        // Refused { reason }
        assert!(largest_allocation::<FromWorker>(&number(1), length) <= TEXT_MAX, "text of {length}");
        // Output { stream: Stdout, text }
        assert!(
            largest_allocation::<FromWorker>(&[number(2), number(0)].concat(), length) <= TEXT_MAX,
            "text of {length}"
        );
        // Done(Value(Some(json)))
        let value = [&number(4)[..], &number(0), &[1]].concat();
        assert!(largest_allocation::<FromWorker>(&value, length) <= LIST_MAX, "bytes of {length}");
        // Reply { call: 1, reply: Ok(json) }
        let reply = [number(1), number(1), number(0)].concat();
        assert!(largest_allocation::<ToWorker>(&reply, length) <= LIST_MAX, "bytes of {length}");
        // Prepare(profile), up to its list of modules
        let profile = [&number(0)[..], &[0; 16], &[0]].concat();
        assert!(largest_allocation::<ToZygote>(&profile, length) <= LIST_MAX, "list of {length}");
    }
}

#[test]
fn a_long_stream_is_buffered_one_frame_and_one_read_at_a_time() {
    const READ_BYTES: usize = 64 * 1024;
    let message = FromWorker::Output { stream: Stream::Stdout, text: "x".repeat(100_000) };
    let stream: Vec<u8> =
        std::iter::repeat_n(encode(&message, LIMIT).unwrap(), 200).collect::<Vec<_>>().concat();
    let mut decoder = FrameDecoder::new(LIMIT);
    let (bytes, count) = largest(|| {
        let mut count = 0;
        for read in stream.chunks(READ_BYTES) {
            decoder.push(read);
            while let Some(arrived) = decoder.next::<FromWorker>().unwrap() {
                assert_eq!(arrived, message);
                count += 1;
            }
        }
        count
    });
    assert_eq!(count, 200);
    // A vector grows by doubling.
    assert!(
        bytes <= 2 * (100_000 + 100 + READ_BYTES),
        "{bytes} bytes at once of a stream of {}",
        stream.len()
    );
}

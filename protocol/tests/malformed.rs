//! Decodes 100,000 malformed frames, generated with a fixed seed: the decoder must not panic, and must not exceed the
//! memory bounds below. With `LOCKHOUSE_TESTS=full`, it decodes a million frames.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod counting;

use lockhouse_protocol::frame::{decode, encode};
use lockhouse_protocol::{
    CallId, CodeError, ConversationLimits, DecodedArgument, ExecutionId, Exit, Failure, FailureCode, Finding,
    FrameDecoder, FrameError, FromWorker, FromZygote, Job, LoadedPackage, Outcome, PromptName, Protection,
    PythonPackages, ResourceUri, SandboxProfile, SearchDetail, ServerName, Stream, ToWorker, ToZygote,
    ToolName, WorkerRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

const QUICK: u64 = 100_000;
const FULL: u64 = 1_000_000;
const LIMIT: u32 = 8 * 1024 * 1024;
const LENGTH_BYTES: usize = 4;

/// The maximum memory, in bytes, that decoding may use besides the frame itself; there is one constant for each range
/// of frame sizes. Before the decoder notices that the bytes of a text are missing, it allocates the length that the
/// frame claims for the text, at most 1, 8 or 64 MiB (the limits in `frame.rs`), without writing to that memory. For a
/// list, it first allocates at most 1 MiB. Decoded contents take up to nine times their encoded size: an empty text in
/// a list has 8 bytes in the frame and 24 in memory, and a growing list exists twice while it is copied to twice its
/// capacity.
const PEAK_MAX: usize = 2 * MIB + 9 * SMALL;
const PEAK_OF_MEDIUM_MAX: usize = (8 + 1 + 9) * MIB;
const PEAK_OF_LARGE_MAX: usize = (64 + 1) * MIB + 9 * LIMIT as usize;
const SMALL: usize = 64 * 1024;
const MIB: usize = 1024 * 1024;

/// The pseudo-random generator SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &'a [Box<T>]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next() as u8).take(count).collect()
    }
}

/// Returns valid frames of each kind of message, from which the functions in `MUTATIONS` make malformed ones.
fn examples() -> Vec<Box<[u8]>> {
    let frames = [from_worker(), to_worker(), zygote()].concat();
    frames.into_iter().map(Vec::into_boxed_slice).collect()
}

fn encoded<T: Serialize>(messages: &[T]) -> Vec<Vec<u8>> {
    messages.iter().map(|message| encode(message, LIMIT).unwrap()).collect()
}

fn server() -> ServerName {
    ServerName::new("github").unwrap()
}

fn tool() -> ToolName {
    ToolName::new("list_issues").unwrap()
}

fn from_worker() -> Vec<Vec<u8>> {
    let error = CodeError {
        kind: "ToolError".into(),
        code: Some("denied".into()),
        line: Some(4),
        ..CodeError::default()
    };
    let requests = [
        WorkerRequest::Call {
            server: server(),
            tool: tool(),
            arguments: br#"{"a":[1,2,3]}"#.to_vec(),
            decoded: vec![DecodedArgument { pointer: "/a".into(), text: Some("[1,2,3]".into()) }],
            timeout_ms: Some(5),
            line: Some(3),
        },
        WorkerRequest::ListServers,
        WorkerRequest::ListTools { server: server() },
        WorkerRequest::Describe { server: server(), tool: Some(tool()) },
        WorkerRequest::Search { query: "open issues".into(), limit: 5, detail: SearchDetail::Full },
        WorkerRequest::ListResources { server: server() },
        WorkerRequest::ReadResource { server: server(), uri: ResourceUri::new("file:///a").unwrap() },
        WorkerRequest::ListPrompts { server: server() },
        WorkerRequest::GetPrompt {
            server: server(),
            name: PromptName::new("review").unwrap(),
            arguments: b"{}".to_vec(),
        },
    ];
    let outcomes = [Outcome::Value(Some(b"42".to_vec())), Outcome::Value(None), Outcome::Error(error)];
    let mut messages = vec![
        FromWorker::Ready,
        FromWorker::Refused { reason: "Landlock".into() },
        FromWorker::Output { stream: Stream::Stderr, text: "hello é\n".into() },
    ];
    messages.extend(requests.map(|request| FromWorker::Request { call: CallId(7), request }));
    messages.extend(outcomes.map(FromWorker::Done));
    encoded(&messages)
}

fn to_worker() -> Vec<Vec<u8>> {
    let job = Job {
        execution: ExecutionId(1),
        code: "1 + 1".into(),
        servers: vec![server(), server()],
        session: true,
        check_only: false,
        tools: Vec::new(),
        files: Vec::new(),
        left_out: Vec::new(),
    };
    let failure = Failure {
        code: FailureCode::Timeout,
        message: "too long".into(),
        server: Some("github".into()),
        tool: None,
        retryable: true,
        result: Some(b"{}".to_vec()),
    };
    encoded(&[
        ToWorker::Run(job),
        ToWorker::Reply { call: CallId(1), reply: Ok(b"[1,2]".to_vec()) },
        ToWorker::Reply { call: CallId(2), reply: Err(failure) },
        ToWorker::Interrupt,
    ])
}

fn zygote() -> Vec<Vec<u8>> {
    let limits = ConversationLimits { calls: 1, parallel_calls: 2, output_bytes: 3, frame_bytes: 4 };
    let profile = SandboxProfile {
        cpu_seconds: 30,
        memory_bytes: 1 << 28,
        unprivileged_id: Some(61_500),
        preload: vec!["json".into(), "re".into()],
        packages: PythonPackages::Elsewhere(vec!["pandas".into()]),
        denied_modules: vec!["ctypes".into()],
        limits,
    };
    let messages = [
        FromZygote::Prepared {
            runtime: "Python".into(),
            findings: vec![Finding::absent(Protection::WriteXorExecute, "no MDWE")],
            packages: vec![LoadedPackage {
                name: "pandas".into(),
                version: "3".into(),
                memory_kib: 9,
                import_ms: 8,
            }],
        },
        FromZygote::Refused { reason: "threads".into() },
        FromZygote::Forked { pid: 4_242 },
        FromZygote::Exited { pid: 4_242, exit: Exit::Signal(9), cpu_us: 1_500, peak_memory_bytes: 4_096 },
    ];
    [
        encoded(&[ToZygote::Prepare(profile), ToZygote::Fork { warm: true, session: false }]),
        encoded(&messages),
    ]
    .concat()
}

/// Functions that generate malformed frames. Some of these frames are valid by chance; the decoded message must then
/// encode to the same bytes again.
#[allow(clippy::type_complexity, reason = "a table of test cases")]
const MUTATIONS: [fn(&mut Random, &[Box<[u8]>]) -> Vec<u8>; 9] = [
    random_bytes,
    random_body,
    truncated,
    truncated_body,
    bits_flipped,
    length_replaced,
    length_inside_replaced,
    variant_replaced,
    frames_combined,
];

fn random_bytes(random: &mut Random, _: &[Box<[u8]>]) -> Vec<u8> {
    let count = random.below(300);
    random.bytes(count)
}

fn random_body(random: &mut Random, _: &[Box<[u8]>]) -> Vec<u8> {
    let count = random.below(300);
    with_length(&random.bytes(count))
}

fn truncated(random: &mut Random, examples: &[Box<[u8]>]) -> Vec<u8> {
    let frame = random.pick(examples);
    frame[..random.below(frame.len())].to_vec()
}

/// Returns a frame whose body is truncated, with a length that matches the truncated body.
fn truncated_body(random: &mut Random, examples: &[Box<[u8]>]) -> Vec<u8> {
    let body = &random.pick(examples)[LENGTH_BYTES..];
    with_length(&body[..random.below(body.len())])
}

fn bits_flipped(random: &mut Random, examples: &[Box<[u8]>]) -> Vec<u8> {
    let mut frame = random.pick(examples).to_vec();
    for _ in 0..=random.below(4) {
        let bit = random.below(frame.len() * 8);
        frame[bit / 8] ^= 1 << (bit % 8);
    }
    frame
}

const LENGTHS: [u32; 9] = [0, 1, 3, LIMIT, LIMIT + 1, 1 << 31, (1 << 31) - 1, u32::MAX - 1, u32::MAX];

fn length_replaced(random: &mut Random, examples: &[Box<[u8]>]) -> Vec<u8> {
    let mut frame = random.pick(examples).to_vec();
    let length = LENGTHS[random.below(LENGTHS.len())];
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    frame
}

/// Returns a frame in which eight bytes at a random position of the body are replaced by a wrong length.
fn length_inside_replaced(random: &mut Random, examples: &[Box<[u8]>]) -> Vec<u8> {
    let claims = [1 << 16, 1 << 20, (1 << 20) - 1, 1 << 26, 1 << 31, 1 << 32, 1 << 63, u64::MAX];
    let mut frame = [random.pick(examples), &[0; 8]].concat();
    let at = LENGTH_BYTES + random.below(frame.len() - LENGTH_BYTES - 8);
    frame[at..at + 8].copy_from_slice(&claims[random.below(claims.len())].to_le_bytes());
    with_length(&frame[LENGTH_BYTES..])
}

fn variant_replaced(random: &mut Random, examples: &[Box<[u8]>]) -> Vec<u8> {
    let mut frame = random.pick(examples).to_vec();
    let variant = [random.below(9) as u32, u32::MAX, random.next() as u32][random.below(3)];
    frame[LENGTH_BYTES..][..4].copy_from_slice(&variant.to_le_bytes());
    frame
}

/// Returns two frames combined: the second frame comes after the first, or at the end of its body.
fn frames_combined(random: &mut Random, examples: &[Box<[u8]>]) -> Vec<u8> {
    let (first, second) = (random.pick(examples), random.pick(examples));
    match random.below(3) {
        0 => [first, second].concat(),
        1 => with_length(&[&first[LENGTH_BYTES..8], second].concat()),
        _ => with_length(&[&first[LENGTH_BYTES..], second].concat()),
    }
}

fn with_length(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat()
}

/// The number of results of each kind that decoding had.
#[derive(Debug, Default)]
struct DecodeCounts {
    messages: u64,
    incomplete: u64,
    too_large: u64,
    malformed: u64,
}

/// Decodes the bytes as messages of type `T` and adds the results to `counts`. Returns the maximum number of bytes that
/// decoding one message had allocated at one time.
fn decode_all<T: Serialize + DeserializeOwned>(bytes: &[u8], counts: &mut DecodeCounts) -> usize {
    let mut decoder = FrameDecoder::new(LIMIT);
    decoder.push(bytes);
    let mut most = 0;
    let mut accepted = 0;
    loop {
        let (held, decoded) = counting::peak(|| decoder.next::<T>());
        most = most.max(held);
        match decoded {
            Ok(Some(message)) => {
                // An accepted message has exactly one encoding: these bytes.
                let frame = encode(&message, LIMIT).unwrap();
                assert_eq!(bytes.get(accepted..accepted + frame.len()), Some(&frame[..]));
                accepted += frame.len();
                counts.messages += 1;
            }
            Ok(None) => {
                assert!(counting::peak(|| decode::<T>(bytes, LIMIT).is_ok()).0 <= PEAK_MAX);
                counts.incomplete += 1;
                return most;
            }
            Err(FrameError::TooLarge { bytes, limit }) => {
                assert!(held == 0 && bytes > limit.into());
                counts.too_large += 1;
                return most;
            }
            Err(FrameError::Malformed(words)) => {
                assert!(words.len() < 4_096, "an error of {} bytes", words.len());
                counts.malformed += 1;
                return most;
            }
        }
    }
}

fn decode_as_each_type(bytes: &[u8], counts: &mut DecodeCounts) -> usize {
    let peaks = [
        decode_all::<FromWorker>(bytes, counts),
        decode_all::<ToWorker>(bytes, counts),
        decode_all::<FromZygote>(bytes, counts),
        decode_all::<ToZygote>(bytes, counts),
    ];
    peaks.into_iter().max().unwrap_or(0)
}

#[test]
fn malformed_frames_are_rejected_within_the_memory_bound() {
    let full = std::env::var("LOCKHOUSE_TESTS").is_ok_and(|form| form == "full");
    let examples = examples();
    let mut random = Random(1);
    let (mut counts, mut most) = (DecodeCounts::default(), 0);
    for index in 0..if full { FULL } else { QUICK } {
        let mutation = (index % MUTATIONS.len() as u64) as usize;
        let bytes = MUTATIONS[mutation](&mut random, &examples);
        let held = decode_as_each_type(&bytes, &mut counts);
        assert!(held <= PEAK_MAX, "frame {index}, by mutation {mutation}, held {held} bytes: {bytes:?}");
        most = most.max(held);
    }
    println!("{counts:?}, {most} bytes at most");
    // Controls: each result occurred, and some frames come close to the bound.
    let DecodeCounts { messages, incomplete, too_large, malformed } = counts;
    let least = QUICK / 100;
    assert!(messages.min(incomplete).min(too_large).min(malformed) > least, "{counts:?}");
    assert!(most > PEAK_MAX / 3, "{most}");
}

/// Generates frames with bodies of `bytes` bytes. Each body contains a length of a text or list that exceeds the body.
fn claims(bytes: usize) -> impl Iterator<Item = Vec<u8>> {
    let number = |number: u32| number.to_le_bytes().to_vec();
    let starts = [
        number(1),
        [number(2), number(0)].concat(),
        [number(4), number(0), vec![1]].concat(),
        [number(4), number(1)].concat(),
        [number(1), number(1), number(0)].concat(),
        [number(1), number(1), number(1), number(0)].concat(),
        [number(0), vec![0; 16]].concat(),
        [number(0), vec![0; 17]].concat(),
    ];
    let lengths = [(bytes as u64) / 2, bytes as u64, 1 << 20, 8 << 20, 64 << 20, u64::MAX];
    starts.into_iter().flat_map(move |start| {
        lengths.map(|length| {
            let mut body = [&start[..], &length.to_le_bytes()].concat();
            body.resize(bytes, 0);
            with_length(&body)
        })
    })
}

#[test]
fn large_frames_with_false_lengths_stay_within_the_memory_bounds() {
    let rows = [(SMALL, PEAK_MAX), (SMALL + 1, PEAK_OF_MEDIUM_MAX), (MIB + 1, PEAK_OF_LARGE_MAX)];
    for (bytes, bound) in rows {
        let mut counts = DecodeCounts::default();
        let most = claims(bytes).map(|frame| decode_as_each_type(&frame, &mut counts)).max().unwrap_or(0);
        println!("{bytes} bytes: {most} bytes at most, {counts:?}");
        assert!(most <= bound && most >= bytes / 2, "{bytes} bytes made it hold {most}");
        assert!(counts.malformed > 0 && counts.too_large == 0, "{counts:?}");
    }
}

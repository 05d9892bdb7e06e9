//! What a hostile worker does once it has received code. A behaviour either never returns, or returns the outcome
//! that the worker reports to the supervisor.

use std::time::Duration;

use lockhouse_protocol::{
    CodeError, ExecutionId, FRAME_OVERHEAD_BYTES, FromWorker, Job, Outcome, Reply, SearchDetail, ServerName,
    Stream, ToWorker, ToolName, WorkerRequest, frame,
};
use nix::sys::signal::Signal;

use crate::raw_channel::{RawChannel, call, encoded, end_by, length, list_tools, number, request, wait};

type Behaviour = fn(&RawChannel) -> Outcome;

const MIB: usize = 1024 * 1024;
/// The maximum size in bytes of an encoded message to or from a worker, with the default configuration.
const FRAME_BYTES_MAX: u32 = 8 * MIB as u32 + FRAME_OVERHEAD_BYTES;
const SLOW_INTERVAL: Duration = Duration::from_millis(10);
const NESTING_DEPTH: usize = 100_000;

/// All behaviours of the hostile worker, by the name with which the received code selects one.
pub(crate) const ALL: &[(&str, Behaviour)] = &[
    ("well", |_| value("42")),
    // Twenty calls over 0.2 seconds, so that this worker is busy while another one misbehaves.
    ("well for a while", |channel| {
        let sums = (0..20).map(|n| {
            std::thread::sleep(SLOW_INTERVAL);
            let sum = channel.ask(call("add", format!("[{n}, 1]"))).unwrap_or_default();
            String::from_utf8_lossy(&sum).contains(&format!("\"sum\":{}}}", n + 1))
        });
        value(&sums.filter(|right| *right).count().to_string())
    }),
    // Wrong lengths and frames.
    ("length of 2^32-1", |channel| write_and_wait(channel, &u32::MAX.to_le_bytes())),
    ("length of the limit and one", |channel| write_and_wait(channel, &number(FRAME_BYTES_MAX + 1))),
    ("length of 2^31, in pieces", |channel| {
        channel.write(&[0, 0]);
        std::thread::sleep(SLOW_INTERVAL);
        write_and_wait(channel, &[0, 0x80])
    }),
    ("length of 0", |channel| write_and_wait(channel, &number(0))),
    ("a frame never finished", |channel| write_and_wait(channel, &[&number(1000)[..], &[0; 500]].concat())),
    ("a large frame never finished", |channel| {
        channel.write(&number(FRAME_BYTES_MAX));
        write_and_wait(channel, &vec![0; FRAME_BYTES_MAX as usize - 1])
    }),
    ("half a frame and the end", |channel| {
        channel.write(&[&number(1000)[..], &[0; 500]].concat());
        std::process::exit(0)
    }),
    ("slow bytes", |channel| {
        for byte in encoded(&printed(&"x".repeat(1000))) {
            channel.write(&[byte]);
            std::thread::sleep(SLOW_INTERVAL);
        }
        wait()
    }),
    ("a value of 100 MB", |channel| {
        let bytes = 100_000_000;
        channel.write(&number(bytes + 17));
        (0..bytes / 100_000).for_each(|_| channel.write(&[b'1'; 100_000]));
        wait()
    }),
    // Floods.
    ("a flood of output", |channel| repeat(channel, &encoded(&printed(&"x".repeat(1000))))),
    ("a flood of output that is empty", |channel| repeat(channel, &encoded(&printed("")).repeat(1000))),
    ("a flood of output of one byte", |channel| repeat(channel, &encoded(&printed("x")).repeat(1000))),
    ("a flood of requests", |channel| {
        let frames = (1..10_000).flat_map(|id| encoded(&request(id, call("add", "[1, 2]"))));
        write_and_wait(channel, &frames.collect::<Vec<u8>>())
    }),
    ("a flood of calls that are answered", |channel| {
        (0..100_000).for_each(|_| drop(channel.ask(call("add", "[1, 2]"))));
        value("1")
    }),
    ("a flood of lookups", |channel| {
        (0..100_000).for_each(|_| drop(channel.ask(list_tools())));
        value("1")
    }),
    ("large replies, never read", |channel| {
        (1..=8).for_each(|id| channel.send(&request(id, call("big", "[4000000]"))));
        wait()
    }),
    ("lookups, never read", |channel| {
        (1..=8).for_each(|id| channel.send(&request(id, list_tools())));
        wait()
    }),
    // Messages in the wrong phase.
    ("an id twice", |channel| send_and_wait(channel, &[1, 1].map(lookup))),
    ("ids that decrease", |channel| send_and_wait(channel, &[7, 3].map(lookup))),
    ("an id of 0", |channel| send_and_wait(channel, &[0].map(lookup))),
    ("ready again", |channel| send_and_wait(channel, &[FromWorker::Ready])),
    ("refused in mid-run", |channel| send_and_wait(channel, &[FromWorker::Refused { reason: "no".into() }])),
    ("done twice", |channel| send_and_wait(channel, &[done("1"), done("2")])),
    ("a request after the end", |channel| {
        send_and_wait(channel, &[done("1"), request(1, call("count", "{}"))])
    }),
    ("output after the end", |channel| send_and_wait(channel, &[done("1"), printed("late")])),
    ("ready after the end", |channel| send_and_wait(channel, &[done("1"), FromWorker::Ready])),
    ("a request twice after the end", |channel| send_and_wait(channel, &[done("1"), lookup(1), lookup(1)])),
    ("a flood after the end", |channel| {
        channel.send(&done("1"));
        repeat(channel, &encoded(&printed(&"x".repeat(1000))))
    }),
    ("exits after the end", |channel| {
        channel.send(&done("1"));
        std::process::exit(0)
    }),
    ("garbage after the end", |channel| {
        write_and_wait(channel, &[&encoded(&done("1"))[..], &[0xff; 4096]].concat())
    }),
    ("a reply of its own", |channel| {
        let reply = ToWorker::Reply { call: lockhouse_protocol::CallId(1), reply: Ok(b"1".to_vec()) };
        write_and_wait(channel, &frame::encode(&reply, u32::MAX).unwrap_or_default())
    }),
    ("a job of its own", |channel| {
        let job = Job {
            execution: ExecutionId(u128::MAX),
            code: "well".into(),
            servers: vec![],
            session: false,
            check_only: false,
            tools: Vec::new(),
            files: Vec::new(),
            left_out: Vec::new(),
        };
        write_and_wait(channel, &frame::encode(&ToWorker::Run(job), u32::MAX).unwrap_or_default())
    }),
    // Bytes that are not a message.
    ("random bytes", |channel| write_and_wait(channel, &random(100_000))),
    ("random bytes in a frame", |channel| send_body(channel, &[&random(1000)])),
    ("text that is not UTF-8", |channel| {
        send_body(channel, &[&number(2), &number(0), &length(2), &[0xc3, 0x28]])
    }),
    ("text longer than its frame", |channel| {
        send_body(channel, &[&number(2), &number(0), &length(1 << 40), b"x"])
    }),
    ("a server name with a space", |channel| send_body(channel, &[&server_named(b"a b")])),
    ("a server name of a megabyte", |channel| send_body(channel, &[&server_named(&vec![0x1b; MIB])])),
    ("a server name that is empty", |channel| send_body(channel, &[&server_named(b"")])),
    // Well-formed requests with invalid contents.
    ("arguments nested too deeply", |channel| {
        request_outcome(channel, call("echo", "[".repeat(NESTING_DEPTH)))
    }),
    ("an argument nested too deeply", |channel| {
        request_outcome(
            channel,
            call("echo", format!("[{}1{}]", "[".repeat(NESTING_DEPTH), "]".repeat(NESTING_DEPTH))),
        )
    }),
    ("arguments with a lone surrogate", |channel| request_outcome(channel, call("echo", r#"["\ud800"]"#))),
    ("arguments that are not UTF-8", |channel| {
        request_outcome(channel, call("echo", b"[\"\xff\"]".to_vec()))
    }),
    ("arguments with NaN", |channel| request_outcome(channel, call("echo", "[NaN]"))),
    ("arguments with an endless number", |channel| request_outcome(channel, call("echo", "[1e999999999]"))),
    ("arguments that are empty", |channel| request_outcome(channel, call("echo", ""))),
    ("arguments of 8 MB", |channel| {
        request_outcome(channel, call("text", format!("[\"{}\"]", "x".repeat(8_000_000))))
    }),
    ("arguments of a million values", |channel| {
        request_outcome(channel, call("echo", format!("[[{}1]]", "1,".repeat(1_000_000))))
    }),
    ("the same name a million times", |channel| {
        request_outcome(channel, call("echo", format!("{{{}\"value\":1}}", "\"value\":1,".repeat(500_000))))
    }),
    ("a search of 8 MB", |channel| {
        request_outcome(
            channel,
            WorkerRequest::Search {
                query: "text ".repeat(1_600_000),
                limit: u32::MAX,
                detail: SearchDetail::Full,
            },
        )
    }),
    ("a server that is not there", |channel| {
        request_outcome(
            channel,
            ServerName::new("x".repeat(128))
                .map_or(list_tools(), |server| WorkerRequest::ListTools { server }),
        )
    }),
    ("a tool with a path for a name", |channel| {
        let names = (ServerName::new("fixture"), ToolName::new("../".repeat(42)));
        let (Ok(server), Ok(tool)) = names else { return value("0") };
        request_outcome(
            channel,
            WorkerRequest::Call {
                server,
                tool,
                arguments: b"{}".to_vec(),
                decoded: Vec::new(),
                timeout_ms: None,
                line: Some(0),
            },
        )
    }),
    // Closed channels and ended processes.
    ("half-close", |channel| match channel.half_close() {
        Ok(()) => wait(),
        Err(errno) => value(&format!("\"{errno:?}\"")),
    }),
    ("close and spin", |channel| {
        channel.close();
        loop {
            std::hint::spin_loop();
        }
    }),
    ("spin", |_| {
        loop {
            std::hint::spin_loop();
        }
    }),
    ("exit with 0", |_| std::process::exit(0)),
    ("exit with 1", |_| std::process::exit(1)),
    ("exit with 71", |_| std::process::exit(71)),
    ("exit with 255", |_| std::process::exit(255)),
    ("SIGSTOP", |_| signal(Signal::SIGSTOP)),
    ("SIGSEGV", |_| signal(Signal::SIGSEGV)),
    ("SIGABRT", |_| signal(Signal::SIGABRT)),
    ("SIGKILL", |_| signal(Signal::SIGKILL)),
    ("SIGTERM", |_| signal(Signal::SIGTERM)),
    ("an attack", |_| {
        let _ = nix::unistd::chroot("/");
        wait()
    }),
    // Invalid claimed outcomes.
    ("a value that is no JSON", |_| value("{not JSON")),
    ("a value that is empty", |_| value("")),
    ("a value that is not UTF-8", |_| Outcome::Value(Some(b"\"\xff\"".to_vec()))),
    ("two values", |_| value("1 2")),
    ("a value with a lone surrogate", |_| value(r#""\ud800""#)),
    ("a value nested too deeply", |_| {
        value(&format!("{}{}", "[".repeat(NESTING_DEPTH), "]".repeat(NESTING_DEPTH)))
    }),
    ("a value of 8 MB", |_| value(&format!("[{}1]", "1,".repeat(4_000_000)))),
    ("an error of megabytes", |_| Outcome::Error(error(&"x".repeat(2 * MIB)))),
    ("an error of control characters", |_| {
        Outcome::Error(error(&"\u{1b}[31m\0\u{7}\u{202e}\n".repeat(10_000)))
    }),
    ("an error of nothing", |_| Outcome::Error(CodeError::default())),
    ("an interrupt that nobody sent", |_| Outcome::Interrupted(error("interrupted"))),
    ("a CPU limit that was not reached", |_| Outcome::CpuLimit(error("CPU"))),
    ("a memory limit that was not reached", |_| Outcome::MemoryLimit(error("memory"))),
];

fn value(json: &str) -> Outcome {
    Outcome::Value(Some(json.as_bytes().to_vec()))
}

fn done(json: &str) -> FromWorker {
    FromWorker::Done(value(json))
}

fn printed(text: &str) -> FromWorker {
    FromWorker::Output { stream: Stream::Stdout, text: text.to_owned() }
}

fn lookup(id: u32) -> FromWorker {
    request(id, WorkerRequest::ListServers)
}

/// Creates an error with the same text in each of its text fields.
fn error(text: &str) -> CodeError {
    CodeError {
        kind: text.to_owned(),
        code: Some(text.to_owned()),
        message: text.to_owned(),
        line: Some(u32::MAX),
        column: Some(0),
        traceback: Some(text.chars().take(MIB).collect()),
        hint: Some(text.chars().take(MIB).collect()),
    }
}

/// Returns pseudo-random bytes, the same in each run.
fn random(count: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(1);
    std::iter::repeat_with(|| random.u8(..)).take(count).collect()
}

/// Encodes a `ListTools` request whose server name is `name`, valid or not.
fn server_named(name: &[u8]) -> Vec<u8> {
    [&number(3)[..], &number(1), &number(2), &length(name.len() as u64), name].concat()
}

fn write_and_wait(channel: &RawChannel, bytes: &[u8]) -> Outcome {
    channel.write(bytes);
    wait()
}

fn send_and_wait(channel: &RawChannel, messages: &[FromWorker]) -> Outcome {
    write_and_wait(channel, &messages.iter().flat_map(encoded).collect::<Vec<u8>>())
}

fn send_body(channel: &RawChannel, parts: &[&[u8]]) -> Outcome {
    channel.body(parts);
    wait()
}

fn repeat(channel: &RawChannel, bytes: &[u8]) -> Outcome {
    loop {
        channel.write(bytes);
    }
}

/// Sends a request to the supervisor. The returned outcome is "answered", or the error code of the reply.
fn request_outcome(channel: &RawChannel, request: WorkerRequest) -> Outcome {
    let reply: Reply = channel.ask(request);
    value(&format!("\"{}\"", reply.map_or_else(|failure| failure.code.as_str(), |_| "answered")))
}

/// Calls a tool of the fixture server. `text` is `TOOL ARGUMENTS`. The outcome is "answered", or the error code of
/// the reply.
pub(crate) fn called(channel: &RawChannel, text: &str) -> Outcome {
    let (tool, arguments) = text.split_once(' ').unwrap_or((text, ""));
    request_outcome(channel, call(tool, arguments))
}

fn signal(signal: Signal) -> Outcome {
    end_by(signal);
    wait()
}

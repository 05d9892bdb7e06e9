//! What a peer does once it has code. A behaviour that comes back does so with the outcome that it claims.

use std::time::Duration;

use lockhouse_protocol::{
    CodeError, Detail, ExecutionId, FromWorker, Job, Outcome, Reply, Request, ServerName, Stream, ToWorker,
    ToolName, frame,
};
use nix::sys::signal::Signal;

use crate::wire::{Wire, call, encoded, end_by, length, list_tools, number, request, wait};

type Behaviour = fn(&Wire) -> Outcome;

const MIB: usize = 1024 * 1024;
const SLOWLY: Duration = Duration::from_millis(10);
const DEEP: usize = 100_000;

/// Each with the name by which code asks for it.
pub(crate) const ALL: &[(&str, Behaviour)] = &[
    ("well", |_| value("42")),
    // Twenty calls over two tenths of a second: long enough to be there while another one misbehaves.
    ("well for a while", |wire| {
        let sums = (0..20).map(|n| {
            std::thread::sleep(SLOWLY);
            let sum = wire.ask(call("add", format!("[{n}, 1]"))).unwrap_or_default();
            String::from_utf8_lossy(&sum).contains(&format!("\"sum\":{}}}", n + 1))
        });
        value(&sums.filter(|right| *right).count().to_string())
    }),
    // Lengths and frames.
    ("length of 2^32-1", |wire| write_and_wait(wire, &u32::MAX.to_le_bytes())),
    ("length of the limit and one", |wire| write_and_wait(wire, &number(8 * MIB as u32 + 1))),
    ("length of 2^31, in pieces", |wire| {
        wire.write(&[0, 0]);
        std::thread::sleep(SLOWLY);
        write_and_wait(wire, &[0, 0x80])
    }),
    ("length of 0", |wire| write_and_wait(wire, &number(0))),
    ("a frame never finished", |wire| write_and_wait(wire, &[&number(1000)[..], &[0; 500]].concat())),
    ("a large frame never finished", |wire| {
        wire.write(&number(8 * MIB as u32));
        write_and_wait(wire, &vec![0; 8 * MIB - 1])
    }),
    ("half a frame and the end", |wire| {
        wire.write(&[&number(1000)[..], &[0; 500]].concat());
        std::process::exit(0)
    }),
    ("slow bytes", |wire| {
        for byte in encoded(&printed(&"x".repeat(1000))) {
            wire.write(&[byte]);
            std::thread::sleep(SLOWLY);
        }
        wait()
    }),
    ("a value of 100 MB", |wire| {
        let bytes = 100_000_000;
        wire.write(&number(bytes + 17));
        (0..bytes / 100_000).for_each(|_| wire.write(&[b'1'; 100_000]));
        wait()
    }),
    // Floods.
    ("a flood of output", |wire| repeat(wire, &encoded(&printed(&"x".repeat(1000))))),
    ("a flood of output that is empty", |wire| repeat(wire, &encoded(&printed("")).repeat(1000))),
    ("a flood of output of one byte", |wire| repeat(wire, &encoded(&printed("x")).repeat(1000))),
    ("a flood of requests", |wire| {
        let frames = (1..10_000).flat_map(|id| encoded(&request(id, call("add", "[1, 2]"))));
        write_and_wait(wire, &frames.collect::<Vec<u8>>())
    }),
    ("a flood of calls that are answered", |wire| {
        (0..100_000).for_each(|_| drop(wire.ask(call("add", "[1, 2]"))));
        value("1")
    }),
    ("a flood of lookups", |wire| {
        (0..100_000).for_each(|_| drop(wire.ask(list_tools())));
        value("1")
    }),
    ("large replies, never read", |wire| {
        (1..=8).for_each(|id| wire.say(&request(id, call("big", "[4000000]"))));
        wait()
    }),
    ("lookups, never read", |wire| {
        (1..=8).for_each(|id| wire.say(&request(id, list_tools())));
        wait()
    }),
    // Messages out of their place.
    ("an id twice", |wire| say_and_wait(wire, &[1, 1].map(lookup))),
    ("ids that decrease", |wire| say_and_wait(wire, &[7, 3].map(lookup))),
    ("an id of 0", |wire| say_and_wait(wire, &[0].map(lookup))),
    ("ready again", |wire| say_and_wait(wire, &[FromWorker::Ready])),
    ("refused in mid-run", |wire| say_and_wait(wire, &[FromWorker::Refused { reason: "no".into() }])),
    ("done twice", |wire| say_and_wait(wire, &[done("1"), done("2")])),
    ("a request after the end", |wire| say_and_wait(wire, &[done("1"), request(1, call("count", "{}"))])),
    ("output after the end", |wire| say_and_wait(wire, &[done("1"), printed("late")])),
    ("ready after the end", |wire| say_and_wait(wire, &[done("1"), FromWorker::Ready])),
    ("a request twice after the end", |wire| say_and_wait(wire, &[done("1"), lookup(1), lookup(1)])),
    ("a flood after the end", |wire| {
        wire.say(&done("1"));
        repeat(wire, &encoded(&printed(&"x".repeat(1000))))
    }),
    ("exits after the end", |wire| {
        wire.say(&done("1"));
        std::process::exit(0)
    }),
    ("garbage after the end", |wire| {
        write_and_wait(wire, &[&encoded(&done("1"))[..], &[0xff; 4096]].concat())
    }),
    ("a reply of its own", |wire| {
        let reply = ToWorker::Reply { call: lockhouse_protocol::CallId(1), reply: Ok(b"1".to_vec()) };
        write_and_wait(wire, &frame::encode(&reply, u32::MAX).unwrap_or_default())
    }),
    ("a job of its own", |wire| {
        let job =
            Job { execution: ExecutionId(u128::MAX), code: "well".into(), servers: vec![], session: false };
        write_and_wait(wire, &frame::encode(&ToWorker::Run(job), u32::MAX).unwrap_or_default())
    }),
    // Bytes that are no message.
    ("random bytes", |wire| write_and_wait(wire, &random(100_000))),
    ("random bytes in a frame", |wire| say_body(wire, &[&random(1000)])),
    ("text that is not UTF-8", |wire| say_body(wire, &[&number(2), &number(0), &length(2), &[0xc3, 0x28]])),
    ("text longer than its frame", |wire| say_body(wire, &[&number(2), &number(0), &length(1 << 40), b"x"])),
    ("a server name with a space", |wire| say_body(wire, &[&server_named(b"a b")])),
    ("a server name of a megabyte", |wire| say_body(wire, &[&server_named(&vec![0x1b; MIB])])),
    ("a server name that is empty", |wire| say_body(wire, &[&server_named(b"")])),
    // Requests that are well formed, with contents that are not.
    ("arguments nested too deeply", |wire| asked(wire, call("echo", "[".repeat(DEEP)))),
    ("an argument nested too deeply", |wire| {
        asked(wire, call("echo", format!("[{}1{}]", "[".repeat(DEEP), "]".repeat(DEEP))))
    }),
    ("arguments with a lone surrogate", |wire| asked(wire, call("echo", r#"["\ud800"]"#))),
    ("arguments that are not UTF-8", |wire| asked(wire, call("echo", b"[\"\xff\"]".to_vec()))),
    ("arguments with NaN", |wire| asked(wire, call("echo", "[NaN]"))),
    ("arguments with an endless number", |wire| asked(wire, call("echo", "[1e999999999]"))),
    ("arguments that are empty", |wire| asked(wire, call("echo", ""))),
    ("arguments of 8 MB", |wire| asked(wire, call("text", format!("[\"{}\"]", "x".repeat(8_000_000))))),
    ("arguments of a million values", |wire| {
        asked(wire, call("echo", format!("[[{}1]]", "1,".repeat(1_000_000))))
    }),
    ("the same name a million times", |wire| {
        asked(wire, call("echo", format!("{{{}\"value\":1}}", "\"value\":1,".repeat(500_000))))
    }),
    ("a search of 8 MB", |wire| {
        asked(
            wire,
            Request::Search { query: "text ".repeat(1_600_000), limit: u32::MAX, detail: Detail::Full },
        )
    }),
    ("a server that is not there", |wire| {
        asked(
            wire,
            ServerName::new("x".repeat(128)).map_or(list_tools(), |server| Request::ListTools { server }),
        )
    }),
    ("a tool with a path for a name", |wire| {
        let names = (ServerName::new("fixture"), ToolName::new("../".repeat(42)));
        let (Ok(server), Ok(tool)) = names else { return value("0") };
        asked(
            wire,
            Request::Call { server, tool, arguments: b"{}".to_vec(), timeout_ms: None, line: Some(0) },
        )
    }),
    // Ends of the channel and of the process.
    ("half-close", |wire| match wire.half_close() {
        Ok(()) => wait(),
        Err(errno) => value(&format!("\"{errno:?}\"")),
    }),
    ("close and spin", |wire| {
        wire.close();
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
    // Outcomes that are claimed.
    ("a value that is no JSON", |_| value("{not JSON")),
    ("a value that is empty", |_| value("")),
    ("a value that is not UTF-8", |_| Outcome::Value(Some(b"\"\xff\"".to_vec()))),
    ("two values", |_| value("1 2")),
    ("a value with a lone surrogate", |_| value(r#""\ud800""#)),
    ("a value nested too deeply", |_| value(&format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP)))),
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
    request(id, Request::ListServers)
}

/// The same text wherever an error has room for one.
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

/// The same bytes each time.
fn random(count: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(1);
    std::iter::repeat_with(|| random.u8(..)).take(count).collect()
}

/// `ListTools` with this for a name.
fn server_named(name: &[u8]) -> Vec<u8> {
    [&number(3)[..], &number(1), &number(2), &length(name.len() as u64), name].concat()
}

fn write_and_wait(wire: &Wire, bytes: &[u8]) -> Outcome {
    wire.write(bytes);
    wait()
}

fn say_and_wait(wire: &Wire, messages: &[FromWorker]) -> Outcome {
    write_and_wait(wire, &messages.iter().flat_map(encoded).collect::<Vec<u8>>())
}

fn say_body(wire: &Wire, parts: &[&[u8]]) -> Outcome {
    wire.body(parts);
    wait()
}

fn repeat(wire: &Wire, bytes: &[u8]) -> Outcome {
    loop {
        wire.write(bytes);
    }
}

/// Asks, and gives what the reply came to.
fn asked(wire: &Wire, request: Request) -> Outcome {
    let reply: Reply = wire.ask(request);
    value(&format!("\"{}\"", reply.map_or_else(|failure| failure.code.as_str(), |_| "answered")))
}

/// `TOOL ARGUMENTS` of the fixture server, in a frame of its own making.
pub(crate) fn called(wire: &Wire, text: &str) -> Outcome {
    let (tool, arguments) = text.split_once(' ').unwrap_or((text, ""));
    asked(wire, call(tool, arguments))
}

fn signal(signal: Signal) -> Outcome {
    end_by(signal);
    wait()
}

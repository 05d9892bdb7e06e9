//! Tests of the audit sink with engines that connect to it.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_protocol::Language;

use super::connection::check_record;
use super::messages::{FromSink, ToSink, VERSION};
use super::*;
use crate::hash_chain::RecordBody;
use crate::segment::segments;
use crate::verify::{Finding, FindingKind, LogLocation, TrustedKey, VerificationSummary, verify};

/// A sink that serves connections in this process.
struct TestSink {
    place: tempfile::TempDir,
    sink: Arc<Sink>,
}

impl TestSink {
    fn new(quota_bytes_per_day: u64) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let (log, keys) = (place.path().join("log"), place.path().join("keys"));
        let sink =
            Sink::open(SinkSettings { log, keys, keep_days: 30, quota_bytes_per_day }, None).expect("a log");
        Self { place, sink }
    }

    fn start(self) -> Self {
        let listener = Sink::listen(&self.socket()).expect("a socket");
        let sink = self.sink.clone();
        std::thread::spawn(move || sink.serve(&listener));
        self
    }

    fn socket(&self) -> PathBuf {
        self.place.path().join("sink.sock")
    }

    fn log(&self) -> PathBuf {
        self.place.path().join("log")
    }

    fn client(&self) -> SinkClient {
        SinkClient::new(self.socket(), RequiredForwarding::default())
    }

    /// Ends all segments, and verifies the log.
    fn verified(&self) -> VerificationSummary {
        self.sink.close();
        let mut found: Vec<Finding> = Vec::new();
        let (keys, log) = (self.place.path().join("keys"), self.log());
        let trust = TrustedKey::Local { keys: &keys, log: &log }.into();
        let summary = verify(&log, LogLocation::Original, &trust, &mut |finding| found.push(finding));
        assert!(found.iter().all(|finding| finding.kind == FindingKind::Note), "{found:?}");
        summary.expect("readable")
    }

    fn text(&self) -> String {
        let names = segments(&self.log()).expect("readable");
        names
            .iter()
            .map(|name| std::fs::read_to_string(self.log().join(name.as_str())).expect("readable"))
            .collect()
    }
}

fn call(number: u32) -> RecordBody {
    RecordBody::new("call").text("server", "fixture").number("n", number)
}

#[test]
fn records_and_programs_of_engines_are_in_the_log_when_the_sink_has_answered() {
    let sink = TestSink::new(u64::MAX).start();
    let (mut one, mut other) = (sink.client(), sink.client());
    one.keep(Language::Python, "print(1)").expect("stored");
    for number in 0..5 {
        one.append(&call(number)).expect("written");
        assert!(sink.text().contains(&format!("\"n\":{number}")), "it is in the file");
    }
    other.append(&call(9)).expect("written");
    assert_eq!(segments(&sink.log()).expect("readable").len(), 2, "each connection has a segment");
    let uid = nix::unistd::getuid();
    let open = format!("\"process\":{},", std::process::id());
    assert!(
        sink.text().contains(&open) && sink.text().contains(&format!("\"uid\":{uid}")),
        "{}",
        sink.text()
    );
    assert_eq!(sink.verified().records, 2 * 2 + 6);
    assert!(std::fs::read_dir(sink.log().join("code")).expect("readable").count() == 1);
}

#[test]
fn a_sink_that_is_away_makes_records_fail_at_once_and_the_gap_is_recorded() {
    let sink = TestSink::new(u64::MAX);
    let mut client = sink.client();
    let started = Instant::now();
    for _ in 0..3 {
        let error = client.append(&call(0)).expect_err("no sink").to_string();
        assert!(error.contains("is away") && error.contains("lockhouse-audit.service"), "{error}");
    }
    assert!(started.elapsed() < Duration::from_secs(2) && !client.is_reachable());
    let sink = sink.start();
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(error) = client.append(&call(1)) {
        assert!(Instant::now() < deadline, "{error}");
        std::thread::yield_now();
    }
    assert!(sink.text().contains("\"event\":\"gap\""), "{}", sink.text());
    sink.verified();
}

#[test]
fn a_sink_that_does_not_answer_holds_up_one_record_for_two_seconds() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("sink.sock");
    // Nobody accepts the connection; the kernel takes it into its queue.
    let _listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let mut client = SinkClient::new(path, RequiredForwarding::default());
    let started = Instant::now();
    let error = client.append(&call(0)).expect_err("no answer").to_string();
    assert!(error.contains("did not answer within 2 s"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10));
    let again = client.append(&call(0)).expect_err("no answer").to_string();
    assert!(
        !again.contains("within 2 s") && again.contains("is away"),
        "the second one fails at once: {again}"
    );
}

#[test]
fn an_engine_cannot_write_what_the_log_states_itself() {
    let rows = [
        ("control", r#"{"event":"call","server":"fixture"}"#, true),
        ("control: a nested member", r#"{"event":"call","arguments":{"seq":"integer"}}"#, true),
        ("the end of a segment", r#"{"event":"close"}"#, false),
        ("an escaped event", r#"{"event":"clos\u0065"}"#, false),
        ("an escaped member", r#"{"event":"call","s\u0065q":7}"#, false),
        ("a sequence number", r#"{"event":"call","seq":7}"#, false),
        ("a time", r#"{"event":"call","time":"2020-01-01T00:00:00Z"}"#, false),
        ("a signature", r#"{"event":"call","signature":""}"#, false),
        ("a member twice", r#"{"event":"call","event":"end"}"#, false),
        ("two objects", r#"{"event":"call"}{"event":"end"}"#, false),
        ("two lines", "{\"event\":\"call\",\n\"n\":1}", false),
        ("no object", r#"["event"]"#, false),
        ("not complete", r#"{"event":"call""#, false),
        ("no event first", r#"{"n":1,"event":"call"}"#, false),
    ];
    for (name, record, is_accepted) in rows {
        assert_eq!(check_record(record).is_ok(), is_accepted, "{name}");
    }
}

#[test]
fn a_hostile_engine_is_disconnected_or_refused_and_others_go_on() {
    let sink = TestSink::new(10_000).start();
    let mut honest = sink.client();
    honest.append(&call(0)).expect("written");
    type Attack = fn(&mut UnixStream) -> std::io::Result<()>;
    let rows: [(&str, Attack); 5] = [
        ("a length beyond the limit", |stream| stream.write_all(&[0xff, 0xff, 0xff, 0xff, 1])),
        ("an unknown kind", |stream| stream.write_all(&[0, 0, 0, 0, 9])),
        ("no text", |stream| stream.write_all(&[0, 0, 0, 1, 1, 0xff])),
        ("a record before the greeting", |stream| ToSink::Record(call(1).as_object()).write(stream)),
        ("half a message", |stream| {
            stream.write_all(&[0, 0, 0, 9, 1, b'{'])?;
            stream.shutdown(std::net::Shutdown::Write)
        }),
    ];
    for (name, attack) in rows {
        let mut stream = UnixStream::connect(sink.socket()).expect("connected");
        attack(&mut stream).expect("sent");
        let answer = FromSink::read(&mut stream);
        assert!(answer.is_err(), "{name}: {answer:?}");
        honest.append(&call(2)).expect("another connection");
    }
    let mut stream = UnixStream::connect(sink.socket()).expect("connected");
    ToSink::Hello(VERSION + 1).write(&mut stream).expect("sent");
    let answer = FromSink::read(&mut stream).expect("an answer");
    assert!(matches!(&answer, FromSink::Refused(reason) if reason.contains("version")), "{answer:?}");
    let refused = sink.client().keep(Language::Python, &"x".repeat(20_000)).expect_err("beyond the quota");
    assert!(refused.to_string().contains("--quota-mib"), "{refused}");
    sink.verified();
}

#[test]
fn the_threads_that_serve_engines_cannot_remove_truncate_or_rename_a_segment() {
    let sink = TestSink::new(u64::MAX).start();
    let mut client = sink.client();
    client.append(&call(0)).expect("written");
    let path = sink.log().join(segments(&sink.log()).expect("readable")[0].as_str());
    let (log, keys, programs) = (sink.log(), sink.place.path().join("keys"), sink.log().join("code"));
    let target = path.clone();
    let confined = std::thread::spawn(move || {
        super::confinement::confine(&log, &programs, &keys).expect("confined");
        let removed = std::fs::remove_file(&target).is_ok();
        let renamed = std::fs::rename(&target, log.join("other")).is_ok();
        let truncated = std::fs::OpenOptions::new().write(true).truncate(true).open(&target).is_ok();
        let appended = std::fs::OpenOptions::new().append(true).open(&target).is_ok();
        let elsewhere = std::fs::read("/etc/hostname").is_ok() || std::fs::read("/etc/passwd").is_ok();
        [removed, renamed, truncated, elsewhere, appended]
    });
    assert_eq!(confined.join().expect("it ended"), [false, false, false, false, true]);
    client.append(&call(1)).expect("written");
    sink.verified();
    std::fs::remove_file(path).expect("control: this thread is not confined");
}

/// Measures the round trip to the sink.
#[test]
#[ignore = "a measure"]
fn the_round_trip_to_the_sink_is_short() {
    let sink = TestSink::new(u64::MAX).start();
    let mut client = sink.client();
    let body = call(1).text("text", &"x".repeat(400));
    client.append(&body).expect("written");
    let mut times: Vec<Duration> = (0..20_000)
        .map(|_| {
            let started = Instant::now();
            client.append(&body).expect("written");
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("round trip: p50 {:?}, p95 {:?}, p99 {:?}", times[10_000], times[19_000], times[19_800]);
}

#[test]
fn the_sink_writes_ids_for_engines_that_ask_for_them_and_erases_names_of_their_account() {
    let sink = TestSink::new(1024 * 1024);
    sink.sink.start_maintenance().expect("a thread");
    let sink = sink.start();
    let body = RecordBody::new("call").text("client", "ada");
    let (mut plain, mut erasable) = (sink.client(), sink.client().writing_ids());
    plain.append(&body).expect("written");
    erasable.append(&body).expect("written");
    let read = || {
        let names: Vec<_> = crate::reader::records(&sink.log(), &crate::reader::Filter::default())
            .expect("readable")
            .filter_map(|found| match found.expect("readable").record.event {
                crate::AuditEvent::Call { about, .. } => about.client,
                _ => None,
            })
            .collect();
        names
    };
    assert_eq!(read(), ["ada", "ada"]);
    erasable.erase_names(&["ada".into()]).expect("erased");
    let left = read();
    assert!(left[0] == "ada" && left[1].starts_with("name:"), "{left:?}");
    sink.verified();
}

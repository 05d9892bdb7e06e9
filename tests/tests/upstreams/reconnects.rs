//! Tests of an upstream server whose connection is lost again and again: Lockhouse reconnects without leaks.

use lockhouse_tests::{Session, is_full, wait_until};

use crate::upstreams::scripted_server::{Scripted, processes};

/// Returns how often the test breaks the connection: 40 times, or with `LOCKHOUSE_TESTS=full` 1,000 times, the number
/// in the documentation.
fn rounds() -> usize {
    if is_full() { 1_000 } else { 40 }
}

fn memory_kib(session: &Session) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", session.pid())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Returns the number of open file descriptors of the supervisor. Returns `None` if the user of the tests is not root:
/// others may not read the list, because the supervisor is not dumpable.
fn descriptors(session: &Session) -> Option<usize> {
    Some(std::fs::read_dir(format!("/proc/{}/fd", session.pid())).ok()?.count())
}

#[tokio::test]
async fn reconnects_leak_no_descriptors_memory_or_processes() {
    let scripted = Scripted::new("", &[], &["echo", "kill"]);
    let session = scripted.lockhouse.serve().await;
    let lose = "from mcp_tools import ToolError, call_tool\ncall_tool('scripted', 'echo', {'text': 'x'})\n\
        try: call_tool('scripted', 'kill', {})\nexcept ToolError as e: r = e.code\nr";
    let warm_up = rounds() / 4;
    let mut before = None;
    for round in 0..rounds() {
        let starts = scripted.count("starts");
        assert_eq!(Scripted::value(&session, lose).await, "upstream_unavailable");
        wait_until("it is started again", async || (scripted.count("starts") > starts).then_some(())).await;
        if round == warm_up {
            before = Some((memory_kib(&session), descriptors(&session)));
        }
    }
    assert_eq!(Scripted::outcome(&session, "'echo', {'text': 'x'}").await, "x");
    let (memory, open) = before.expect("figures");
    let now = (memory_kib(&session), descriptors(&session));
    println!("{} reconnects: {memory} KiB and {open:?} descriptors, then {now:?}", rounds());
    assert!(now.0 < memory + 4 * 1024, "{memory} KiB, then {} KiB", now.0);
    // There may be one worker more or fewer at the moment of counting.
    if let (Some(open), Some(now)) = (open, now.1) {
        assert!(now.abs_diff(open) <= 8, "{open} descriptors, then {now}");
    }
    assert_eq!(processes(&session).len(), 1);
    assert_eq!(session.close().await.status, Some(0));
}

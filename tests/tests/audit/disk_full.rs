//! Tests of a full disk: while no audit record can be written, calls fail with an error that names the audit log. Calls
//! succeed again when there is space.

use std::path::Path;

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal, wait_until};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde_json::Value;

use crate::audit::sink::{Sink, as_sink, log, segments, sink_key};
use crate::audit::{ADD, assert_verified};

/// A Python program that calls `add`. It returns the sum, or the code and the message of the error if the call fails.
const TRY_ADD: &str = "from mcp_tools import ToolError\nfrom mcp_tools.fixture import add\n\
                       try: r = add(a=1, b=2)['sum']\nexcept ToolError as e: r = [e.code, e.message]\nr";

/// Limits the size in bytes of the files that another process may write (`RLIMIT_FSIZE`).
#[allow(unsafe_code, reason = "Limits of another process")]
fn limit_file_size(pid: u32, bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call only reads the limit.
    let done =
        unsafe { libc::prlimit(pid as i32, libc::RLIMIT_FSIZE, &raw const limit, std::ptr::null_mut()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

fn calls_made(lockhouse: &Lockhouse) -> usize {
    std::fs::read_to_string(lockhouse.path("notes")).unwrap_or_default().lines().count()
}

fn with_notes() -> Lockhouse {
    let lockhouse = Lockhouse::with_fixture();
    let flag = format!("--notes={}", lockhouse.path("notes").display());
    lockhouse.server("fixture", &[&flag])
}

async fn check_failure_and_recovery(
    lockhouse: &Lockhouse,
    session: &Session,
    table: &mut Table,
    name: &str,
    full: impl Fn(bool),
) {
    let run = async || session.run_code("python", TRY_ADD).await["value"].clone();
    assert_eq!(run().await, 3, "control");
    let before = calls_made(lockhouse);
    full(true);
    for attempt in 1..=3 {
        let value = run().await;
        let refused = value[0] == "denied"
            && value[1].as_str().is_some_and(|reported| reported.contains("the audit log"));
        table.row(format!("{name}: call {attempt} is refused with the reason"), ensure(refused, &value));
    }
    table.row(
        format!("{name}: no call was made"),
        ensure(calls_made(lockhouse) == before, calls_made(lockhouse)),
    );
    full(false);
    let value = run().await;
    table.row(
        format!("{name}: calls succeed again"),
        ensure(value == 3 && calls_made(lockhouse) == before + 1, &value),
    );
    let reported = assert_verified(lockhouse);
    table.row(
        format!("{name}: the gap is reported"),
        ensure(reported.contains("before this line could not be written"), &reported),
    );
}

#[tokio::test]
async fn calls_fail_while_no_record_can_be_written_and_the_gap_is_recorded() {
    let mut table = Table::new("a log that cannot grow");
    // A size limit within the next record leaves a partial record.
    for (name, room) in [("no room", 0), ("room for a piece", 100), ("room for the execution alone", 500)] {
        let lockhouse = with_notes();
        let session = lockhouse.serve().await;
        let pid = session.pid();
        let segment = || lockhouse.segments()[0].metadata().unwrap().len();
        let full = |is_full: bool| match is_full {
            true => limit_file_size(pid, segment() + room),
            false => limit_file_size(pid, libc::RLIM_INFINITY),
        };
        check_failure_and_recovery(&lockhouse, &session, &mut table, name, full).await;
        assert_eq!(session.close().await.status, Some(0));
        assert_verified(&lockhouse);
    }
    table.finish();
}

/// A tmpfs of 256 KiB that is mounted at this path. It is unmounted when the value is dropped.
struct SmallDisk<'a>(&'a Path);

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = umount2(self.0, MntFlags::MNT_DETACH);
    }
}

#[tokio::test]
async fn calls_fail_while_the_disk_is_full() {
    if !nix::unistd::geteuid().is_root() {
        println!("root alone can mount a small disk; a log that cannot grow stands for it");
        return;
    }
    let lockhouse = with_notes();
    let directory = lockhouse.audit_directory();
    std::fs::create_dir_all(&directory).unwrap();
    if let Err(error) =
        mount(Some("tmpfs"), &directory, Some("tmpfs"), MsFlags::empty(), Some("size=256k,mode=700"))
    {
        println!("a small disk cannot be mounted here ({error}); a log that cannot grow stands for it");
        return;
    }
    let disk = SmallDisk(&directory);
    let session = lockhouse.serve().await;
    let mut table = Table::new("a full disk");
    let filler = directory.join("filler");
    let full = |is_full: bool| match is_full {
        // Fills the disk page by page.
        true => {
            let mut file = std::fs::File::create(&filler).unwrap();
            while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
            // Fills the page that the log has begun.
            let mut log = std::fs::OpenOptions::new().append(true).open(&lockhouse.segments()[0]).unwrap();
            let before = log.metadata().unwrap().len();
            while std::io::Write::write_all(&mut log, b" ").is_ok() {}
            log.set_len(before).unwrap();
        }
        false => std::fs::remove_file(&filler).unwrap(),
    };
    // The page that the log has begun has space for some records.
    let fill = || {
        let records = lockhouse.records().len();
        full(true);
        records
    };
    assert_eq!(session.run_code("python", TRY_ADD).await["value"], 3, "control");
    fill();
    let mut refused = Value::Null;
    for _ in 0..20 {
        refused = session.run_code("python", TRY_ADD).await["value"].clone();
        if refused != 3 {
            break;
        }
    }
    let is_told = refused[0] == "denied"
        && refused[1].as_str().is_some_and(|reported| reported.contains("No space left"));
    table.row("a call is refused with the reason", ensure(is_told, &refused));
    let made = calls_made(&lockhouse);
    let again = session.run_code("python", TRY_ADD).await["value"].clone();
    table.row("no call was made", ensure(again[0] == "denied" && calls_made(&lockhouse) == made, &again));
    full(false);
    let after = session.run_code("python", TRY_ADD).await["value"].clone();
    table
        .row("with room again calls go on", ensure(after == 3 && calls_made(&lockhouse) == made + 1, &after));
    let reported = assert_verified(&lockhouse);
    table.row("the gap is reported", ensure(reported.contains("No space left"), &reported));
    assert_eq!(session.close().await.status, Some(0));
    assert_verified(&lockhouse);
    drop(disk);
    table.finish();
}

#[tokio::test]
async fn calls_fail_while_the_disk_of_the_sink_is_full() {
    if !nix::unistd::geteuid().is_root() {
        println!("root alone can mount a small disk");
        return;
    }
    let lockhouse = with_notes();
    let key = format!("[audit]\n{}", sink_key(&lockhouse));
    let lockhouse = lockhouse.config(&key);
    let directory = lockhouse.path("sink");
    std::fs::create_dir_all(&directory).unwrap();
    let size = Some("size=512k,mode=700");
    if let Err(error) = mount(Some("tmpfs"), &directory, Some("tmpfs"), MsFlags::empty(), size) {
        println!("a small disk cannot be mounted here ({error})");
        return;
    }
    let disk = SmallDisk(&directory);
    let sink = Sink::start(&lockhouse).await;
    let session = lockhouse.serve().await;
    let run = async || session.run_code("python", TRY_ADD).await["value"].clone();
    let mut table = Table::new("a full disk of the sink");
    table.row("control: there is room", equal(run().await, 3.into()));
    let filler = directory.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    // The page that the log has begun has room for some records.
    let refused =
        wait_until("a call is refused", async || Some(run().await).filter(|value| *value != 3)).await;
    let is_told = refused[0] == "denied"
        && refused[1]
            .as_str()
            .is_some_and(|words| words.contains("the audit sink: the log cannot be written"));
    table.row("a call is refused with the reason", ensure(is_told, &refused));
    let made = calls_made(&lockhouse);
    table.row("each call has its record", equal(log(&lockhouse).matches("\"event\":\"call\"").count(), made));
    let again = run().await;
    table.row("no call was made", ensure(again[0] == "denied" && calls_made(&lockhouse) == made, &again));
    let verified = as_sink(&lockhouse, &["audit", "verify"]);
    table.row("what is there verifies", ensure(verified.status == Some(0), &verified));
    drop(file);
    std::fs::remove_file(&filler).unwrap();
    table.row("with room again calls go on", equal(run().await, 3.into()));
    session.close().await;
    sink.stop();
    let verified = as_sink(&lockhouse, &["audit", "verify"]);
    let is_told = verified.status == Some(0) && verified.stdout.contains("No space left");
    table.row("the gap is reported", ensure(is_told, &verified));
    table.row("there are segments", ensure(!segments(&lockhouse).is_empty(), ()));
    drop(disk);
    table.finish();
}

/// Before its first record, nothing has failed yet.
#[tokio::test]
async fn a_process_that_starts_with_a_full_disk_is_not_ready_until_there_is_room() {
    if !nix::unistd::geteuid().is_root() {
        println!("root alone can mount a small disk");
        return;
    }
    let lockhouse = Lockhouse::new().config("[http]\nauth = \"none\"\n");
    let directory = lockhouse.audit_directory();
    std::fs::create_dir_all(&directory).unwrap();
    let size = Some("size=256k,mode=700");
    if let Err(error) = mount(Some("tmpfs"), &directory, Some("tmpfs"), MsFlags::empty(), size) {
        println!("a small disk cannot be mounted here ({error})");
        return;
    }
    let disk = SmallDisk(&directory);
    let filler = directory.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    let daemon = lockhouse.daemon().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ready = async || {
        let answer = client.get(daemon.url("/ready")).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (status, words) = wait_until("the engines are started", async || {
        Some(ready().await).filter(|(_, words)| !words.contains("starting"))
    })
    .await;
    assert!(status == 503 && words.contains("the audit log cannot be written"), "{status} {words}");
    drop(file);
    std::fs::remove_file(&filler).unwrap();
    wait_until("it is ready", async || (ready().await.0 == 200).then_some(())).await;
    drop(daemon);
    drop(disk);
}

#[tokio::test]
async fn a_removed_log_is_started_anew_and_reported_as_missing() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    assert_eq!(session.run_code("python", ADD).await["value"], 3);
    std::fs::remove_file(&lockhouse.segments()[0]).unwrap();
    // The file is checked at most every 10 ms, so the first records after the removal may be lost with it.
    let before = wait_until("the removal is noticed", async || {
        assert_eq!(session.run_code("python", ADD).await["value"], 3);
        Some(lockhouse.audit().len()).filter(|records| *records > 0)
    })
    .await;
    assert_eq!(session.run_code("python", ADD).await["value"], 3);
    assert_eq!(lockhouse.audit().len(), before + 2, "call and outcome, where they can be read");
    assert_eq!(session.close().await.status, Some(0));
    let finished = crate::audit::verify(&lockhouse);
    assert!(finished.status == Some(1) && finished.stdout.contains("removed"), "{finished:?}");
}

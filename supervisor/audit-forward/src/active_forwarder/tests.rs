//! Tests of the forwarding to one destination, with a clock that the tests move.

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use lockhouse_audit::{AuditSettings, UndeliveredOutcome, UndeliveredRecords, segments};

use super::*;
use crate::{Credentials, Destination, ForwardFormat};

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

/// Opens a log in `place`, and the forwarding to a journal whose socket is at `socket`.
fn forwarder(place: &Path, socket: &Path) -> (Arc<Audit>, ActiveForwarder) {
    let (log, state) = (place.join("log"), place.join("state"));
    let audit = Audit::open(AuditSettings {
        directory: log.clone(),
        keys: state.clone(),
        values: false,
        redact: Vec::new(),
        code: false,
        keep_days: 30,
        erasable_names: false,
        sink: None,
        forward: Vec::new(),
        forward_within: None,
    });
    let audit = audit.expect("a log");
    let destination: Destination = format!("journald:{}", socket.display()).parse().expect("a destination");
    let delivery = Arc::new(Delivery::new(destination.to_string()));
    let destination = ForwardDestination { destination, credentials: Credentials::default() };
    let settings = Arc::new(ForwardSettings {
        destinations: vec![destination.clone()],
        format: ForwardFormat::default(),
        ca: None,
        log,
        state,
        accounts: SegmentAccounts::Owner,
    });
    let files = StateFiles::new(&settings, &destination.destination);
    drop(files.lock().expect("a directory for the cursor"));
    let active = ActiveForwarder::new(settings, &destination, audit.clone(), delivery, files);
    (audit, active.expect("a cursor"))
}

/// Writes a record, as a call does.
fn record(audit: &Audit, number: u64) {
    let segment = SegmentName::parse(&format!("2026-01-31-{number:032x}.jsonl")).expect("a name");
    let records = UndeliveredRecords {
        destination: "another",
        outcome: UndeliveredOutcome::Lost,
        segment: &segment,
        first: number,
        last: None,
        reason: "a test",
    };
    audit.undelivered(records).expect("written");
}

/// Returns the value of a field of a journal entry.
fn field<'e>(entry: &'e str, name: &str) -> &'e str {
    let line = entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.expect("a field")
}

/// Returns the numbers of the records of each segment, in the order in which they arrived.
fn arrived(entries: &[String]) -> BTreeMap<String, Vec<u64>> {
    let mut of_segments = BTreeMap::<String, Vec<u64>>::new();
    for entry in entries {
        let seq = field(entry, "LOCKHOUSE_SEQ").parse().expect("a number");
        of_segments.entry(field(entry, "LOCKHOUSE_SEGMENT").to_owned()).or_default().push(seq);
    }
    of_segments
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_was_away_for_an_hour_gets_everything_in_its_order() {
    let place = tempfile::tempdir().expect("a directory");
    let socket = place.path().join("journal");
    let (audit, mut forwarder) = forwarder(place.path(), &socket);
    let (began, mut waits) = (tokio::time::Instant::now(), Vec::new());
    while began.elapsed() < HOUR {
        let before = tokio::time::Instant::now();
        record(&audit, waits.len() as u64);
        assert_eq!(before.elapsed(), Duration::ZERO, "no record waits");
        let error = forwarder.step().await.expect_err("it is away");
        let wait = forwarder.fail(&error);
        forwarder.publish();
        waits.push(wait);
        sleep(wait).await;
    }
    assert!(waits.iter().all(|wait| *wait <= MINUTE), "{waits:?}");
    // At most one attempt in half a minute, after the first ones.
    assert!((60..=130).contains(&waits.len()), "{}", waits.len());
    assert!(waits.iter().skip(10).all(|wait| *wait >= MINUTE / 2), "{waits:?}");
    audit.close();

    let receiver = UnixDatagram::bind(&socket).expect("a socket");
    let names = segments(&forwarder.settings.log).expect("readable");
    let lines = |name: &SegmentName| {
        let text = std::fs::read_to_string(forwarder.settings.log.join(name.as_str())).expect("readable");
        (name.to_string(), (0..text.lines().count() as u64).collect::<Vec<u64>>())
    };
    let written: BTreeMap<String, Vec<u64>> = names.iter().map(lines).collect();
    let count = written.values().map(Vec::len).sum::<usize>();
    assert!(count > waits.len(), "control: {count} records");
    let receive = move || {
        let mut buffer = vec![0; 64 * 1024];
        let mut next = || {
            let bytes = receiver.recv(&mut buffer).expect("an entry");
            String::from_utf8(buffer[..bytes].to_vec()).expect("text")
        };
        (0..count).map(|_| next()).collect::<Vec<String>>()
    };
    let receiving = std::thread::spawn(receive);
    tokio::time::resume();
    while forwarder.step().await.expect("it is there") == Step::Progress {}
    let entries = receiving.join().expect("it ended");
    assert_eq!(arrived(&entries), written);
    assert_eq!(forwarder.backlog.undelivered_segments(), 0);
}

//! Tests that a log of version 1, in which one key signs everything, verifies as before, and that processes of both versions
//! can write into one log.

use super::super::chain_writer::{Intervals, Writer};
use super::super::hash_chain::{Chain, hash};
use super::super::segment_index::INDEX;
use super::super::signing::SigningKey;
use super::history::{copy_directory, edit, faults, fill, noon};
use super::*;

/// The public key of the stored log, as `lockhouse audit key` of its version printed it.
const KEY: &str = "251689ff937fb885f40f5987b578d4ca0296b9a0488cedff0e2fef5922423e14";

/// A copy of the log that a build of version 1 wrote: a run, a token, and a run whose process was killed.
struct OldLog(tempfile::TempDir);

impl OldLog {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/version-1");
        copy_directory(&stored, &place.path().join("state"));
        Self(place)
    }

    fn keys(&self) -> std::path::PathBuf {
        self.0.path().join("state")
    }

    fn log(&self) -> std::path::PathBuf {
        self.keys().join("audit")
    }

    fn writer(&self) -> Writer {
        Writer::new(self.log(), self.keys(), Intervals::default())
    }

    fn key(&self) -> SigningKey {
        SigningKey::load(&self.keys().join("audit-key")).expect("readable").expect("a key")
    }

    fn verify(&self, key: TrustedKey<'_>) -> (VerificationSummary, Vec<Finding>) {
        let mut found = Vec::new();
        let summary =
            verify(&self.log(), LogLocation::Original, &key.into(), &mut |finding| found.push(finding));
        (summary.expect("readable"), found)
    }

    /// The faults that are found with the local key, and with the key of version 1.
    fn faults(&self) -> Vec<String> {
        let (keys, log) = (self.keys(), self.log());
        let old = PublicKey::from_hex(KEY).expect("a key");
        let [local, stored] = [TrustedKey::Local { keys: &keys, log: &log }, TrustedKey::Stored(&old)]
            .map(|key| faults(self.verify(key).1));
        [local, stored].concat()
    }

    /// Writes a closed segment as a process of version 1 does that has loaded this key.
    fn write_old_segment(&self, key: &SigningKey, name: &str) {
        let open =
            format!(r#""event":"open","version":1,"segment":"{name}","key":"{}""#, key.public_key().to_hex());
        let mut chain = Chain { seq: 0, prev: [0; 32] };
        let first = old_line(&mut chain, &open, Some(key));
        let (hash_of_first, call) = (chain.prev, old_line(&mut chain, r#""event":"call""#, None));
        let close = old_line(&mut chain, r#""event":"close","reason":"exit""#, Some(key));
        std::fs::write(self.log().join(name), [first, call, close].concat()).expect("written");
        edit(&self.log().join(INDEX), |lines| {
            let last = lines.last().expect("a line").trim_end();
            let mut index = Chain { seq: lines.len() as u64, prev: hash(last.as_bytes()) };
            let first = HEXLOWER.encode(&hash_of_first);
            let opened = format!(r#""event":"opened","segment":"{name}","first":"{first}""#);
            lines.push(old_line(&mut index, &opened, Some(key)));
            let last = HEXLOWER.encode(&chain.prev);
            let closed = format!(r#""event":"closed","segment":"{name}","last_seq":2,"last":"{last}""#);
            lines.push(old_line(&mut index, &closed, Some(key)));
        });
    }
}

fn old_line(chain: &mut Chain, members: &str, key: Option<&SigningKey>) -> String {
    let prev = HEXLOWER.encode(&chain.prev);
    let text =
        format!(r#"{{"seq":{},"prev":"{prev}","time":"2026-11-29T02:00:00.000000Z",{members}"#, chain.seq);
    let line = match key {
        Some(key) => format!(r#"{text},"signature":"{}"}}"#, key.sign(text.as_bytes())),
        None => format!("{text}}}"),
    };
    *chain = Chain { seq: chain.seq + 1, prev: hash(line.as_bytes()) };
    format!("{line}\n")
}

#[test]
fn a_stored_log_of_version_1_verifies_as_it_did() {
    let log = OldLog::new();
    let (keys, directory) = (log.keys(), log.log());
    let old = PublicKey::from_hex(KEY).expect("a key");
    for key in [TrustedKey::Local { keys: &keys, log: &directory }, TrustedKey::Stored(&old)] {
        let (summary, found) = log.verify(key);
        let VerificationSummary { segments, records, unsigned, programs, faults, key } = summary;
        assert_eq!((segments, records, unsigned, programs, faults), (3, 13, 3, 2, 0), "{found:?}");
        assert_eq!((found.len(), key), (1, Some(old.clone())), "{found:?}");
    }
    let other = SigningKey::generate().expect("a key").public_key();
    let found = faults(log.verify(TrustedKey::Stored(&other)).1);
    assert!(found.iter().any(|fault| fault.contains("it names another key")), "{found:?}");
    edit(&log.log().join(INDEX), |lines| lines[1] = lines[1].replace("\"last_seq\":5", "\"last_seq\":6"));
    assert!(!log.faults().is_empty(), "a changed line");
}

#[test]
fn a_log_that_changes_to_version_2_verifies_and_the_old_key_is_no_longer_in_a_file() {
    let log = OldLog::new();
    let old = log.key().public_key();
    assert_eq!(old.to_hex(), KEY, "control");
    let mut writer = log.writer();
    fill(&mut writer, noon(1_000));
    writer.close(noon(1_000), "exit");
    assert_eq!(log.faults(), [""; 0]);
    assert_ne!(log.key().public_key(), old);
}

#[test]
fn processes_of_both_versions_write_into_one_log() {
    let log = OldLog::new();
    let old = log.key();
    fill(&mut log.writer(), noon(1_000));
    // This process has loaded its key before the first process of version 2 wrote.
    log.write_old_segment(&old, "2026-11-29-01a22500000000000000000000000001.jsonl");
    fill(&mut log.writer(), noon(1_001));
    // And this one after it.
    let later = log.key();
    fill(&mut log.writer(), noon(1_002));
    log.write_old_segment(&later, "2026-11-29-01a22500000000000000000000000002.jsonl");
    assert_eq!(log.faults(), [""; 0]);
    fill(&mut log.writer(), noon(1_003));
    assert_eq!(log.faults(), [""; 0]);
    let stranger = SigningKey::generate().expect("a key");
    log.write_old_segment(&stranger, "2026-11-29-01a22500000000000000000000000003.jsonl");
    let found = log.faults();
    assert!(found.iter().any(|fault| fault.contains("it names another key")), "{found:?}");
}

//! Compares `docs/errors.md` with the error snapshots and the declared error codes: every error code is documented and occurs
//! in a snapshot, and every status in a snapshot is documented.

use std::collections::BTreeSet;
use std::path::Path;

use lockhouse_protocol::FailureCode;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the values between backticks in one column (counted from 0) of the tables in a section of `docs/errors.md`.
/// `heading` is the beginning of the section's heading.
fn documented(column: usize, heading: &str) -> BTreeSet<String> {
    let text = read("docs/errors.md");
    let section = text.split("\n## ").find(|section| section.starts_with(heading)).expect("the section");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(column + 1));
    cells.filter_map(|cell| Some(cell.trim().strip_prefix('`')?.strip_suffix('`')?.to_owned())).collect()
}

/// Returns the values of one member, such as `code`, in the `status:` lines of all snapshots. With `status`, only the
/// lines with this status are used.
fn values_in_snapshots(member: &str, status: Option<&str>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors/snapshots");
    for entry in std::fs::read_dir(folder).expect("the snapshots") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a snapshot");
        for head in text.lines().filter(|line| line.starts_with("status: ")) {
            let parts: Vec<(&str, &str)> =
                head.split(", ").filter_map(|part| part.split_once(": ")).collect();
            let is_meant = status.is_none_or(|status| parts.contains(&("status", status)));
            let values = parts.iter().filter(|(name, _)| is_meant && *name == member);
            found.extend(values.map(|(_, value)| (*value).to_owned()));
        }
    }
    found
}

#[test]
fn every_error_code_is_documented_and_has_a_snapshot() {
    let declared: BTreeSet<String> = FailureCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(documented(0, "ToolError"), declared);
    assert_eq!(values_in_snapshots("code", None), declared);
}

#[test]
fn every_execution_status_is_documented() {
    let statuses = documented(0, "How it ended");
    assert!(values_in_snapshots("status", None).is_subset(&statuses), "{statuses:?}");
    let types = documented(1, "How it ended");
    for status in ["timeout", "limit"] {
        let printed = values_in_snapshots("type", Some(status));
        assert!(!printed.is_empty() && printed.is_subset(&types), "{status}: {printed:?}");
    }
}

//! Tests that the errors in the snapshots are short, because a model has to read each of them.

use std::path::Path;

use lockhouse_tests::{Table, ensure};

/// The maximum median of the lengths of all errors, in characters.
const MEDIAN_MAX: usize = 500;
/// The maximum length of one error, in characters. It leaves room for a message of a program or tool, which
/// Lockhouse shortens to about 1,000 characters.
const LENGTH_MAX: usize = 1_500;

/// Returns the name and the error of each failed program in a snapshot. The error is everything after the
/// line with the status.
fn errors(snapshot: &str) -> Vec<(&str, &str)> {
    let programs = snapshot.split("\n=== ").skip(1);
    let parts = programs.filter_map(|program| {
        let (name, rest) = program.split_once('\n')?;
        let (_, report) = rest.split_once("\n---\nstatus: ")?;
        let (head, error) = report.split_once('\n')?;
        (head != "ok").then_some((name, error))
    });
    parts.collect()
}

#[test]
fn errors_are_short() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors/snapshots");
    let mut table = Table::new("lengths of errors, in characters");
    let mut all = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut lengths: Vec<(usize, &str)> =
            errors(&text).into_iter().map(|(name, error)| (error.chars().count(), name)).collect();
        lengths.sort_unstable();
        let group = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (median, (longest, name)) = (lengths[lengths.len() / 2].0, lengths[lengths.len() - 1]);
        table.row(
            format!("{group}: {} errors, median {median}, maximum {longest} ({name})", lengths.len()),
            ensure(longest <= LENGTH_MAX, longest),
        );
        all.extend(lengths.iter().map(|(length, _)| *length));
    }
    all.sort_unstable();
    let median = all[all.len() / 2];
    table.row(
        format!("all: {} errors, median {median}, maximum {}", all.len(), all[all.len() - 1]),
        ensure(all.len() > 250 && median <= MEDIAN_MAX, median),
    );
    table.finish();
}

//! Checks `tests/faults.toml`, the table of faults that were found from outside: each row is complete, and each test that it
//! names exists.

use lockhouse_tests::{Table, ensure, equal};
use serde::Deserialize;

use crate::citations::read;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Faults {
    security: Vec<Fault>,
    operation: Vec<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    number: usize,
    kind: String,
    /// What showed the fault.
    command: String,
    before: String,
    after: String,
    /// The places that were searched for the same kind of fault.
    searched: Vec<String>,
    /// The other places of the same kind.
    found: Vec<String>,
    /// `FILE::FUNCTION`.
    tests: Vec<String>,
}

impl Fault {
    fn check(&self) -> Result<(), String> {
        let texts = [&self.kind, &self.command, &self.before, &self.after];
        ensure(texts.iter().all(|text| text.len() > 10), "a text is missing")?;
        ensure(!self.searched.is_empty(), "no place was searched")?;
        ensure(self.found.iter().all(|place| !place.is_empty()), "an empty place")?;
        ensure(!self.tests.is_empty(), "no test")?;
        self.tests.iter().try_for_each(|test| test_exists(test))
    }
}

fn test_exists(test: &str) -> Result<(), String> {
    let (file, function) = test.rsplit_once("::").ok_or_else(|| format!("{test}: no function"))?;
    let definition = format!("fn {function}(");
    let has_it = |source: &str| {
        source.lines().any(|line| line.trim_start().trim_start_matches("async ").starts_with(&definition))
    };
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let source = std::fs::read_to_string(source).map_err(|error| format!("{test}: {error}"))?;
    ensure(has_it(&source), format!("{test}: no such test"))
}

#[test]
fn each_fault_has_its_row_and_its_tests() {
    let faults: Faults = toml::from_str(&read("tests/faults.toml")).expect("a table of faults");
    let mut table = Table::new("faults");
    for (kind, faults) in [("security", &faults.security), ("operation", &faults.operation)] {
        let numbers: Vec<usize> = faults.iter().map(|fault| fault.number).collect();
        table.row(
            format!("{kind}: each number once"),
            ensure(numbers.is_sorted_by(|one, other| one < other), &numbers),
        );
        for fault in faults {
            table.row(format!("{kind} {}: {}", fault.number, fault.command), fault.check());
        }
    }
    table.finish();
}

#[test]
fn a_row_with_a_missing_test_is_detected() {
    let own = "tests/tests/faults.rs::a_row_with_a_missing_test_is_detected";
    assert_eq!(test_exists(own), Ok(()));
    let mut table = Table::new("tests that do not exist");
    for wrong in ["tests/tests/faults.rs::a_row", "tests/no_such_file.rs::a_test", "no_file_at_all"] {
        table.row(wrong, equal(test_exists(wrong).is_err(), true));
    }
    table.finish();
}

//! Compares the table of crates in ARCHITECTURE.md with the actual crates of the workspace.

use lockhouse_tests::{Table, ensure};

use crate::layering::crates::CRATES;
use crate::layering::module_cycles::Modules;
use crate::layering::source::{root, sources};

/// The maximum difference between the number of lines in the table and the actual number of lines of a crate, as a
/// fraction of the actual number. [`ROUNDED`] lines are permitted in addition.
const TOLERANCE: f64 = 0.1;
/// The numbers of lines in the table are rounded up to multiples of this number.
const ROUNDED: f64 = 100.0;

/// Formats a row of the table of crates: the name of the crate, the workspace crates that it may depend on (`known`),
/// its number of source lines, and the number of its modules that are in dependency cycles (`circles`).
fn row(name: &str, known: &[&str], lines: usize, circles: usize) -> String {
    let known = if known.is_empty() { "nothing of ours".to_owned() } else { known.join(", ") };
    let circles = if circles == 0 { "none".to_owned() } else { circles.to_string() };
    format!("| `{name}` | {known} | {lines} | {circles} |")
}

#[test]
fn the_table_of_crates_is_true() {
    let document = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut table = Table::new("the table of crates");
    for (name, folder, known) in CRATES {
        let sources = sources(folder);
        let lines: usize = sources.iter().map(|source| source.text.lines().count()).sum();
        let circles = Modules::from_sources(&sources).cycles().iter().map(|circle| circle.len()).sum();
        let expected = row(name, known, lines.next_multiple_of(100), circles);
        let written = document.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let told = written.and_then(|row| row.split(" | ").nth(2)?.parse::<usize>().ok()).unwrap_or(0);
        let is_near = (told as f64 - lines as f64).abs() <= TOLERANCE * lines as f64 + ROUNDED;
        let is_true = is_near && written == Some(row(name, known, told, circles).as_str());
        table.row(expected.clone(), ensure(is_true, written));
    }
    table.finish();
}

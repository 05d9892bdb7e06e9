//! Compares docs/review.md with the repository: what it cites must exist, and it must have a row for every requirement of
//! the two documents that it reviews Lockhouse against.

use lockhouse_tests::{Table, ensure, equal};

use crate::citations::{Row, check_path, exists, is_path, paths, quoted, read, tables};

const REVIEW: &str = "docs/review.md";
/// The sections of docs/review.md that have a table of requirements, in their order. What is not met comes first.
const SECTIONS: [&str; 4] = ["Not met", "Partly met", "Met", "Does not apply"];
/// The sections of chapter C10 of OWASP AISVS 1.0, with the number of requirements in each.
const AISVS_SECTIONS: [(&str, u32); 4] = [("C10.1", 3), ("C10.2", 7), ("C10.3", 5), ("C10.4", 8)];
/// The requirements that the next version of AISVS, 1.01-dev, changes or adds.
const AISVS_CHANGES: [&str; 2] = ["C10.2.7 of 1.01-dev", "C10.4.9 of 1.01-dev"];
/// The attacks in the Security Best Practices of MCP, by the headings of that document.
const PRACTICES: [&str; 13] = [
    "Confused Deputy Problem",
    "Token Passthrough",
    "Server-Side Request Forgery",
    "SSRF Against Authorization Servers",
    "State Handle Hijacking",
    "Session Hijacking",
    "Local MCP Server Compromise",
    "OAuth Authorization URL Validation",
    "stdio Transport Security in Proxy Scenarios",
    "Mix-Up Attacks",
    "Localhost Redirect URI Impersonation",
    "CIMD Trust Policies",
    "Scope Minimization",
];

/// Returns the rows of the table of requirements below each heading in [`SECTIONS`], with the heading.
fn rows(document: &str) -> Vec<(&'static str, Row)> {
    let section = |heading| tables(document, heading).remove(0).into_iter().map(move |row| (heading, row));
    SECTIONS.into_iter().flat_map(section).collect()
}

/// Returns the requirement in the first cell of a row, without the level that follows in parentheses.
fn requirement(row: &[String]) -> String {
    row[0].split(" (").next().unwrap_or_default().to_owned()
}

/// Checks that a cited proof exists: a target of the Makefile (`make TARGET`), a file, or a test. The error says what is
/// missing.
fn check_proof(citation: &str) -> Result<(), String> {
    match citation.strip_prefix("make ") {
        Some(target) => {
            let is_target = read("Makefile").lines().any(|line| line.starts_with(&format!("{target}:")));
            ensure(is_target, "no such target of the Makefile")
        }
        None if is_path(citation) => check_path(citation),
        None => exists(citation),
    }
}

/// Returns the errors of the citations in a cell, each with its citation.
fn faults(cell: &str, check: impl Fn(&str) -> Result<(), String>) -> Vec<String> {
    let fault = |citation| check(citation).err().map(|fault| format!("{citation}: {fault}"));
    quoted(cell).filter_map(fault).collect()
}

#[test]
fn every_requirement_has_one_row() {
    let mut expected: Vec<String> = AISVS_SECTIONS
        .into_iter()
        .flat_map(|(section, count)| (1..=count).map(move |number| format!("{section}.{number}")))
        .collect();
    expected.extend([&AISVS_CHANGES[..], &PRACTICES].concat().into_iter().map(str::to_owned));
    expected.sort();
    let mut found: Vec<String> = rows(&read(REVIEW)).iter().map(|(_, row)| requirement(row)).collect();
    found.sort();
    equal(found, expected).unwrap();
}

/// Checks that all files and proofs that a row cites exist, and that a row that claims a control cites at least one of
/// each.
#[test]
fn every_row_cites_files_and_tests_that_exist() {
    let mut table = Table::new("what docs/review.md cites");
    for (heading, row) in rows(&read(REVIEW)) {
        let [name, asked, control, files, tests, rest] = &row[..] else { panic!("six cells: {row:?}") };
        let wrong = [faults(files, check_path), faults(tests, check_proof)].concat();
        table.row(format!("{heading}: {name}"), ensure(wrong.is_empty(), wrong));
        let is_full = [asked, control, files, tests, rest].into_iter().all(|cell| !cell.is_empty());
        let has_proof = [files, tests].into_iter().all(|cell| quoted(cell).next().is_some());
        let needs_proof = ["Partly met", "Met"].contains(&heading);
        table.row(format!("{name}: complete"), ensure(is_full && (has_proof || !needs_proof), &row));
    }
    table.finish();
}

#[test]
fn every_path_and_target_in_the_text_exists() {
    let document = read(REVIEW);
    let mut table = Table::new("paths and commands in docs/review.md");
    for path in paths(&document) {
        table.row(path, check_path(path));
    }
    let commands = document.lines().filter(|line| line.starts_with("make "));
    for command in commands.chain(quoted(&document).filter(|text| text.starts_with("make "))) {
        let target: Vec<&str> = command.split_whitespace().take(2).collect();
        table.row(command, check_proof(&target.join(" ")));
    }
    table.finish();
}

#[test]
fn citations_of_missing_proofs_are_detected() {
    let mut table = Table::new("citations of missing proofs");
    for wrong in [
        "make no-such-target",
        "tests/no_such_file.py",
        "http::host_and_origin::no_such_test",
        "lockhouse-front http::host_check::tests::no_such_test",
        "lockhouse-elsewhere http::host_check::tests::only_own_addresses_and_configured_hosts_are_accepted",
    ] {
        table.row(wrong, ensure(check_proof(wrong).is_err(), "it was found"));
    }
    table.finish();
}

/// Checks that the supply chain in docs/review.md has the licences, the exceptions and the pinned codec of deny.toml
/// and Cargo.toml.
#[test]
fn the_supply_chain_matches_the_policy_for_dependencies() {
    let (document, policy) = (read(REVIEW), read("deny.toml"));
    let (_, section) = document.split_once("\n## Supply chain\n").expect("the section");
    let (_, licences) = policy.split_once("[licenses]\nallow = [").expect("the licences");
    let (licences, _) = licences.split_once(']').expect("their end");
    let ignored = policy.split("id = \"").skip(1).filter_map(|rest| rest.split('"').next());
    let denied = policy.split("{ crate = \"").skip(1).filter_map(|rest| rest.split('"').next());
    let manifest = read("Cargo.toml");
    let codec = manifest.lines().find_map(|line| line.strip_prefix("bincode = { version = \"="));
    let codec = codec.and_then(|rest| rest.split('"').next()).expect("a pinned version");
    let mut table = Table::new("the supply chain in docs/review.md");
    let words = licences.split('"').skip(1).step_by(2).chain(ignored).chain(denied).chain([codec]);
    for word in words {
        table.row(word, ensure(section.contains(&format!("`{word}`")), "is not in the section"));
    }
    let is_test = |text: &&str| text.contains('_') && (text.contains("::") || text.contains(' '));
    for test in quoted(section).filter(is_test) {
        table.row(test, check_proof(test));
    }
    table.finish();
}

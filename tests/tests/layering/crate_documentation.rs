//! Compares ARCHITECTURE.md, and the documentation at the head of each crate, with the crates and files of the workspace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lockhouse_tests::{Table, ensure, equal};

use crate::citations::{quoted, read};
use crate::layering::crates::{CRATES, dependencies};
use crate::layering::source::root;

const DOCUMENT: &str = "ARCHITECTURE.md";
/// The endings of names that are checked as names of files.
const ENDINGS: [&str; 3] = ["rs", "py", "js"];

/// Returns the name and the folder of each crate that has a paragraph, in the order of the document.
fn paragraphs(document: &str) -> Vec<(&str, &str)> {
    let paragraph = |line: &str| line.starts_with("**`");
    document.lines().filter(|line| paragraph(line)).filter_map(name_and_folder).collect()
}

/// Parses the beginning of a paragraph about a crate, such as ``**`gate`** (`supervisor/gate/`):``.
fn name_and_folder(line: &str) -> Option<(&str, &str)> {
    let mut quoted = quoted(line);
    Some((quoted.next()?, quoted.next()?.strip_suffix('/')?))
}

/// Returns the name of a crate as ARCHITECTURE.md has it.
fn short(name: &str) -> &str {
    name.strip_prefix("lockhouse-").unwrap_or(name)
}

#[test]
fn every_crate_has_one_paragraph() {
    let document = read(DOCUMENT);
    let paragraphs = paragraphs(&document);
    let mut table = Table::new("the crates in ARCHITECTURE.md");
    for member in dependencies().keys() {
        let count = paragraphs.iter().filter(|(name, _)| *name == short(member)).count();
        table.row(format!("{member}: one paragraph"), equal(count, 1));
    }
    let members: BTreeSet<String> = dependencies().into_keys().collect();
    for (at, (name, folder)) in paragraphs.iter().enumerate() {
        let exists = members.iter().any(|member| short(member) == *name);
        table.row(format!("{name}: a crate of the workspace"), ensure(exists, "there is no such crate"));
        let is_there = root().join(folder).is_dir();
        table.row(format!("{name}: {folder} is its folder"), ensure(is_there, "there is no such folder"));
        let known =
            CRATES.iter().find(|(member, ..)| short(member) == *name).map_or(&[][..], |found| found.2);
        let below: Vec<&&str> =
            known.iter().filter(|known| paragraphs[at..].iter().any(|(name, _)| name == *known)).collect();
        table.row(format!("{name}: knows no crate below it"), ensure(below.is_empty(), &below));
    }
    table.finish();
}

#[test]
fn files_that_the_documentation_names_exist() {
    let mut table = Table::new("names of files in the documentation of crates");
    let ours = ["protocol/", "policies/", "worker/", "supervisor/"];
    let lost: Vec<String> = file_names(&read(DOCUMENT))
        .filter(|name| name.contains("/src/") || name.contains("/lib/"))
        .map(|name| {
            if ours.iter().any(|folder| name.starts_with(folder)) {
                name
            } else {
                format!("supervisor/{name}")
            }
        })
        .filter(|path| !root().join(path).is_file())
        .collect();
    table.row(DOCUMENT, ensure(lost.is_empty(), lost));
    for (name, folder, _) in CRATES {
        let top = ["lib.rs", "main.rs"].map(|top| format!("{folder}/{top}"));
        let top = top.iter().find(|top| root().join(top).is_file()).unwrap();
        let head: String =
            read(top).lines().map_while(|line| line.strip_prefix("//!")).collect::<Vec<_>>().join("\n");
        let crate_folder =
            if name == "lockhouse" { root().join(folder) } else { root().join(folder).join("..") };
        let mut files = Vec::new();
        add_files(&crate_folder, &mut files);
        let is_there =
            |name: &String| root().join(name).is_file() || files.iter().any(|file| file.ends_with(name));
        let lost: Vec<String> = file_names(&head).filter(|name| !is_there(name)).collect();
        table.row(format!("the head of {name}"), ensure(lost.is_empty(), lost));
    }
    table.finish();
}

/// Returns the quoted names of files in a text. Names with `*` are patterns and left out.
fn file_names(text: &str) -> impl Iterator<Item = String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
    };
    let has_ending = |name: &str| name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending));
    quoted(text).filter(move |name| is_name(name) && has_ending(name)).map(str::to_owned)
}

/// Adds the paths of all files below a folder, without the products of builds.
fn add_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            files.push(path);
        } else if !path.ends_with("target") {
            add_files(&path, files);
        }
    }
}

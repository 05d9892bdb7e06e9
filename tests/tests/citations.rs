//! What documents cite: the tests, files and tables in security documents, properties and docs/review.md, and whether they
//! exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lockhouse_tests::ensure;

/// The Cargo package of the black-box tests. A citation that names no test binary refers to a test of this package.
const BLACK_BOX: &str = "tests";
/// Cargo packages whose tests are separate test binaries in a folder `tests`. The package `lockhouse` and the
/// supervisor's crates instead have their tests in the source modules.
const PACKAGES: [&str; 4] = ["worker", "worker/sandbox", "protocol", "policies"];
const PRODUCT: &str = "lockhouse";
/// Top-level folders of the repository. A quoted text that begins with one of these is checked as a path.
const FOLDERS: [&str; 7] =
    ["worker/", "supervisor/", "protocol/", "policies/", "tests/", "docs/", "packaging/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Reads a file of the repository. `path` is relative to its root.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the names in a folder of the repository, in order.
pub(crate) fn names_below(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// The cells of one row of a Markdown table.
pub(crate) type Row = Vec<String>;

/// Returns the Markdown tables below a heading of a document, without their header rows.
pub(crate) fn tables(document: &str, heading: &str) -> Vec<Vec<Row>> {
    let title = format!("## {heading}");
    let lines = document.lines().skip_while(|line| *line != title).skip(1);
    let section: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    let tables = section.split(|line| !line.starts_with('|')).filter(|lines| !lines.is_empty());
    let cells = |line: &&str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let found: Vec<Vec<Row>> = tables.map(|lines| lines.iter().skip(2).map(cells).collect()).collect();
    assert!(!found.is_empty(), "no table below {title:?}");
    found
}

/// Returns the texts between backticks in a Markdown text.
pub(crate) fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns whether a name matches a pattern in which `*` stands for any text.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name
            .strip_prefix(start)
            .is_some_and(|name| name.char_indices().any(|(at, _)| matches_pattern(rest, &name[at..]))),
    }
}

/// Checks that `tests/PATTERN` exists. The file name in the pattern may contain `*`, which stands for any text. The
/// error says what is missing.
fn file_exists(pattern: &str) -> Result<(), String> {
    let (folder, pattern) = pattern.rsplit_once('/').ok_or("no path")?;
    let entries = std::fs::read_dir(root().join("tests").join(folder)).map_err(|error| error.to_string())?;
    let mut names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    if names.any(|name| matches_pattern(pattern, &name)) { Ok(()) } else { Err("no such file".into()) }
}

/// Returns the root source file of a test binary and the folder of its modules. Returns `None` if there is no such test
/// binary.
fn binary_source(binary: &str) -> Option<(PathBuf, PathBuf)> {
    if binary == PRODUCT {
        return Some((root().join("supervisor/src/main.rs"), root().join("supervisor/src")));
    }
    if let Some(part) = binary.strip_prefix("lockhouse-") {
        let source = root().join("supervisor").join(part).join("src");
        return Some((source.join("lib.rs"), source)).filter(|(library, _)| library.is_file());
    }
    let places = PACKAGES.map(|package| root().join(package).join("tests"));
    let source = |tests: PathBuf| {
        let (file, folder) = (tests.join(format!("{binary}.rs")), tests.join(binary));
        let main = folder.join("main.rs");
        [(file, tests), (main, folder)].into_iter().find(|(source, _)| source.is_file())
    };
    places.into_iter().find_map(source)
}

/// Checks that a test that a document cites exists. The citation is `MODULE::NAME` for a black-box test and `BINARY
/// MODULE::NAME` for any other test, both as `cargo nextest list` prints them. MODULE may be the full path of a module
/// or the end of one.
fn test_exists(citation: &str) -> Result<(), String> {
    let (path, (source, mut folder)) = match citation.split_once(' ') {
        Some((binary, path)) => (path, binary_source(binary).ok_or("no such test binary")?),
        None => {
            let folder = root().join(BLACK_BOX).join("tests");
            (citation, (folder.join("product.rs"), folder))
        }
    };
    let mut modules: Vec<&str> = path.split("::").collect();
    let name = modules.pop().ok_or("no name")?;
    let (mut text, mut inner) = split_at_tests(&source);
    for module in modules {
        let file = folder.join(format!("{module}.rs"));
        folder.push(module);
        if file.is_file() {
            (text, inner) = split_at_tests(&file);
        } else if inner.starts_with(&format!("mod {module} {{")) {
            (text, inner) = (inner, String::new());
        } else {
            return Err(format!("no module {module}"));
        }
    }
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let is_it = |line: &&str| {
        let line = line.trim_start_matches("async ").strip_prefix("fn ");
        line.and_then(|line| line.strip_prefix(name)).is_some_and(|line| line.starts_with('('))
    };
    let at = lines.iter().position(is_it).ok_or("no such function")?;
    let mut above =
        lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("///"));
    let is_test = |line: &&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    if above.any(is_test) { Ok(()) } else { Err("it is no test".into()) }
}

/// Splits a source file into the code before its inline module `tests`, and that module. The second text is empty if
/// there is no such module.
fn split_at_tests(source: &Path) -> (String, String) {
    let text = std::fs::read_to_string(source).unwrap();
    let at = text.find("\nmod tests {").map_or(text.len(), |at| at + 1);
    let (outer, inner) = text.split_at(at);
    (outer.to_owned(), inner.to_owned())
}

/// Checks that what a document cites as a test exists: an attack program, or a test. The error says what is missing.
pub(crate) fn exists(citation: &str) -> Result<(), String> {
    if citation.starts_with("hostile/") { file_exists(citation) } else { test_exists(citation) }
}

/// Returns whether a quoted text is a path in the repository.
pub(crate) fn is_path(text: &str) -> bool {
    FOLDERS.iter().any(|folder| text.starts_with(folder))
}

/// Returns the texts between backticks in a document that are paths in the repository.
pub(crate) fn paths(document: &str) -> BTreeSet<&str> {
    quoted(document).filter(|text| is_path(text)).collect()
}

/// Checks that a path in the repository exists. The error says that it does not.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    ensure(root().join(path).exists(), "it does not exist")
}

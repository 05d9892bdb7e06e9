//! Who may know whom, and what is named where. What must not happen does not compile where types can see to it; the
//! rest is said here, as rules with `never` in them.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // A test that cannot go on should end loudly.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockhouse_tests::{Table, ensure, equal};
use serde_json::Value;

/// Every edge between crates of the workspace. The tests may know all of them.
const EDGES: [(&str, &str); 6] = [
    ("lockhouse", "lockhouse-policies"),
    ("lockhouse", "lockhouse-protocol"),
    ("lockhouse-policies", "lockhouse-protocol"),
    ("lockhouse-python", "lockhouse-protocol"),
    ("lockhouse-python", "lockhouse-worker"),
    ("lockhouse-worker", "lockhouse-protocol"),
];
const TESTS: &str = "lockhouse-tests";

/// What the sealed side may not have, directly or through another crate.
const NOT_IN_THE_WORKER: [&str; 4] = ["tokio", "hyper", "reqwest", "rmcp"];

/// The sources of the product. A room is a file `room.rs` and the folder `room`, and a folder alone.
const PRODUCT: [&str; 4] = ["protocol", "policies", "worker", "supervisor"];
const PURE: [&str; 2] = ["protocol/src", "policies/src"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).current_dir(root()).args(arguments).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Each crate of the workspace with the names of what it depends on, in any way.
fn dependencies() -> Vec<(String, BTreeSet<String>)> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let name = |of: &Value| of["name"].as_str().unwrap().to_owned();
    let dependencies =
        |package: &Value| package["dependencies"].as_array().unwrap().iter().map(name).collect();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| (name(package), dependencies(package))).collect()
}

#[test]
fn crates_know_each_other_as_designed() {
    let dependencies = dependencies();
    let members: BTreeSet<&str> = dependencies.iter().map(|(name, _)| name.as_str()).collect();
    let product = dependencies.iter().filter(|(name, _)| name != TESTS);
    let found: BTreeSet<(&str, &str)> = product
        .flat_map(|(name, known)| known.iter().map(move |known| (name.as_str(), known.as_str())))
        .filter(|(_, known)| members.contains(known))
        .collect();
    let designed = BTreeSet::from(EDGES);
    let mut table = Table::new("edges between the crates of the workspace");
    for (from, to) in designed.union(&found) {
        let edge = (*from, *to);
        let outcome = match (designed.contains(&edge), found.contains(&edge)) {
            (true, true) => Ok(()),
            (true, false) => Err("is designed, and is not there"),
            (false, _) => Err("is there, and is not designed"),
        };
        table.row(format!("{from} -> {to}"), outcome.map_err(str::to_owned));
    }
    let designed: BTreeSet<&str> = EDGES.iter().flat_map(|(from, to)| [*from, *to]).chain([TESTS]).collect();
    table.row("there is no further crate", equal(members, designed));
    for (dependency, owners) in [("bincode", &["lockhouse-protocol"][..]), ("rmcp", &["lockhouse", TESTS])] {
        let found: Vec<&str> = dependencies
            .iter()
            .filter(|(_, known)| known.contains(dependency))
            .map(|(name, _)| name.as_str())
            .collect();
        let found = BTreeSet::from_iter(found);
        table.row(
            format!("{dependency} is a dependency of {owners:?} alone"),
            equal(found, owners.iter().copied().collect()),
        );
    }
    table.finish();
}

#[test]
fn the_sealed_side_has_no_runtime_and_no_network() {
    let mut table = Table::new("what the sealed side is built of");
    for package in ["lockhouse-worker", "lockhouse-python"] {
        let tree = cargo(&[
            "tree",
            "--package",
            package,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--offline",
            "--locked",
        ]);
        let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        table.row(
            format!("{package} is built with what it is known to need"),
            ensure(crates.contains("lockhouse-protocol") && crates.contains("nix"), &crates),
        );
        for absent in NOT_IN_THE_WORKER {
            // tokio-util and hyper-util bring the same.
            let family = format!("{absent}-");
            let found: Vec<&&str> =
                crates.iter().filter(|name| **name == absent || name.starts_with(&family)).collect();
            table.row(format!("{package} never brings {absent}"), ensure(found.is_empty(), &found));
        }
    }
    table.finish();
}

/// One source file: where it is, from the root on, what is code in it, and all of it.
struct Source {
    path: String,
    code: String,
    text: String,
}

impl Source {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { path: path.into(), code: code_of(&text), text }
    }

    fn is_in(&self, rooms: &[&str]) -> bool {
        rooms.iter().any(|room| {
            let rest = self.path.strip_prefix(room);
            rest.is_some_and(|rest| rest == ".rs" || rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The lines whose code has a word in it, or a path of words.
    fn lines_with(&self, wanted: &str) -> Vec<usize> {
        let with_word = |(_, line): &(usize, &str)| has_word(line, wanted);
        self.code.lines().enumerate().filter(with_word).map(|(index, _)| index + 1).collect()
    }
}

fn has_word(line: &str, wanted: &str) -> bool {
    let in_a_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(wanted).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + wanted.len()..]);
        let goes_on = wanted.ends_with(in_a_word) && after.starts_with(in_a_word);
        !before.ends_with(in_a_word) && !goes_on
    })
}

/// The text with its comments and literals blanked, line by line as it was.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_a_word = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => quoted(rest),
            'r' | 'b' | 'c' if !in_a_word => prefixed(rest),
            '\'' => character(rest),
            _ => 0,
        };
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.push(' ');
            code.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            rest = &rest[skipped..];
        }
    }
    code
}

/// The length of a comment between `/*` and `*/`, which may hold others.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_u32, 0);
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of a literal between quotation marks.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

/// The length of a literal such as `r#"…"#`, `b"…"`, `c"…"` or `br"…"`; 0 when it is something else.
fn prefixed(text: &str) -> usize {
    let letters = text.find(|c| !matches!(c, 'r' | 'b' | 'c')).unwrap_or(text.len());
    let (prefix, rest) = text.split_at(letters);
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    match prefix {
        "r" | "br" | "cr" if rest[hashes..].starts_with('"') => {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = letters + hashes + 1;
            text[body..].find(&end).map_or(text.len(), |at| body + at + end.len())
        }
        "b" | "c" if rest.starts_with('"') => letters + quoted(rest),
        _ => 0,
    }
}

/// The length of a character between quotes; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((escaped, _))) => {
            text[escaped + 1..].find('\'').map_or(text.len(), |at| escaped + 1 + at + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

/// Every Rust file below these folders.
fn sources(folders: &[&str]) -> Vec<Source> {
    let root = root();
    let mut sources = Vec::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                sources.push(Source::new(name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    sources
}

/// Where a word is, outside these rooms.
fn found_outside(sources: &[Source], word: &str, rooms: &[&str]) -> Vec<String> {
    let outside = sources.iter().filter(|source| !source.is_in(rooms));
    outside
        .flat_map(|source| {
            source.lines_with(word).into_iter().map(move |line| format!("{}:{line}", source.path))
        })
        .collect()
}

/// A word that has its rooms: it is in one of them, and never elsewhere.
fn only_in(sources: &[Source], word: &str, rooms: &[&str]) -> Result<(), String> {
    let at_home = sources.iter().any(|source| source.is_in(rooms) && !source.lines_with(word).is_empty());
    let strays = found_outside(sources, word, rooms);
    ensure(strays.is_empty(), strays)
        .and(ensure(at_home, format!("it is not in {rooms:?} either: a rule about nothing")))
}

fn never(sources: &[Source], word: &str) -> Result<(), String> {
    let found = found_outside(sources, word, &[]);
    ensure(!sources.is_empty() && found.is_empty(), found)
}

/// Whether a file, or the item that needs it, has an `allow(unsafe_code)` that says why. The workspace's lint already
/// refuses unsafe code without one.
fn has_permission(source: &Source) -> bool {
    let permissions = source.text.lines().filter_map(|line| {
        let line = line.trim();
        line.strip_prefix("#![allow(unsafe_code)]").or_else(|| line.strip_prefix("#[allow(unsafe_code)]"))
    });
    permissions.filter_map(|rest| rest.trim().strip_prefix("//")).any(|reason| !reason.trim().is_empty())
}

fn unsafe_without_permission(sources: &[Source]) -> Vec<String> {
    let without = sources.iter().filter(|source| !has_permission(source));
    without
        .flat_map(|source| {
            source.lines_with("unsafe").into_iter().map(move |line| format!("{}:{line}", source.path))
        })
        .collect()
}

#[test]
fn sources_never_name_what_is_not_theirs() {
    let product = sources(&PRODUCT);
    let mut table = Table::new("never rules of the sources");
    let rooms: [(&str, &[&str]); 6] = [
        ("bincode", &["protocol/src/frame"]),
        ("RoleClient", &["supervisor/src/upstream"]),
        ("ClientHandler", &["supervisor/src/upstream"]),
        ("RoleServer", &["supervisor/src/front", "supervisor/src/cli/demo/server"]),
        ("ServerHandler", &["supervisor/src/front", "supervisor/src/cli/demo/server"]),
        ("decide(", &["supervisor/src/gate", "policies"]),
    ];
    for (word, rooms) in rooms {
        table.row(format!("{word} is never outside {}", rooms.join(", ")), only_in(&product, word, rooms));
    }
    // fs, net and io are std's, whichever way they are imported.
    for crate_sources in PURE {
        let sources = sources(&[crate_sources]);
        for word in ["tokio", "fs", "net", "io", "SystemTime", "Instant", "unsafe"] {
            table.row(format!("{crate_sources} never names {word}"), never(&sources, word));
        }
    }
    let worker = sources(&["worker"]);
    for word in ["tokio", "rmcp", "reqwest", "std::net", "hyper"] {
        table.row(format!("worker never names {word}"), never(&worker, word));
    }
    let bare = unsafe_without_permission(&product);
    table.row("unsafe is never in a file that does not open with the reason", ensure(bare.is_empty(), bare));
    table.finish();
}

/// The rules would be worth nothing if they saw nothing.
#[test]
fn the_rules_see_code_and_only_code() {
    let mut table = Table::new("what counts as naming something");
    let seen = [
        "use tokio::net;",
        "let x = 'a'; tokio();",
        "fn f<'a>(x: &'a str) { tokio() }",
        "let s = \"//\"; tokio();",
        "let s = r#\"\"//\"#; tokio();",
        "let s = \"\\\\\"; tokio();",
        "let c = '\\''; tokio();",
        "let c = b'\"'; tokio();",
        "let c = '\"'; tokio(); // \"",
        "/* a /* b */ c */ tokio();",
        "/// about\ntokio!();",
        "let r = bar; tokio();",
    ];
    let unseen = [
        "// tokio",
        "//! tokio",
        "/* tokio */",
        "/* a /* b */ tokio */",
        "let s = \"tokio\";",
        "let s = \"a \\\" tokio\";",
        "let s = r\"tokio\";",
        "let s = br##\"\"# tokio\"##;",
        "let s = c\"tokio\";",
        "use tokio_like::net;",
        "use my_tokio::net;",
    ];
    for text in seen {
        table.row(
            format!("seen: {text:?}"),
            ensure(!Source::new("x.rs", text).lines_with("tokio").is_empty(), code_of(text)),
        );
    }
    for text in unseen {
        table
            .row(format!("not seen: {text:?}"), equal(Source::new("x.rs", text).lines_with("tokio"), vec![]));
    }
    let third = Source::new("x.rs", "/* 1\n2 */ \"\n\" a::decide(b)");
    table.row("lines are counted through comments and literals", equal(third.lines_with("decide("), vec![3]));
    table.row(
        "a path is a word",
        ensure(has_word("std::fs::read", "std::fs") && !has_word("std::fsx", "std::fs"), ()),
    );

    for (path, inside) in [
        ("supervisor/src/gate.rs", true),
        ("supervisor/src/gate/approval.rs", true),
        ("supervisor/src/gateway.rs", false),
        ("supervisor/src/pool/gate.rs", false),
    ] {
        let source = Source::new(path, "");
        table.row(
            format!("{path} in the room: {inside}"),
            equal(source.is_in(&["supervisor/src/gate"]), inside),
        );
    }
    for (text, permitted) in [
        ("//! A room.\n#![allow(unsafe_code)] // fork.\nunsafe {}", true),
        ("//! A room.\n#![allow(unsafe_code)]\nunsafe {}", false),
        ("//! A room.\n#![allow(unsafe_code)] //\nunsafe {}", false),
        ("//! A room.\nunsafe {}", false),
        ("//! unsafe", true),
    ] {
        let sources = [Source::new("x.rs", text)];
        table.row(
            format!("{text:?} permitted: {permitted}"),
            equal(unsafe_without_permission(&sources).is_empty(), permitted),
        );
    }
    let stray = [Source::new("a.rs", "bincode::encode()"), Source::new("b.rs", "bincode::decode()")];
    table.row("a stray is found", equal(only_in(&stray, "bincode", &["a"]), Err("[\"b.rs:1\"]".to_owned())));
    table.row("a rule about nothing fails", ensure(only_in(&stray, "rmcp", &["a"]).is_err(), ()));
    table.finish();
}

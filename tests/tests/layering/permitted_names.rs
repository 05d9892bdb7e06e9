//! Tests of names that only certain source files may use.

use lockhouse_tests::{Table, ensure, equal};

use crate::layering::crates::CRATES;
use crate::layering::paths::NamedPaths;
use crate::layering::source::{Source, sources};

/// Names that are restricted to certain files. Each has the beginnings of the paths of the files that may use it.
const PERMITTED_FILES: [(&str, &[&str]); 6] = [
    ("bincode", &["protocol/src/frame.rs"]),
    ("RoleClient", &["supervisor/mcp/src/", "supervisor/upstream/src/"]),
    ("RoleServer", &["supervisor/src/cli/demo/server.rs"]),
    ("ServerHandler", &["supervisor/src/cli/demo/server.rs"]),
    ("decide", &["supervisor/gate/src/", "policies/src/"]),
    // The code that changes other products' files is for these commands alone.
    (
        "lockhouse_client_files",
        &[
            "supervisor/setup/src/",
            "supervisor/src/cli/init.rs",
            "supervisor/src/cli/import.rs",
            "supervisor/src/cli/setup",
            "supervisor/src/cli/doctor",
            "supervisor/src/cli/status.rs",
        ],
    ),
];
const CRATES_WITHOUT_IO: [&str; 2] = ["protocol/src", "policies/src"];
/// Modules of the base crate whose state belongs to the engine's process: the front learns of it and reports by messages.
const ENGINE_STATE: [&str; 2] = ["lifecycle", "telemetry"];
/// Modules and types of the standard library that the crates in `CRATES_WITHOUT_IO` must not use, in whatever way they
/// are imported.
const IO_NAMES: [&str; 5] = ["fs", "net", "io", "SystemTime", "Instant"];

fn parse_paths(sources: &[Source]) -> Vec<(&str, NamedPaths)> {
    sources.iter().map(|source| (source.path.as_str(), NamedPaths::from_source(source))).collect()
}

#[test]
fn sources_use_only_the_names_they_are_permitted() {
    let all: Vec<Source> = CRATES.iter().flat_map(|(_, folder, _)| sources(folder)).collect();
    let all = parse_paths(&all);
    let mut table = Table::new("names that sources must not use");
    for (name, homes) in PERMITTED_FILES {
        let (at_home, strays): (Vec<&str>, Vec<&str>) = all
            .iter()
            .filter(|(_, named)| named.has(name))
            .map(|(path, _)| *path)
            .partition(|path| homes.iter().any(|home| path.starts_with(home)));
        table.row(format!("{name} is never outside {}", homes.join(", ")), ensure(strays.is_empty(), strays));
        table.row(format!("control: {name} is there"), ensure(!at_home.is_empty(), "a rule about nothing"));
    }
    for folder in CRATES_WITHOUT_IO {
        let pure = sources(folder);
        for name in IO_NAMES {
            let found = parse_paths(&pure).into_iter().filter(|(_, named)| named.has(name));
            let found: Vec<String> = found.map(|(path, _)| path.to_owned()).collect();
            table.row(format!("{folder} never names {name}"), ensure(found.is_empty(), found));
        }
    }
    for (folder, expected) in [("supervisor/front/src", false), ("supervisor/engine/src", true)] {
        let sources = sources(folder);
        for module in ENGINE_STATE {
            let uses =
                parse_paths(&sources).iter().any(|(_, named)| named.has_path(&["lockhouse_base", module]));
            table.row(format!("{folder} uses lockhouse_base::{module}: {expected}"), equal(uses, expected));
        }
    }
    table.finish();
}

/// Control: checks that the rules find names in code, and ignore names in comments, strings and test modules.
#[test]
fn the_rules_see_code_and_only_code() {
    let seen = [
        "use tokio::net;",
        "use {std::fs, tokio::{self as t}};",
        "fn f() { let x = 'a'; tokio::spawn(); }",
        "fn f() { a.tokio(); }",
        "fn f(x: &tokio::A) {}",
        "fn f() { println!(\"{}\", tokio::x()); }",
        "fn f() { assert!(matches!(x, A | b::tokio)); }",
        "#[tokio::main] fn f() {}",
    ];
    let unseen = [
        "// tokio",
        "//! tokio",
        "fn f() { /* tokio */ }",
        "const S: &str = \"tokio\";",
        "use tokio_like::net;",
        "#[cfg(test)] mod tests { use tokio::net; }",
    ];
    let mut table = Table::new("names in code");
    let has = |text: &str| NamedPaths::from_source(&Source::from_text(text)).has("tokio");
    for text in seen {
        table.row(format!("seen: {text}"), ensure(has(text), "not seen"));
    }
    for text in unseen {
        table.row(format!("not seen: {text}"), ensure(!has(text), "seen"));
    }
    table.finish();
}

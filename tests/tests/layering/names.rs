//! What is named where.

use lockhouse_tests::{Table, ensure};

use crate::crates::CRATES;
use crate::paths::Named;
use crate::source::{Source, sources};

/// A name, and the beginnings of the paths of all files that may have it.
const HOMES: [(&str, &[&str]); 6] = [
    ("bincode", &["protocol/src/frame.rs"]),
    ("RoleClient", &["supervisor/upstream/src/"]),
    ("ClientHandler", &["supervisor/upstream/src/"]),
    ("RoleServer", &["supervisor/front/src/", "supervisor/src/cli/demo/server.rs"]),
    ("ServerHandler", &["supervisor/front/src/", "supervisor/src/cli/demo/server.rs"]),
    ("decide", &["supervisor/gate/src/", "policies/src/"]),
];
const PURE: [&str; 2] = ["protocol/src", "policies/src"];
/// Of std, whichever way they are imported.
const IMPURE: [&str; 5] = ["fs", "net", "io", "SystemTime", "Instant"];

fn named(sources: &[Source]) -> Vec<(&str, Named)> {
    sources.iter().map(|source| (source.path.as_str(), Named::of(source))).collect()
}

#[test]
fn sources_never_name_what_is_not_theirs() {
    let all: Vec<Source> = CRATES.iter().flat_map(|(_, folder, _)| sources(folder)).collect();
    let all = named(&all);
    let mut table = Table::new("never rules of the sources");
    for (name, homes) in HOMES {
        let (at_home, strays): (Vec<&str>, Vec<&str>) = all
            .iter()
            .filter(|(_, named)| named.has(name))
            .map(|(path, _)| *path)
            .partition(|path| homes.iter().any(|home| path.starts_with(home)));
        table.row(format!("{name} is never outside {}", homes.join(", ")), ensure(strays.is_empty(), strays));
        table.row(format!("control: {name} is there"), ensure(!at_home.is_empty(), "a rule about nothing"));
    }
    for folder in PURE {
        let pure = sources(folder);
        for name in IMPURE {
            let found = named(&pure).into_iter().filter(|(_, named)| named.has(name));
            let found: Vec<String> = found.map(|(path, _)| path.to_owned()).collect();
            table.row(format!("{folder} never names {name}"), ensure(found.is_empty(), found));
        }
    }
    let bare = sources_with_bare_permission(CRATES.iter().flat_map(|(_, folder, _)| sources(folder)));
    table.row("unsafe code is never permitted without a reason", ensure(bare.is_empty(), bare));
    table.finish();
}

/// Files that permit unsafe code and do not say why. The workspace's lint refuses it where it is not permitted.
fn sources_with_bare_permission(sources: impl Iterator<Item = Source>) -> Vec<String> {
    let bare = sources.filter(|source| {
        let attributes = source.text.split("allow(").skip(1).filter_map(|rest| rest.split_once(")]"));
        let mut attributes = attributes.map(|(attribute, _)| attribute);
        attributes.any(|attribute| attribute.contains("unsafe_code") && !attribute.contains("reason = \""))
    });
    bare.map(|source| source.path).collect()
}

/// The rules would be worth nothing if they saw nothing.
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
    let mut table = Table::new("what counts as naming something");
    let has = |text: &str| Named::of(&Source::of(text)).has("tokio");
    for text in seen {
        table.row(format!("seen: {text}"), ensure(has(text), "not seen"));
    }
    for text in unseen {
        table.row(format!("not seen: {text}"), ensure(!has(text), "seen"));
    }
    table.finish();
}

//! Tests of `packaging/release/sbom`, which writes the software bill of materials of the packages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use lockhouse_tests::{Table, ensure, equal};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn bill_of_materials() -> Value {
    let done = Command::new(root().join("packaging/release/sbom"))
        .arg("--print")
        .env("SOURCE_DATE_EPOCH", "1000000000")
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    serde_json::from_slice(&done.stdout).unwrap()
}

fn texts<'a>(items: &'a Value, key: &str) -> Vec<&'a str> {
    items.as_array().unwrap().iter().filter_map(|item| item[key].as_str()).collect()
}

/// Returns the checksums in Cargo.lock by name and version.
fn locked() -> BTreeMap<(String, String), String> {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let package = |package: &str| {
        let text = |key: &str| {
            let value = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            value.map(|value| value.trim_matches('"').to_owned())
        };
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    lock.split("[[package]]").skip(1).filter_map(package).collect()
}

#[test]
fn the_bill_of_materials_has_the_crates_of_the_programs_with_their_checksums() {
    let document = bill_of_materials();
    let mut table = Table::new("packaging/release/sbom");
    let components = document["components"].as_array().unwrap();
    let names: BTreeSet<&str> = texts(&document["components"], "name").into_iter().collect();
    for name in
        ["oxc_parser", "rquickjs-sys", "aws-lc-sys", "tokio", "pyo3", "rmcp", "lockhouse-gate", "rust-std"]
    {
        table.row(format!("{name} is in a program"), ensure(names.contains(name), &names));
    }
    for name in ["proptest", "insta", "tiktoken-rs", "lockhouse-tests"] {
        table.row(format!("{name} is in no program"), ensure(!names.contains(name), &names));
    }
    let scope = |name: &str| components.iter().find(|item| item["name"] == name).map(|item| &item["scope"]);
    table.row("a library is required", equal(scope("tokio"), Some(&"required".into())));
    table.row("a macro is not", equal(scope("serde_derive"), Some(&"excluded".into())));

    let locked = locked();
    let is_locked = |item: &Value| {
        let key = (item["name"].as_str().unwrap().to_owned(), item["version"].as_str().unwrap().to_owned());
        locked.get(&key).map(String::as_str) == item["hashes"][0]["content"].as_str()
    };
    let others: Vec<&Value> = components.iter().filter(|item| !is_locked(item)).collect();
    table.row("checksums are those of Cargo.lock", ensure(others.is_empty(), others));
    let is_consistent = |item: &&Value| item["purl"].is_string() == item["hashes"].is_array();
    table.row(
        "package URLs only for crates of crates.io",
        ensure(components.iter().all(|item| is_consistent(&item)), ()),
    );
    let without =
        components.iter().filter(|item| item["licenses"][0]["expression"].as_str().is_none()).count();
    table.row("every component has a licence", equal(without, 0));

    let product = &document["metadata"]["component"];
    let references: Vec<&str> =
        [texts(&document["components"], "bom-ref"), texts(&product["components"], "bom-ref")].concat();
    let known: BTreeSet<&str> = references.iter().copied().collect();
    table.row("references are unique", equal(known.len(), references.len()));
    let graph = document["dependencies"].as_array().unwrap();
    let depended =
        graph.iter().filter_map(|node| node["dependsOn"].as_array()).flatten().filter_map(Value::as_str);
    let unknown: Vec<&str> = depended.filter(|reference| !known.contains(reference)).collect();
    table.row("the graph refers to components only", ensure(unknown.is_empty(), unknown));
    table.row("every component is a node of the graph", equal(graph.len(), known.len() + 1));
    table.row(
        "the date is that of the source",
        equal(&document["metadata"]["timestamp"], &"2001-09-09T01:46:40Z".into()),
    );
    table.row("equal sources give an equal document", equal(&bill_of_materials(), &document));
    table.finish();
}

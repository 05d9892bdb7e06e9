//! Compares the security documents with the code: every file that they cite must exist, and the lists and numbers of
//! docs/security/sandbox.md must match the source files that define them. Their pages that are generated must be current.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use lockhouse_sandbox::Layer;
use lockhouse_tests::{Attack, Table, ensure, equal, native_attacks};
use serde_json::Value;

use crate::citations::{check_path, names_below, paths, quoted, read, tables};

const FOLDER: &str = "docs/security";
const SANDBOX: &str = "docs/security/sandbox.md";

/// Returns the rules of the seccomp filter `filter` that apply on all architectures. If `architecture` is
/// given, adds the rules that apply only there.
fn rules(filter: &str, architecture: Option<&str>) -> Vec<Value> {
    let json = |name: &str| -> Value {
        serde_json::from_str(&read(&format!("worker/seccomp/{name}.json"))).unwrap()
    };
    let mut rules = json("common")[filter]["filter"].as_array().unwrap().clone();
    if let Some(architecture) = architecture {
        rules.extend(json(architecture)[filter].as_array().into_iter().flatten().cloned());
    }
    rules
}

fn names(rules: &[Value]) -> BTreeSet<String> {
    rules.iter().map(|rule| rule["syscall"].as_str().unwrap().to_owned()).collect()
}

fn check_contains(document: &str, words: &str) -> Result<(), String> {
    ensure(document.contains(words), format!("the text does not say {words:?}"))
}

#[test]
fn every_path_in_the_text_exists() {
    let mut documents = vec!["SECURITY.md".to_owned()];
    documents.extend(names_below(FOLDER).into_iter().map(|name| format!("{FOLDER}/{name}")));
    let mut table = Table::new("paths in security documents");
    for document in documents {
        for path in paths(&read(&document)) {
            table.row(format!("{document}: {path}"), check_path(path));
        }
    }
    table.finish();
}

#[test]
fn generated_pages_are_current() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("generate_pages.py");
    let done = Command::new("python3").arg(script).arg("--check").output().unwrap();
    let printed = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&printed));
}

#[test]
fn the_listed_system_calls_match_the_filter() {
    let document = read(SANDBOX);
    let (mut listed, mut bound) = (Vec::new(), BTreeSet::new());
    for row in tables(&document, "Reachable system calls").remove(0) {
        let [_, calls, arguments] = &row[..] else { panic!("three cells: {row:?}") };
        listed.extend(quoted(calls).map(str::to_owned));
        bound.extend(quoted(arguments).map(str::to_owned));
    }
    let (allowed, common) = (rules("allowed", Some("x86_64")), rules("allowed", None));
    let with_arguments: Vec<Value> = allowed.iter().filter(|rule| !rule["args"].is_null()).cloned().collect();
    let mut table = Table::new("reachable system calls");
    table.row("each one once", equal(listed.iter().collect::<BTreeSet<_>>().len(), listed.len()));
    table.row("the calls", equal(listed.into_iter().collect(), names(&allowed)));
    table.row("those whose arguments are checked", equal(bound, names(&with_arguments)));
    let counted = format!(
        "{} system calls on x86-64 ({} of them also on aarch64",
        names(&allowed).len(),
        names(&common).len()
    );
    table.row("their number", check_contains(&document, &counted));
    let attacks = names(&rules("attacks", Some("x86_64"))).len();
    table
        .row("fatal calls", check_contains(&document, &format!("{attacks} calls that only an attack makes")));
    table.finish();
}

#[test]
fn the_listed_system_calls_of_service_processes_match_their_filters() {
    let document = read(SANDBOX);
    let rows = tables(&document, "Service processes").remove(0);
    let listed = |cell: usize| -> Vec<String> {
        rows.iter().flat_map(|row| quoted(&row[cell]).map(str::to_owned)).collect()
    };
    let mut table = Table::new("system calls of service processes");
    let mut bound = BTreeSet::new();
    for (cell, kind) in [(1, "front"), (2, "signer")] {
        let data: Value = serde_json::from_str(&read(&format!("worker/seccomp/{kind}.json"))).unwrap();
        let lists = ["common", "x86_64"].map(|list| data[list].as_array().unwrap().clone());
        let (rules, listed) = (lists.concat(), listed(cell));
        let with_arguments: Vec<Value> =
            rules.iter().filter(|rule| !rule["args"].is_null()).cloned().collect();
        bound.extend(names(&with_arguments));
        table.row(format!("{kind}: each one once"), equal(listed.len(), names(&rules).len()));
        table.row(format!("{kind}: the calls"), equal(listed.into_iter().collect(), names(&rules)));
    }
    table.row("those whose arguments are checked", equal(listed(3).into_iter().collect(), bound));
    let counted =
        format!("The front has {} system calls on x86-64, the signer {}", listed(1).len(), listed(2).len());
    table.row("their numbers", check_contains(&document, &counted));
    table.finish();
}

/// Returns three texts about a sandbox protection from the source file `protections.rs`: its title, whether
/// Lockhouse requires it to run "any code" or only for "full" protection, and the layer that still protects
/// without it.
fn protection_texts(protection: &str) -> [String; 3] {
    let source = read("supervisor/pool/src/protections.rs");
    let (_, row) = source.split_once(&format!("Protection::{protection} => ")).expect("a row");
    let mut texts = row.split('"').skip(1);
    let title = texts.next().expect("a title");
    let needed = if texts.next().expect("a need").contains("true") { "any code" } else { "full" };
    [title, needed, texts.next().expect("a second layer")].map(str::to_owned)
}

#[test]
fn the_listed_protections_match_doctor() {
    let source = read("protocol/src/protection.rs");
    let (_, variants) = source.split_once("pub enum Protection {").expect("the enum");
    let (variants, _) = variants.split_once('}').expect("its end");
    let variants = variants.lines().filter_map(|line| line.trim().strip_suffix(','));
    let protections: Vec<&str> = variants.filter(|line| !line.starts_with("//")).collect();
    let rows = tables(&read(SANDBOX), "Layers").remove(0);
    let mut table = Table::new("protections");
    table.row("each row is a protection", equal(rows.len(), protections.len()));
    for protection in protections {
        let [title, needed, second_layer] = protection_texts(protection);
        let row = rows.iter().find(|row| row[1] == title);
        let found = row.map(|row| [row[2].clone(), row[4].clone()]);
        table.row(protection, equal(found, Some([needed, second_layer])));
    }
    table.finish();
}

#[test]
fn the_numbers_of_attacks_are_correct() {
    let document = read(SANDBOX);
    let native = native_attacks();
    let mut table = Table::new("attacks");
    table.row("native", check_contains(&document, &format!("{} native attacks", native.len())));
    for (language, title) in [("python", "Python"), ("typescript", "TypeScript")] {
        let count = Attack::all(language).len();
        table.row(language, check_contains(&document, &format!("{count} attacks in {title}")));
    }
    let [held, kinds] = &tables(&document, "What rests on one layer")[..] else { panic!("two tables") };
    let alone = |layer: Layer| native.iter().filter(move |attack| attack.layers == [vec![layer]]);
    let count = |held_by: &str| match held_by {
        "two layers or more, each alone" => native.iter().filter(|attack| attack.layers.len() > 1).count(),
        "none, without a control group" => native.iter().filter(|attack| attack.layers.is_empty()).count(),
        other => {
            let layer = Layer::ALL.into_iter().find(|layer| other == format!("{} alone", layer.name()));
            alone(layer.expect("a layer")).count()
        }
    };
    for row in held {
        table.row(&row[0], equal(row[1].parse(), Ok(count(&row[0]))));
    }
    let summed: usize = held.iter().map(|row| row[1].parse::<usize>().unwrap()).sum();
    table.row("each attack is counted", equal(summed, native.len()));
    let seccomp: BTreeSet<&str> = alone(Layer::Seccomp).map(|attack| attack.name.as_str()).collect();
    table.row(
        "seccomp alone, again",
        check_contains(&document, &format!("would let {} of them through", seccomp.len())),
    );
    let listed: Vec<&str> = kinds.iter().flat_map(|row| quoted(&row[2])).collect();
    table.row("each of these is of one kind", equal(listed.len(), seccomp.len()));
    table.row("the kinds have them all", equal(listed.into_iter().collect(), seccomp));
    table.finish();
}

//! Compares SECURITY.md with the code: every test and file that it cites must exist, and its lists and numbers must
//! match the source files that define them.

use std::collections::BTreeSet;

use lockhouse_sandbox::Layer;
use lockhouse_tests::{Attack, Table, ensure, equal, native_attacks};
use serde_json::Value;

use crate::citations::{check_path, exists, paths, quoted, read, tables};

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
fn every_cited_test_exists() {
    let mut table = Table::new("what SECURITY.md cites");
    for row in tables(&read("SECURITY.md"), "Properties").remove(0) {
        let [property, _, tests] = &row[..] else { panic!("three cells: {row:?}") };
        let faults: Vec<String> = quoted(tests)
            .filter_map(|citation| exists(citation).err().map(|fault| format!("{citation}: {fault}")))
            .collect();
        let cites = quoted(tests).next().is_some();
        table.row(property, ensure(cites && faults.is_empty(), faults));
    }
    table.finish();
}

#[test]
fn citations_of_missing_tests_are_detected() {
    let mut table = Table::new("citations of missing tests");
    for wrong in [
        "sandbox ablation::no_such_test",
        "sandbox nowhere::each_attack_is_contained_by_exactly_the_layers_in_its_header",
        "elsewhere ablation::each_attack_is_contained_by_exactly_the_layers_in_its_header",
        "sandbox ablation::check",
        "sandbox ablation::each_attack",
        "lockhouse pool::seal::every_field_that_differs_is_refused",
        "hostile/native/no_such_attack.c",
        "hostile/native/no_such*.c",
        "hostile/elsewhere/read_file.c",
        "each_attack_is_contained_by_exactly_the_layers_in_its_header",
    ] {
        table.row(wrong, ensure(exists(wrong).is_err(), "it was found"));
    }
    table.finish();
}

#[test]
fn every_path_in_the_text_exists() {
    let document = read("SECURITY.md");
    let mut table = Table::new("paths in SECURITY.md");
    for path in paths(&document) {
        table.row(path, check_path(path));
    }
    table.finish();
}

#[test]
fn the_listed_system_calls_match_the_filter() {
    let document = read("SECURITY.md");
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
    let rows = tables(&read("SECURITY.md"), "Layers").remove(0);
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
    let document = read("SECURITY.md");
    let native = native_attacks();
    let mut table = Table::new("attacks");
    table.row("native", check_contains(&document, &format!("{} native attacks", native.len())));
    for (language, title) in [("python", "Python"), ("typescript", "TypeScript")] {
        let count = Attack::all(language).len();
        table.row(language, check_contains(&document, &format!("| {count} attacks in {title} |")));
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

/// Checks that the table "Figures" in SECURITY.md has no empty or "TBD" cell. The values of the figures are not tested,
/// because they come from benchmarks on an otherwise idle machine.
#[test]
fn all_figures_are_filled_in() {
    let mut table = Table::new("figures");
    for row in tables(&read("SECURITY.md"), "Figures").remove(0) {
        let is_open = row.iter().any(|cell| cell.is_empty() || cell.contains("TBD"));
        table.row(&row[0], ensure(!is_open, &row));
    }
    table.finish();
}

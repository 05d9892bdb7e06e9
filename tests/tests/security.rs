//! Compares SECURITY.md with the code: every test and file that it cites must exist, and its lists and numbers must
//! match the source files that define them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lockhouse_tests::{Attack, Table, ensure, equal, native_attacks};
use lockhouse_worker::sandbox::Layer;
use serde_json::Value;

/// The Cargo package of the black-box tests. A citation in SECURITY.md that names no test binary refers to a test of
/// this package.
const BLACK_BOX: &str = "tests";
/// Cargo packages whose tests are separate test binaries in a folder `tests`. The package `lockhouse` and the
/// supervisor's crates instead have their tests in the source modules.
const PACKAGES: [&str; 3] = ["worker", "protocol", "policies"];
const PRODUCT: &str = "lockhouse";
/// Top-level folders of the repository. A text in SECURITY.md that begins with one of these is checked as a path.
const FOLDERS: [&str; 7] =
    ["worker/", "supervisor/", "protocol/", "policies/", "tests/", "docs/", "packaging/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of one row of a Markdown table.
type Row = Vec<String>;

/// Returns the Markdown tables below a heading of a document, without their header rows.
fn tables(document: &str, heading: &str) -> Vec<Vec<Row>> {
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
fn quoted(text: &str) -> impl Iterator<Item = &str> {
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
        return Some((source.join("lib.rs"), source));
    }
    let places = PACKAGES.map(|package| root().join(package).join("tests"));
    let source = |tests: PathBuf| {
        let (file, folder) = (tests.join(format!("{binary}.rs")), tests.join(binary));
        let main = folder.join("main.rs");
        [(file, tests), (main, folder)].into_iter().find(|(source, _)| source.is_file())
    };
    places.into_iter().find_map(source)
}

/// Checks that a test that SECURITY.md cites exists. The citation is `MODULE::NAME` for a black-box test and `BINARY
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

fn exists(citation: &str) -> Result<(), String> {
    if citation.starts_with("hostile/") { file_exists(citation) } else { test_exists(citation) }
}

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
    let paths: BTreeSet<&str> =
        quoted(&document).filter(|text| FOLDERS.iter().any(|folder| text.starts_with(folder))).collect();
    for path in paths {
        table.row(path, ensure(root().join(path).exists(), "it does not exist"));
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

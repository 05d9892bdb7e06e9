//! Checks that the policies in `examples/` and in the documentation are valid for the parser and for the JSON Schema
//! that editors use.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::{Path, PathBuf};

use jsonschema::Validator;
use lockhouse_policies::{Policy, Source};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn schema() -> Validator {
    let schema = serde_json::from_str(&read(&root().join("docs/policy.schema.json"))).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn valid(schema: &Validator, text: &str) -> bool {
    schema.is_valid(&toml::from_str::<serde_json::Value>(text).unwrap())
}

fn assert_valid(schema: &Validator, name: &str, text: &str) {
    if let Err(errors) = Policy::parse(Source { path: name.to_owned(), text: text.to_owned() }) {
        panic!("{errors}");
    }
    assert!(valid(schema, text), "the schema refuses {name}");
}

/// Returns the contents of the TOML code blocks of a Markdown document, which are policies.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```toml") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(block.join("\n"));
        }
    }
    blocks
}

#[test]
fn the_examples_are_valid() {
    let schema = schema();
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("policies/examples")).unwrap() {
        let path = entry.unwrap().path();
        assert_valid(&schema, &path.display().to_string(), &read(&path));
        seen += 1;
    }
    assert!(seen >= 8, "{seen}");
}

#[test]
fn the_policies_in_the_documentation_and_the_tables_are_valid() {
    let schema = schema();
    let mut documents = vec![root().join("docs/policy.md")];
    let tables = std::fs::read_dir(root().join("policies/tests/decisions")).unwrap();
    documents.extend(tables.map(|entry| entry.unwrap().path()));
    let mut seen = 0;
    for path in documents {
        for block in blocks(&read(&path)) {
            let whole = if block.contains("version = 1") { block } else { format!("version = 1\n{block}") };
            assert_valid(&schema, &path.display().to_string(), &whole);
            seen += 1;
        }
    }
    assert!(seen >= 13, "{seen}");
}

#[test]
fn the_schema_rejects_what_the_parser_rejects() {
    let schema = schema();
    for text in [
        "",
        "version = 2",
        "version = 1\nallow = []",
        "version = 1\n[servers.a]\nalow = []",
        "version = 1\n[servers.\"a b\"]",
        "version = 1\n[servers.a]\nallow = \"x\"",
        "version = 1\n[servers.a]\nallow = [\"*_x\"]",
        "version = 1\n[servers.a]\nallow = [\"x\", \"x\"]",
        "version = 1\n[servers.a]\non_change = \"no\"",
        "version = 1\n[servers.a]\nrate = \"60\"",
        "version = 1\n[servers.a]\nrate = { calls = 1 }",
        "version = 1\n[servers.a]\ntimeout_seconds = 1.5",
        "version = 1\n[servers.a]\ncalls_per_execution = 0",
        "version = 1\n[servers.a.limits]\nrate = \"1/s\"",
        "version = 1\n[servers.a.pins]\nx = \"sha256:12\"",
        "version = 1\n[[servers.a.rules]]\ntool = \"x\"",
        "version = 1\n[[servers.a.rules]]\ntool = \"x\"\neffect = \"permit\"",
        "version = 1\n[[servers.a.rules]]\ntool = \"x\"\neffect = \"ask\"\npresence = \"none\"",
        "version = 1\n[[servers.a.rules]]\ntool = \"x\"\neffect = \"allow\"\npresence = \"key\"",
        "version = 1\n[[servers.a.rules]]\ntool = \"x\"\neffect = \"deny\"\nwhen = { a = [] }",
        "version = 1\n[[servers.a.rules]]\ntool = \"x\"\neffect = \"deny\"\nwhen = { a = {} }",
        "version = 1\n[[servers.a.rules]]\ntool = \"x\"\neffect = \"deny\"\nwhen = { a = { min = 1, host = \"x\" } }",
        "version = 1\n[[servers.a.rules]]\ntool = \"x\"\neffect = \"deny\"\nwhen = { a.b = 1 }",
        "version = 1\n[clients.\"a*b\"]",
        "version = 1\n[clients.a]\nallow = []",
        "version = 1\n[limits]\nrates = 1",
    ] {
        let parsed = Policy::parse(Source { path: "p".to_owned(), text: text.to_owned() });
        assert!(parsed.is_err(), "the policy takes {text:?}");
        assert!(!valid(&schema, text), "the schema takes {text:?}");
    }
}

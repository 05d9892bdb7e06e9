//! `make bench-parts`: the time to read the definition of a tool, to index a catalogue and to search.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it prints a table")]

#[path = "../../../tests/bench/measure.rs"]
mod measure;

use lockhouse_catalog::{Catalogue, Corpus, Tool, rank};
use measure::measure;
use serde_json::json;

const SERVERS: usize = 20;
const TOOLS: u16 = 100;
const VERBS: [&str; 5] = ["list", "create", "update", "delete", "search"];
const THINGS: [&str; 7] = ["issue", "file", "message", "invoice", "calendar event", "customer", "branch"];

fn definition(number: usize) -> String {
    let (verb, thing) = (VERBS[number % VERBS.len()], THINGS[number % THINGS.len()]);
    let properties = json!({
        "owner": {"type": "string", "description": format!("The owner of the {thing}")},
        "state": {"enum": ["open", "closed"], "default": "open"},
        "limit": {"type": "integer", "minimum": 1},
        "labels": {"type": "array", "items": {"type": "string"}},
    });
    let schema = json!({"type": "object", "properties": properties, "required": ["owner"]});
    let description = format!("Can {verb} each {thing} of an owner. Number {number}.");
    let name = format!("{verb}_{}_{number}", thing.replace(' ', "_"));
    json!({"name": name, "description": description, "inputSchema": schema}).to_string()
}

fn main() {
    measure::print_header();
    let one = definition(7);
    measure("read the definition of a tool", || Tool::from_json(&one));
    let definitions: Vec<String> = (0..usize::from(TOOLS)).map(definition).collect();
    let read = || Catalogue::from_definitions(definitions.iter().map(String::as_str)).0;
    measure("read 100 definitions", read);
    measure("read and index 100 definitions", || {
        read().index();
    });
    let names: Vec<String> = (0..SERVERS).map(|number| format!("server{number}")).collect();
    let catalogues: Vec<Catalogue> = names.iter().map(|_| read()).collect();
    let permitted: Vec<u16> = (0..TOOLS).collect();
    let corpora: Vec<Corpus<'_>> = names
        .iter()
        .zip(&catalogues)
        .map(|(server, catalogue)| Corpus { server, index: catalogue.index(), permitted: &permitted })
        .collect();
    for query in ["issue", "create a calendar event", "update_customer_12"] {
        measure(&format!("search 2,000 tools for {query:?}"), || rank(query, &corpora));
    }
}

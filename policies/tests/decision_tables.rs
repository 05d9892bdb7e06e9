//! Tests policy decisions: each row of the tables in `tests/decisions/` and docs/policy.md has a call and the
//! expected decision. Each document has one policy, or two of which the second restricts the first.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;
use std::path::Path;

use lockhouse_policies::{Call, CallTarget, ClientName, Decision, Listing, Policy, Source, explain};
use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};
use serde_json::{Map, Value};

/// The minimum number of rows in all tables of expected decisions. Fewer rows mean that a table was not found.
const ROWS_MIN: usize = 250;

struct Document {
    policy: Policy,
    /// Maps the path of each simulated symbolic link to the path of its target; `?` is an unknown target.
    links: BTreeMap<String, String>,
    rows: Vec<Row>,
}

struct Row {
    line: usize,
    call: Call,
    decision: String,
    place: String,
}

#[test]
fn each_row_has_the_expected_decision() {
    let (mut rows, mut wrong) = (0, Vec::new());
    let tables = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/decisions")).unwrap();
    let mut documents: Vec<_> = tables.map(|entry| entry.unwrap().path()).collect();
    documents.push(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/policy.md").into());
    for path in documents {
        let Document { policy, links, rows: table } = read(&path);
        rows += table.len();
        for row in table {
            let at = format!("{}:{}", path.file_name().unwrap().display(), row.line);
            wrong.extend(check(&policy, &links, row).err().map(|why| format!("{at}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= ROWS_MIN, "{rows}");
}

fn check(policy: &Policy, links: &BTreeMap<String, String>, row: Row) -> Result<(), String> {
    let mut call = row.call;
    call.resolved_paths = policy
        .paths_to_resolve(&call)
        .into_iter()
        .filter_map(|path| Some((path.clone(), resolve(links, &path)?)))
        .collect();
    let permits = policy.permits_target(&call.server, &call.item, call.client.as_ref());
    let explained = explain(policy, &call);
    let text = explained.to_string();
    let (decision, place) = match policy.decide(call) {
        Decision::Allow(permitted) => ("allow", permitted.rule().to_string()),
        Decision::Ask(pending) => ("ask", pending.rule().to_string()),
        Decision::Deny(denial) => {
            ("deny", denial.location.map(|place| place.to_string()).unwrap_or_default())
        }
    };
    let expected = (row.decision.as_str(), row.place.as_str());
    if (decision, place.as_str()) != expected {
        return Err(format!("{decision} {place}, and should be {expected:?}\n{text}"));
    }
    let explained_place = explained.deciding.location.map(|place| place.to_string()).unwrap_or_default();
    if (explained.effect.as_str(), explained_place) != (decision, place) {
        return Err(format!("it is explained otherwise: {text}"));
    }
    if decision != "deny" && !permits {
        return Err("it is not listed".to_owned());
    }
    Ok(())
}

/// Resolves the simulated symbolic link, if any, that the path is or leads through. Returns `None` if the link's target
/// is unknown.
fn resolve(links: &BTreeMap<String, String>, path: &str) -> Option<String> {
    let plain = path.replace("//", "/").replace("/./", "/");
    let link = links.iter().rev().find(|(from, _)| plain == **from || plain.starts_with(&format!("{from}/")));
    match link {
        Some((_, to)) if to == "?" => None,
        Some((from, to)) => Some(plain.replacen(from, to, 1)),
        None => Some(plain),
    }
}

fn read(path: &Path) -> Document {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut policy, mut links, mut rows) = (None::<Policy>, BTreeMap::new(), Vec::new());
    let mut lines = text.lines().enumerate();
    let mut in_table = false;
    while let Some((number, line)) = lines.next() {
        if let Some(kind) = line.strip_prefix("```").filter(|kind| !kind.is_empty()) {
            let block: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            match kind.split_once(' ') {
                Some(("toml", file)) => {
                    let source = Source { path: file.to_owned(), text: block.join("\n") };
                    let layer = Policy::parse(source).unwrap_or_else(|errors| panic!("{errors}"));
                    policy = Some(match policy {
                        Some(policy) => policy.restricted_by(layer),
                        None => layer,
                    });
                }
                _ => links.extend(block.iter().filter_map(|line| {
                    line.split_once(" -> ").map(|(from, to)| (from.to_owned(), to.to_owned()))
                })),
            }
        } else if !line.starts_with('|') {
            in_table = false;
        } else if in_table && line.starts_with("| ") {
            rows.push(row(number + 1, line));
        } else if line.starts_with("| call ") {
            in_table = true;
        }
    }
    Document { policy: policy.unwrap(), links, rows }
}

fn row(line: usize, text: &str) -> Row {
    let cells: Vec<&str> = text.trim_matches('|').split(" |").map(str::trim).collect();
    let [call, arguments, client, decision, place, ..] = cells[..] else { panic!("{line}: {cells:?}") };
    let (call, definition) = match call.split_once(" @") {
        Some((call, definition)) => (call, Some(definition.repeat(64 / definition.len()))),
        None => (call, None),
    };
    let (server, item) = item(call);
    let arguments: Map<String, Value> = match arguments.trim_matches('`') {
        "" => Map::new(),
        json => serde_json::from_str(json).unwrap_or_else(|error| panic!("{line}: {error}")),
    };
    let client = Some(client).filter(|client| !client.is_empty()).map(ClientName::new);
    let mut call = Call::new(&server, item).with_arguments(arguments).with_client(client);
    call.definition = definition;
    Row { line, call, decision: decision.to_owned(), place: place.to_owned() }
}

/// Parses a call target: `SERVER/TOOL`, `SERVER resource URI`, `SERVER prompt NAME`, or `SERVER list KIND`.
fn item(text: &str) -> (ServerName, CallTarget) {
    let (server, item) = match text.split_once(' ') {
        None => {
            let (server, tool) = text.split_once('/').unwrap();
            (server, CallTarget::Tool(ToolName::new(tool).unwrap()))
        }
        Some((server, rest)) => {
            let (kind, name) = rest.split_once(' ').unwrap();
            let item = match (kind, name) {
                ("resource", uri) => CallTarget::Resource(ResourceUri::new(uri).unwrap()),
                ("prompt", name) => CallTarget::Prompt(PromptName::new(name).unwrap()),
                ("list", "resources") => CallTarget::List(Listing::Resources),
                ("list", "prompts") => CallTarget::List(Listing::Prompts),
                other => panic!("{other:?}"),
            };
            (server, item)
        }
    };
    (ServerName::new(server).unwrap(), item)
}

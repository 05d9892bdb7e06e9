//! What a server wrote is what the client reads, byte for byte: over both ways and in both eras.

use std::process::Command;

use lockhouse_tests::{Table, ensure};
use serde_json::{Value, json};

use super::pipe::Pipe;
use super::{ALL, fixture, legacy, lockhouse, modern};

const DIRECT: &str = "expose = \"direct\"";

/// Method, parameters of the client, and those of the server where they differ.
fn requests() -> Vec<(&'static str, Value, Value)> {
    let tool = |name: &str| json!({"name": name, "arguments": {}});
    let both = |method, parameters: Value| (method, parameters.clone(), parameters);
    vec![
        ("tools/call", tool("fixture__strange_result"), tool("strange_result")),
        ("tools/call", tool("fixture__test_error_handling"), tool("test_error_handling")),
        ("tools/call", tool("fixture__test_multiple_content_types"), tool("test_multiple_content_types")),
        both("resources/read", json!({"uri": "test://strange"})),
        both("resources/read", json!({"uri": "test://nowhere"})),
        (
            "prompts/get",
            json!({"name": "fixture__test_simple_prompt"}),
            json!({"name": "test_simple_prompt"}),
        ),
        both(
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "test://template/{id}/data"}, "argument": {"name": "id", "value": "pa"}}),
        ),
    ]
}

/// What stands behind the id: the result or the error.
fn outcome(line: &str) -> String {
    let start = ["\"result\":", "\"error\":"].iter().filter_map(|key| line.find(key)).min();
    line[start.expect("an answer")..]
        .trim_end()
        .trim_end_matches('}')
        .replace("\": ", "\":")
        .replace(", ", ",")
}

#[tokio::test]
async fn results_pass_byte_for_byte() {
    let mut table = Table::new("what a client reads of a server that it has directly");
    for era in ["--legacy", "--modern"] {
        let is_modern = era == "--modern";
        let message = |id, method, parameters| match is_modern {
            true => modern(id, method, parameters, &json!({})),
            false => legacy(id, method, parameters),
        };
        let lockhouse = lockhouse(era, DIRECT, ALL);
        let mut server = Command::new("python3");
        server.args(["-B", &fixture(), era]);
        let mut server = Pipe::open(server);
        let mut pipe = match is_modern {
            true => Pipe::open(lockhouse.command(&["serve"])),
            false => Pipe::initialized(lockhouse.command(&["serve"]), json!({})).await,
        };
        let door = lockhouse.door().await;
        let visitor = match is_modern {
            true => door.visitor(None),
            false => door.session(None, "2025-11-25").await,
        };
        for (number, (method, ours, own)) in requests().into_iter().enumerate() {
            let id = 100 + number as u64;
            let expected = outcome(&server.ask(&message(id, method, own)).await);
            let named = format!("{era} {method} {}", ours.to_string().chars().take(50).collect::<String>());
            let piped = outcome(&pipe.ask(&message(id, method, ours.clone())).await);
            table.row(format!("stdio {named}"), ensure(piped == expected, (&piped, &expected)));
            let reply = visitor.request(method, ours).await;
            let lines =
                reply.body.lines().find(|line| line.contains("\"result\"") || line.contains("\"error\""));
            let posted = outcome(lines.unwrap_or_default());
            table.row(format!("HTTP {named}"), ensure(posted == expected, (&posted, &expected)));
        }
        for (method, name) in [
            ("tools/list", Some("strange_result")),
            ("prompts/list", Some("test_prompt_with_arguments")),
            ("resources/list", None),
            ("resources/templates/list", None),
        ] {
            let whole = server.ask(&message(200, method, json!({}))).await;
            let expected = entry(&whole, name.unwrap_or("test"), "");
            let listed = pipe.ask(&message(200, method, json!({}))).await;
            let piped = entry(&listed, name.unwrap_or("test"), if name.is_some() { "fixture__" } else { "" });
            table.row(format!("stdio {era} {method}"), ensure(piped == expected, (&piped, &expected)));
            let posted = visitor.request(method, json!({})).await.body;
            let posted =
                entry(&posted, name.unwrap_or("test"), if name.is_some() { "fixture__" } else { "" });
            table.row(format!("HTTP {era} {method}"), ensure(posted == expected, (&posted, &expected)));
        }
    }
    table.finish();
}

/// One entry of a list, from its name or URI to the next brace that ends it and what follows, under its own name.
fn entry(list: &str, name: &str, prefix: &str) -> String {
    let list = list.replace("\": ", "\":").replace(", ", ",");
    let start = match name {
        "test" => list.find("{\"uri").expect("an entry"),
        name => list.find(&format!("{{\"name\":\"{prefix}{name}\"")).expect("the entry"),
    };
    let rest = list[start..].replacen(prefix, "", 1);
    // To the end of the object.
    let mut depth = 0;
    let end = rest.char_indices().find(|(_, c)| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth == 0
    });
    rest[..=end.expect("an end").0].to_owned()
}

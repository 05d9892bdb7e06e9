//! Tests that an AI client receives the result of a directly exposed upstream server byte for byte, over both
//! transports and in both forms of the MCP protocol.

use std::process::Command;

use lockhouse_tests::{Table, ensure};
use serde_json::{Value, json};

use super::raw_client::Pipe;
use super::{ALL, fixture, legacy, lockhouse, modern};

const DIRECT: &str = "expose = \"direct\"";

/// Returns MCP requests as triples: the method, the parameters that the AI client sends, and the parameters that the
/// upstream server must receive.
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

/// Returns the text of the result or error in a response line. The result is returned unchanged. From an error, the
/// spaces after `:` and `,` are removed, because Lockhouse serializes errors anew.
fn outcome(line: &str) -> String {
    let whole = line.trim_end().trim_end_matches('}');
    match whole.split_once("\"result\":") {
        Some((_, result)) => result.trim_start().to_owned(),
        None => {
            let (_, error) = whole.split_once("\"error\":").expect("an answer");
            error.trim_start().replace("\": ", "\":").replace(", ", ",")
        }
    }
}

#[tokio::test]
async fn direct_results_are_forwarded_byte_for_byte() {
    let mut table = Table::new("results of a directly exposed server");
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
        let daemon = lockhouse.daemon().await;
        let http_client = match is_modern {
            true => daemon.http_client(None),
            false => daemon.session(None, "2025-11-25").await,
        };
        for (number, (method, ours, own)) in requests().into_iter().enumerate() {
            let id = 100 + number as u64;
            let expected = outcome(&server.ask(&message(id, method, own)).await);
            let named = format!("{era} {method} {}", ours.to_string().chars().take(50).collect::<String>());
            let piped = outcome(&pipe.ask(&message(id, method, ours.clone())).await);
            table.row(format!("stdio {named}"), ensure(piped == expected, (&piped, &expected)));
            let reply = http_client.request(method, ours).await;
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
            let posted = http_client.request(method, json!({})).await.body;
            let posted =
                entry(&posted, name.unwrap_or("test"), if name.is_some() { "fixture__" } else { "" });
            table.row(format!("HTTP {era} {method}"), ensure(posted == expected, (&posted, &expected)));
        }
    }
    table.finish();
}

/// Returns the JSON text of the entry `name` in a list of tools, prompts or resources, with `prefix` removed from its
/// name. If `name` is `test`, returns the first resource or resource template instead.
fn entry(list: &str, name: &str, prefix: &str) -> String {
    let start = match name {
        "test" => list.find("{\"uri").expect("an entry"),
        name => list.find(&format!("{{\"name\": \"{prefix}{name}\"")).expect("the entry"),
    };
    let rest = list[start..].replacen(prefix, "", 1);
    // The end of the object is where the braces balance.
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

//! Tests of the MCP tools that Lockhouse offers to AI clients, of the handshakes of all protocol versions, and of the
//! errors for invalid requests.

use lockhouse_tests::{Lockhouse, Session, Table, ensure, tokens};
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ServiceError};
use serde_json::{Value, json};

/// The maximum length of the fixed text of all tool definitions together, in tokens of the tokenizer `o200k_base`. Every
/// conversation of an AI client has these tokens in its context.
const BUDGET_TOKENS: usize = 450;

#[tokio::test]
async fn the_fixed_text_of_the_three_tool_definitions_is_small() {
    let mut seen = Vec::new();
    for lockhouse in [Lockhouse::new(), Lockhouse::new()] {
        let command = lockhouse.command(&["serve", "--answer", "text"]);
        let session = Session::connect(command, Session::latest()).await;
        seen.push(serde_json::to_value(session.tools().await).unwrap());
        session.call("run_code", json!({"language": "python", "code": "1"})).await.unwrap();
        seen.push(serde_json::to_value(session.tools().await).unwrap());
    }
    let names: Vec<&str> =
        seen[0].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["run_code", "search_tools", "get_result"]);
    assert!(seen.iter().all(|tools| *tools == seen[0]), "{seen:?}");
    // Metadata is for the client; a model does not see it.
    let mut shown = seen[0].clone();
    for tool in shown.as_array_mut().unwrap() {
        let metadata = tool.as_object_mut().unwrap().remove("_meta");
        assert_eq!(
            metadata,
            Some(json!({"anthropic/alwaysLoad": true})),
            "clients keep the tool in the context"
        );
    }
    let tokens = tokens(&shown.to_string());
    assert!(tokens <= BUDGET_TOKENS, "{tokens} tokens");
    assert_eq!(seen[0][1]["annotations"]["readOnlyHint"], true, "{}", seen[0][1]);
}

#[tokio::test]
async fn clients_of_every_era_are_served() {
    let discover = |version| ClientLifecycleMode::Discover { preferred_versions: vec![version] };
    let rows = [
        ("initialize", ClientLifecycleMode::Initialize, "2025-11-25"),
        ("discover", discover(ProtocolVersion::V_2026_07_28), "2026-07-28"),
        (
            "either",
            ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            "2026-07-28",
        ),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("clients by their handshake");
    for (name, mode, expected) in rows {
        let session = Session::connect(lockhouse.command(&["serve"]), mode).await;
        let (version, instructions) = session.server();
        table.row(format!("{name}: version"), ensure(version == expected, &version));
        let told = instructions.as_deref().is_some_and(|text| text.contains("run_code"));
        table.row(format!("{name}: instructions"), ensure(told, instructions));
        table.row(format!("{name}: tools"), ensure(session.tools().await.len() == 3, ""));
        let answer =
            session.run_code("python", "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']").await;
        table.row(format!("{name}: run_code"), ensure(answer["value"] == 3, answer));
        let ended = session.close().await;
        table.row(format!("{name}: end"), ensure(ended.status == Some(0), ended));
    }
    table.finish();
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error_that_lists_the_available_tools() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    match session.call("run_codes", json!({})).await {
        Err(ServiceError::McpError(error)) => {
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
            assert!(
                error.message.contains("run_codes") && error.message.contains("search_tools"),
                "{error:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(session.run_code("python", "1 + 1").await["value"], 2);
}

#[tokio::test]
async fn wrong_arguments_return_an_error_result_with_the_reason() {
    let long = "x".repeat(5_000);
    let rows: [(&str, &str, Value, &str); 18] = [
        ("no arguments", "run_code", json!({}), "language"),
        ("no code", "run_code", json!({"language": "python"}), "code"),
        ("no language", "run_code", json!({"code": "1"}), "python"),
        ("unknown language", "run_code", json!({"language": "cobol", "code": "1"}), "cobol"),
        ("language of another type", "run_code", json!({"language": 3, "code": "1"}), "language"),
        ("a long language", "run_code", json!({"language": long, "code": "1"}), "typescript"),
        ("code of another type", "run_code", json!({"language": "python", "code": ["1"]}), "code"),
        ("empty code", "run_code", json!({"language": "python", "code": " "}), "empty"),
        (
            "code beyond its limit",
            "run_code",
            json!({"language": "python", "code": "#".repeat(300_000)}),
            "262144",
        ),
        ("timeout 0", "run_code", json!({"language": "python", "code": "1", "timeout_s": 0}), "timeout_s"),
        (
            "negative timeout",
            "run_code",
            json!({"language": "python", "code": "1", "timeout_s": -1}),
            "timeout_s",
        ),
        (
            "timeout as text",
            "run_code",
            json!({"language": "python", "code": "1", "timeout_s": "5"}),
            "timeout_s",
        ),
        (
            "a huge timeout",
            "run_code",
            json!({"language": "python", "code": "1", "timeout_s": 1e300}),
            "timeout_s",
        ),
        (
            "servers as text",
            "run_code",
            json!({"language": "python", "code": "1", "servers": "x"}),
            "servers",
        ),
        (
            "unknown argument",
            "run_code",
            json!({"language": "python", "code": "1", "timeout": 5}),
            "timeout_s",
        ),
        ("query of another type", "search_tools", json!({"query": 3}), "query"),
        ("detail of another type", "search_tools", json!({"query": "x", "detail": "yes"}), "detail"),
        ("an unknown language", "search_tools", json!({"query": "x", "language": "cobol"}), "language"),
    ];
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("wrong arguments");
    for (name, tool, arguments, words) in rows {
        let result = session.call(tool, arguments).await.unwrap();
        let content = result.structured_content.unwrap_or_default();
        let message = content["error"]["message"].as_str().unwrap_or_default();
        let told = message.contains(words) && message.len() < 500;
        table.row(name, ensure(result.is_error == Some(true) && told, &content));
    }
    let fine = session
        .call("run_code", json!({"language": "javascript", "code": "1", "timeout_s": 5}))
        .await
        .unwrap();
    table.row("control", ensure(fine.is_error != Some(true), &fine));
    table.finish();
}

#[tokio::test]
async fn the_text_of_a_structured_result_is_its_structured_content() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let rows = [
        ("run_code", json!({"language": "python", "code": "print('ž')\n{'a': [1, None]}"}), false),
        ("run_code", json!({"language": "typescript", "code": "throw new Error('no')"}), true),
        ("run_code", json!({"language": "python", "code": "while True: pass", "timeout_s": 0.3}), true),
        ("run_code", json!({}), true),
        ("search_tools", json!({"query": "add", "detail": "full"}), false),
    ];
    for (tool, arguments, is_error) in rows {
        let result = serde_json::to_value(session.call(tool, arguments.clone()).await.unwrap()).unwrap();
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"], "{arguments}");
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
        assert_eq!(result["isError"] == true, is_error, "{result}");
    }
}

#[tokio::test]
async fn a_search_returns_signatures_in_the_requested_language_and_schemas_on_request() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let of = async |arguments| {
        let found = lockhouse_tests::structured(session.call("search_tools", arguments).await);
        found["tools"][0].clone()
    };
    let first = of(json!({"query": "add numbers"})).await;
    assert_eq!((&first["server"], &first["tool"]), (&json!("fixture"), &json!("add")), "{first}");
    let signature = first["python"].as_str().expect("a signature");
    assert!(signature.starts_with("add(a: float, b: float)"), "{signature}");
    assert!(first.get("typescript").is_none(), "{first}");
    let other = of(json!({"query": "add numbers", "language": "typescript"})).await;
    let signature = other["typescript"].as_str().expect("a signature");
    assert!(signature.starts_with("add({ a: number, b: number })"), "{signature}");
    assert!(other.get("python").is_none(), "{other}");
    let named = of(json!({"query": "add numbers", "detail": "names"})).await;
    assert_eq!((&named["tool"], named.get("python")), (&json!("add"), None), "{named}");
    assert!(first.get("inputSchema").is_none(), "{first}");
    let full = lockhouse_tests::structured(
        session.call("search_tools", json!({"query": "add", "detail": "full"})).await,
    );
    assert_eq!(full["tools"][0]["inputSchema"]["required"], json!(["a", "b"]), "{full}");
    assert_eq!(session.search_tools("zebra").await["tools"], json!([]));
}

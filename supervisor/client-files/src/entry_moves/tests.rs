//! Tests of [`take_out`] and [`put_back`] in the formats of several AI clients.

use super::*;

fn source(text: &str) -> Source {
    Source { path: "file".into(), text: text.into() }
}

fn places(section: &[&str], names: &[&str]) -> Vec<EntryPlace> {
    let section: Vec<String> = section.iter().map(|key| (*key).to_owned()).collect();
    names.iter().map(|name| EntryPlace { section: section.clone(), name: (*name).to_owned() }).collect()
}

fn taken_out(client: AiClient, text: &str, places: &[EntryPlace]) -> String {
    take_out(client, &source(text), places).map_err(|faults| faults.to_string()).expect("a change")
}

/// Files with the servers `a`, `b` and `c`: the AI client, the section, the file, and the file without `a` and `c`.
const FILES: [(AiClient, &[&str], &str, &str); 5] = [
    (
        AiClient::ClaudeCode,
        &["mcpServers"],
        "{\n  \"n\": 3,\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" },\n    \"b\": { \"command\": \"y\" },\n    \"c\": {\n      \"command\": \"z\"\n    }\n  },\n  \"m\": 1.50\n}\n",
        "{\n  \"n\": 3,\n  \"mcpServers\": {\n    \"b\": { \"command\": \"y\" }\n  },\n  \"m\": 1.50\n}\n",
    ),
    (
        AiClient::Zed,
        &["context_servers"],
        "// mine\n{\n  \"context_servers\": {\n    // of a\n    \"a\": {\"command\": \"x\"}, // end\n    \"b\": {}, \"c\": {},\n  },\n}\n",
        "// mine\n{\n  \"context_servers\": {\n    // of a\n    // end\n    \"b\": {}, \n  },\n}\n",
    ),
    (
        AiClient::Opencode,
        &["mcp", "servers"],
        "{\"mcp\":{\"servers\":{\"a\":{\"type\":\"local\"},\"b\":{\"type\":\"local\"},\"c\":{}}}}",
        "{\"mcp\":{\"servers\":{\"b\":{\"type\":\"local\"}}}}",
    ),
    (
        AiClient::Codex,
        &["mcp_servers"],
        "model = \"m\" # c\n\n[mcp_servers.a]\ncommand = \"x\"\n\n[mcp_servers.a.env]\nK = \"v\"\n\n# of b\n[mcp_servers.b]\ncommand = 'y'\n\n[mcp_servers.c]\ncommand = \"z\"\n\n[other]\nk = 1\n",
        "model = \"m\" # c\n\n# of b\n[mcp_servers.b]\ncommand = 'y'\n\n[other]\nk = 1\n",
    ),
    (
        AiClient::Continue,
        &["mcpServers"],
        "name: Mine # c\nmcpServers:\n  - name: a\n    command: x\n    env:\n      K: v\n  # of b\n  - name: b\n    command: y\n  - command: z\n    name: c\nrules: []\n",
        "name: Mine # c\nmcpServers:\n  # of b\n  - name: b\n    command: y\nrules: []\n",
    ),
];

#[test]
fn servers_are_taken_out_and_everything_else_stays() {
    for (client, section, text, expected) in FILES {
        assert_eq!(taken_out(client, text, &places(section, &["a", "c", "absent"])), expected);
        assert_eq!(taken_out(client, text, &places(section, &["absent"])), text);
    }
}

#[test]
fn servers_are_put_back_into_a_file_that_has_changed() {
    for (client, section, text, without) in FILES {
        let moved = places(section, &["a", "c"]);
        let put = put_back(client, &source(without), &source(text), &moved);
        let put = put.map_err(|faults| faults.to_string()).expect("a change");
        assert!(put.taken.is_empty());
        assert_eq!(tree(client, &source(&put.text)).ok(), tree(client, &source(text)).ok(), "{}", put.text);
        let again = put_back(client, &source(&put.text), &source(text), &moved).expect("no change");
        assert_eq!(again.text, put.text);
    }
}

#[test]
fn all_servers_can_be_taken_out_and_put_back() {
    for (client, section, text, _) in FILES {
        let moved = places(section, &["a", "b", "c"]);
        let without = taken_out(client, text, &moved);
        let put = put_back(client, &source(&without), &source(text), &moved);
        let put = put.map_err(|faults| faults.to_string()).expect("a change");
        assert_eq!(tree(client, &source(&put.text)).ok(), tree(client, &source(text)).ok(), "{}", put.text);
    }
}

#[test]
fn a_server_of_the_same_name_is_not_replaced() {
    let now = "{\"mcpServers\": {\"a\": {\"command\": \"mine\"}}}";
    let original = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"command\": \"y\"}}}";
    let moved = places(&["mcpServers"], &["a", "b"]);
    let put = put_back(AiClient::Cursor, &source(now), &source(original), &moved).expect("a change");
    assert_eq!(put.taken, places(&["mcpServers"], &["a"]));
    assert_eq!(put.text, "{\"mcpServers\": {\"b\": {\"command\": \"y\"}, \"a\": {\"command\": \"mine\"}}}");
}

#[test]
fn a_file_whose_servers_cannot_be_changed_alone_is_refused_without_its_text() {
    for (client, section, text) in [
        (AiClient::Continue, "mcpServers", "mcpServers: [{name: a, command: SEKRET}, {name: b}]\n"),
        (AiClient::Cursor, "mcpServers", "{\"mcpServers\": {\"a\": {\"k\": \"SEKRET\"}, \"a\": {}}}"),
        (AiClient::Codex, "mcp_servers", "[mcp_servers.a]\ncommand = \"SEKRET\n"),
    ] {
        let fault = take_out(client, &source(text), &places(&[section], &["a"])).expect_err("a fault");
        assert!(!fault.to_string().contains("SEKRET"), "{fault}");
    }
}

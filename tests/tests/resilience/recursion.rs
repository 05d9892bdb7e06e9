//! Tests of a Lockhouse that is configured as one of its own upstream servers.

use lockhouse_tests::Lockhouse;
use serde_json::json;

#[test]
fn a_lockhouse_in_its_own_servers_file_does_not_start_itself_recursively() {
    let program = Lockhouse::new().program().display().to_string();
    let by_name = json!({"command": program, "args": ["serve"]});
    // Behind a wrapper script only an environment variable reveals the recursion.
    let wrapped = json!({"command": "/bin/sh", "args": ["-c", format!("exec {program} serve")]});
    for (entry, words) in
        [(by_name, "it is Lockhouse itself"), (wrapped, "ended before it was ready (exit status: 2)")]
    {
        let lockhouse = Lockhouse::new().servers_entry("inner", entry).server("good", &[]);
        let finished = lockhouse.run(&["tools", "list", "--json"]);
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
        let tools = finished.json();
        let tools = tools.as_array().expect("a list");
        assert!(!tools.is_empty() && tools.iter().all(|tool| tool["server"] == "good"), "{tools:?}");
    }
}

//! Tests that the tables of all commands fit the width of the terminal.

use std::collections::BTreeSet;
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Session, Table, ensure, wait_until};
use serde_json::json;

const SERVER: &str = "customer-relationship-management-production";
const SESSION: &str = "quarterly-report-of-the-northern-region-2026";
const SKILL: &str = "summarise_open_orders_by_region_and_month";
const TOKEN: &str = "continuous-integration-of-the-billing-team";
const SLOW: &str = "from mcp_tools import call_tool\ncall_tool('customer-relationship-management-production', 'slow', {'ms': 600_000})";

fn lockhouse() -> Lockhouse {
    let policy =
        format!("version = 1\n[servers.{SERVER}]\nallow = [\"*\"]\n[servers.skills]\nallow = [\"save\"]\n");
    let lockhouse = Lockhouse::new().server(SERVER, &[]).policy(&policy).config("[skills]\nenabled = true\n");
    let command = "/opt/companies/northern-region/programs/that-is-not-installed";
    lockhouse.file(
        "home/.claude.json",
        json!({"mcpServers": {"orders-of-the-northern-region": {"command": command}}}).to_string(),
    );
    lockhouse.file(
        "home/new.toml",
        format!("version = 1\n[servers.{SERVER}]\nallow = [\"delete_everything\"]\n[[servers.{SERVER}.rules]]\ntool = \"add\"\nwhen = {{ a = {{ max = 10 }} }}\neffect = \"allow\"\n"),
    );
    lockhouse.file("home/old.toml", policy);
    lockhouse
}

/// Fills everything that the commands list. The returned session has a run that continues until the session is dropped.
async fn fill(lockhouse: &Lockhouse) -> Session {
    let session = lockhouse.serve().await;
    let code = format!("def {SKILL}(orders):\n    return len(orders)");
    let save = format!(
        "import skills\nskills.save('{SKILL}', 'Groups all open orders by the region of the customer, and counts them', code={code:?}, tests='pass')"
    );
    let saved = session.run_code("python", &save).await;
    assert_eq!(saved["status"], "ok", "{saved}");
    let calls = format!(
        "from mcp_tools import call_tool\ncall_tool('{SERVER}', 'echo', {{'value': {{'region': 'north', 'number-of-orders': 3}}}})\ncall_tool('{SERVER}', 'add', {{'a': 1, 'b': 2}})"
    );
    assert_eq!(session.run_in(SESSION, "python", &calls).await["status"], "ok");
    drop(session.start_code("python", SLOW));
    wait_until("the run is listed", async || {
        let listed = lockhouse.run(&["runs", "list", "--json"]).json();
        (listed[0]["state"] == "running").then_some(())
    })
    .await;
    for name in [TOKEN, "desk"] {
        let only = format!("{SERVER}.list_everything");
        let made = lockhouse.run(&["token", "create", name, "--expires", "90d", "--only", SERVER, &only]);
        assert_eq!(made.status, Some(0), "{made:?}");
    }
    session
}

/// Runs a command with this value of COLUMNS; `None` for a pipe without the variable.
fn run(lockhouse: &Lockhouse, arguments: &[&str], columns: Option<&str>) -> CommandOutput {
    let mut command: Command = lockhouse.command(arguments);
    match columns {
        Some(columns) => command.env("COLUMNS", columns),
        None => command.env_remove("COLUMNS"),
    };
    CommandOutput::run(&mut command, b"")
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Returns the words of a text that are the same each time: without times, numbers and the lines below a heading.
fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace()
        .filter(|word| word.chars().any(char::is_alphabetic) && !word.contains(|c: char| c.is_ascii_digit()))
        .collect()
}

#[tokio::test]
async fn the_tables_of_all_commands_fit_eighty_columns() {
    let lockhouse = lockhouse();
    let session = fill(&lockhouse).await;
    let id = lockhouse.run(&["runs", "list", "--json"]).json()[0]["execution"].as_str().unwrap().to_owned();
    let mut table = Table::new("tables at 80 columns");
    let commands: [(&[&str], &str); 16] = [
        (&["server", "list"], SERVER),
        (&["tools", "list"], SERVER),
        (&["tools", "search", "numbers"], SERVER),
        (&["tools", "shapes"], SERVER),
        (&["skills", "list"], SKILL),
        (&["skills", "test"], SKILL),
        (&["sessions", "list"], SESSION),
        (&["runs", "list"], &id),
        (&["token", "list"], TOKEN),
        (&["status"], SERVER),
        (&["audit", "query"], "customer-relationship-management-production.echo"),
        (&["audit", "tail"], "customer-relationship-management-production.add"),
        (&["audit", "show", &id], &id),
        (&["policy", "diff", "old.toml", "new.toml"], "servers.customer-relationship-management-production"),
        (&["policy", "dry-run", "new.toml"], SERVER),
        (&["doctor"], "Landlock"),
    ];
    for (arguments, whole) in
        commands.into_iter().chain([(&["import", "--dry-run"][..], "orders-of-the-northern-region")])
    {
        let name = arguments[..2.min(arguments.len())].join(" ");
        let wide = run(&lockhouse, arguments, Some("10000")).stdout;
        for columns in [Some("80"), None] {
            let narrow = run(&lockhouse, arguments, columns).stdout;
            let mut row =
                |what: &str, outcome| table.row(format!("{name}, COLUMNS {columns:?}: {what}"), outcome);
            row("no line is longer", ensure(widest(&narrow) <= 80, &narrow));
            row("a name stays whole", ensure(narrow.contains(whole), &narrow));
            let (kept, all) = (words(&narrow), words(&wide));
            row("no word is lost", ensure(all.is_subset(&kept), all.difference(&kept)));
        }
        table.row(format!("{name}: control: it is wider without a limit"), ensure(widest(&wide) > 80, &wide));
    }
    drop(session);
    table.finish();
}

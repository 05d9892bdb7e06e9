//! Tests that the tables of all commands fit the width of the terminal.

use std::collections::BTreeSet;
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Session, Table, ensure, structured, wait_until};
use serde_json::json;

const SERVER: &str = "customer-relationship-management-production";
const SESSION: &str = "quarterly-report-of-the-northern-region-2026";
const SKILL: &str = "summarise_open_orders_by_region_and_month";
const TOKEN: &str = "continuous-integration-of-the-billing-team";
/// A program that waits. Its lines are short, since `audit show` prints a program as it was sent.
const SLOW: &str = "from mcp_tools import call_tool\n\
                    server = 'customer-relationship-management-production'\n\
                    call_tool(server, 'slow', {'ms': 600_000})";

/// A word up to this length fits a line beside the names of the columns, and so is not broken.
const WHOLE_BYTES_MAX: usize = 60;

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

/// Calls two tools until Lockhouse has observed the result of one of them, and stores what it has observed.
async fn observe_results(lockhouse: &Lockhouse) {
    let session = lockhouse.serve().await;
    let orders =
        "{'region': 'north', 'number_of_orders': 3, 'customers_without_orders': ['a'], 'complete': True}";
    let calls = format!(
        "from mcp_tools import call_tool\ncall_tool('{SERVER}', 'add', {{'a': 1, 'b': 2}})\n\
         call_tool('{SERVER}', 'echo', {{'value': {orders}}})"
    );
    wait_until("a result was observed", async || {
        let answer = session.run_in(SESSION, "python", &calls).await;
        assert_eq!(answer["status"], "ok", "{answer}");
        let query = json!({"query": format!("{SERVER}.echo"), "detail": "full"});
        let found = structured(session.call("search_tools", query).await);
        found["tools"][0]["observedOutput"].to_string().contains("region").then_some(())
    })
    .await;
    session.close().await;
}

/// Fills everything that the commands list. The returned session has a run that continues until the session is dropped.
async fn fill(lockhouse: &Lockhouse) -> Session {
    observe_results(lockhouse).await;
    let session = lockhouse.serve().await;
    let code = format!("def {SKILL}(orders):\n    return len(orders)");
    let description = "Groups all open orders by the region of the customer, and counts them";
    let tests = "raise ValueError('the orders of the northern region are missing')";
    let save =
        format!("import skills\nskills.save('{SKILL}', {description:?}, code={code:?}, tests={tests:?})");
    let saved = session.run_code("python", &save).await;
    assert_eq!(saved["status"], "ok", "{saved}");
    assert_eq!(session.run_in(SESSION, "python", "1").await["status"], "ok");
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

/// Returns the words of a text that stay whole and are the same each time: without times, numbers, paths of this test, and
/// JSON that is longer than a line.
fn words(text: &str) -> BTreeSet<&str> {
    let is_stable = |word: &&str| {
        word.chars().any(char::is_alphabetic)
            && !word.contains(|c: char| c.is_ascii_digit())
            && word.len() <= WHOLE_BYTES_MAX
    };
    text.split_whitespace().filter(is_stable).collect()
}

/// Returns a text without its first line, which has the names of columns: a block omits the names of empty cells.
fn without_head(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
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
        (&["skills", "list"], "summarise-open-orders-by-region-and-month"),
        (&["skills", "test"], "northern"),
        (&["sessions", "list"], SESSION),
        (&["runs", "list"], &id),
        (&["token", "list"], TOKEN),
        (&["status"], SERVER),
        (&["audit", "query"], "customer-relationship-management-production.echo"),
        (&["audit", "tail", "-n", "200"], "customer-relationship-management-production.add"),
        (&["audit", "show", &id], &id),
        (&["policy", "diff", "old.toml", "new.toml"], "servers.customer-relationship-management-production"),
        (&["policy", "dry-run", "new.toml"], SERVER),
        (&["doctor", "--all"], "Landlock"),
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
            let (kept, all) = (words(&narrow), words(without_head(&wide)));
            row("no word is lost", ensure(all.is_subset(&kept), all.difference(&kept).collect::<Vec<_>>()));
        }
        table.row(format!("{name}: control: it is wider without a limit"), ensure(widest(&wide) > 80, &wide));
    }
    drop(session);
    table.finish();
}

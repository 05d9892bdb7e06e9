//! Tests of `lockhouse usage`, which adds up the audit log.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::access::token;

const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\ndeny = [\"slow\"]\n";

/// Returns the usage as JSON.
fn usage(lockhouse: &Lockhouse, options: &[&str]) -> Value {
    let shown = lockhouse.run(&[&["usage", "--json"], options].concat());
    assert_eq!(shown.status, Some(0), "{shown:?}");
    serde_json::from_str(&shown.stdout).expect("JSON")
}

#[tokio::test]
async fn each_client_has_what_it_used_and_nothing_else() {
    let mut table = Table::new("lockhouse usage");
    let lockhouse = Lockhouse::with_fixture().policy(POLICY);
    table.row("nothing yet", equal(usage(&lockhouse, &[]), json!([])));
    let tokens = ["ada", "bob"].map(|name| token(&lockhouse, &[name]));
    let daemon = lockhouse.daemon().await;
    let [ada, bob] = [&tokens[0], &tokens[1]].map(|token| daemon.http_client(Some(token)));
    let large = "from mcp_tools.fixture import echo\nlen(str(echo(value='x' * 40_000)))";
    ada.run_code("python", large).await;
    ada.run_code("python", "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']").await;
    ada.run_code("python", "1/0").await;
    bob.run_code("python", "6 * 7").await;
    bob.run_code("python", "from mcp_tools.fixture import slow\nslow(ms=1)").await;

    let rows = usage(&lockhouse, &[]);
    let of = |rows: &Value, name: &str| {
        let rows = rows.as_array().expect("a list").clone();
        rows.into_iter().find(|row| row["client"] == name).unwrap_or_default()
    };
    for (name, counts) in [
        ("ada", json!({"runs": 3, "failed": 1, "refused": 0, "calls": 2, "failed_calls": 0, "denied": 0})),
        ("bob", json!({"runs": 2, "failed": 1, "refused": 0, "calls": 0, "failed_calls": 0, "denied": 1})),
    ] {
        let row = of(&rows, name);
        for (key, count) in counts.as_object().expect("counts") {
            table.row(format!("{name}: {key}"), equal(row[key].clone(), count.clone()));
        }
        table.row(format!("{name}: CPU time"), ensure(row["cpu_s"].as_f64() > Some(0.0), &row));
    }
    let kept_out = of(&rows, "ada")["tokens_kept_out"].as_u64().unwrap_or_default();
    table.row("ada: tokens kept out", ensure((9_000..=25_000).contains(&kept_out), kept_out));
    table.row("bob: tokens kept out", equal(of(&rows, "bob")["tokens_kept_out"].clone(), json!(0)));
    table.row("only ada", equal(usage(&lockhouse, &["--client", "ada"]), json!([of(&rows, "ada")])));
    table.row("later", equal(usage(&lockhouse, &["--since", "2999-01-01"]), json!([])));
    let days = usage(&lockhouse, &["--by", "day"]);
    let runs: u64 = days.as_array().expect("days").iter().filter_map(|day| day["runs"].as_u64()).sum();
    table.row("by day: all runs", equal(runs, 5));
    let csv = lockhouse.run(&["usage", "--csv", "--client", "bob"]).stdout;
    let expected = "client,runs,failed,refused,calls,failed_calls,denied,cpu_s,wall_s,tokens_kept_out\r\nbob,2,1,0,0,0,1,";
    table.row("CSV", ensure(csv.starts_with(expected) && csv.ends_with(",0\r\n"), &csv));
    table.finish();
}

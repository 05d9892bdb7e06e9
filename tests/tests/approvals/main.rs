//! Calls that the policy leaves to a person: who is asked, what they see, and what their answer counts for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod always;
mod arguments;
mod batches;
mod client;
mod hostile;
mod local;
mod nobody;
mod refusals;
mod revoked;
mod socket;
mod waiting;

use lockhouse_tests::{Lockhouse, Person, Says, Session};
use rmcp::model::CallToolRequestParams;
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

const POLICY: &str = "\
version = 1

[servers.fixture]
allow = [\"count\"]
ask = [\"add\", \"echo\", \"delete_*\"]
";

fn lockhouse(config: &str) -> Lockhouse {
    Lockhouse::new().server("fixture", &[]).policy(POLICY).config(config)
}

fn eras() -> [(&'static str, ClientLifecycleMode); 2] {
    [("initialize", ClientLifecycleMode::Initialize), ("discover", Session::latest())]
}

async fn session(lockhouse: &Lockhouse, person: &Person, mode: ClientLifecycleMode) -> Session {
    Session::connect_as(person.clone(), lockhouse.command(&["serve"]), mode).await
}

/// A program that makes one call, and says what came of it and how many calls have reached the server.
const ONE: &str = "\
from mcp_tools import fixture, ToolError
try: r = fixture.add(a=1, b=2)['sum']
except ToolError as e: r = [e.code, str(e)]
[r, fixture.count().get('add', 0)]
";

fn parameters(code: &str) -> CallToolRequestParams {
    let arguments = json!({"language": "python", "code": code}).as_object().cloned().unwrap();
    CallToolRequestParams::new("run_code").with_arguments(arguments)
}

/// These, one after the other, and so many times.
fn in_turn(says: &[Says], times: usize) -> Says {
    Says::InTurn((0..times).flat_map(|_| says.to_vec()).collect())
}

/// Records of this event.
fn records(lockhouse: &Lockhouse, event: &str) -> Vec<Value> {
    lockhouse.audit().into_iter().filter(|record| record["event"] == event).collect()
}

/// What the records of approvals say became of them, and through whom.
fn outcomes(lockhouse: &Lockhouse) -> Vec<String> {
    let told = |record: &Value| {
        let outcome = record["outcome"].as_str().unwrap();
        record["through"].as_str().map_or(outcome.to_owned(), |means| format!("{outcome} through {means}"))
    };
    records(lockhouse, "approval").iter().map(told).collect()
}

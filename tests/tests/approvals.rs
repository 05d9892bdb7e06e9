//! Tests of calls that require approval: who is asked, what the approver sees, and which calls an approver's answer
//! covers.

mod always_answer;
mod arguments;
mod batches;
mod control_socket;
mod elicitation;
mod hostile_prompts;
mod local_approvers;
mod notices;
mod pending_questions;
mod refusals;
mod revocation;
mod without_approver;

use lockhouse_tests::{ClientUser, Lockhouse, Session, UserReply};
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

async fn session(lockhouse: &Lockhouse, person: &ClientUser, mode: ClientLifecycleMode) -> Session {
    Session::connect_as(person.clone(), lockhouse.command(&["serve"]), mode).await
}

/// A Python program that calls the tool `add` once and returns two things: the sum or the error, and the number of
/// `add` calls that have reached the upstream server.
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

/// Returns the scripted replies of a user: the replies `says` in this order, repeated `times` times.
fn repeated_sequence(says: &[UserReply], times: usize) -> UserReply {
    UserReply::Sequence((0..times).flat_map(|_| says.to_vec()).collect())
}

/// Returns the audit records whose field `event` has this value.
fn records(lockhouse: &Lockhouse, event: &str) -> Vec<Value> {
    lockhouse.audit().into_iter().filter(|record| record["event"] == event).collect()
}

/// Returns one text for each audit record of an approval. The text is `OUTCOME through CHANNEL`, such as
/// `once through local`, or only the outcome if the record names no channel.
fn outcomes(lockhouse: &Lockhouse) -> Vec<String> {
    let summary = |record: &Value| {
        let outcome = record["outcome"].as_str().unwrap();
        record["through"].as_str().map_or(outcome.to_owned(), |means| format!("{outcome} through {means}"))
    };
    records(lockhouse, "approval").iter().map(summary).collect()
}

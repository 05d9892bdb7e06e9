//! What a person asks, in one line that has one answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::executions::ListedRun;
use crate::sessions::Listed;
use crate::supervisor::Supervisor;

/// Why a session ended, as the AI client is told.
const BY_A_PERSON: &str = "a person ended it with `lockhouse sessions end`";

/// The one line of whoever asks. The number is the version of these messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    ListSessions(u32),
    /// Of this name.
    EndSession(String),
    EndSessions(u32),
    Health(u32),
    ListRuns(u32),
    /// Of this execution.
    EndRun(String),
    EndRuns(u32),
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    Sessions(Vec<Listed>),
    /// Those of these names end. What runs in them is being stopped.
    Ended(Vec<String>),
    /// How the process is, as at `/health`.
    Health(Value),
    Runs(Vec<ListedRun>),
    /// Those of these executions are being stopped.
    EndedRuns(Vec<String>),
}

/// Does what is asked.
pub(super) fn carry_out(order: &Order, supervisor: &Supervisor) -> Told {
    let (sessions, executions) = (supervisor.sessions(), supervisor.executions());
    match order {
        Order::Health(_) => Told::Health(serde_json::to_value(supervisor.health()).unwrap_or_default()),
        Order::ListSessions(_) => Told::Sessions(sessions.list()),
        Order::EndSession(name) => Told::Ended(sessions.end(Some(name), BY_A_PERSON)),
        Order::ListRuns(_) => Told::Runs(executions.list()),
        Order::EndRun(execution) => Told::EndedRuns(executions.end(Some(execution))),
        Order::EndRuns(_) => Told::EndedRuns(executions.end(None)),
        Order::EndSessions(_) => Told::Ended(sessions.end(None, BY_A_PERSON)),
    }
}

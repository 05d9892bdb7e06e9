//! What a person asks, in one line that has one answer.

use crate::executions::ListedRun;
use crate::sessions::{Listed, Which};
use crate::supervisor::Supervisor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a session ended, as the AI client is told.
const BY_A_PERSON: &str = "a person ended it with `lockhouse sessions end`";

/// The one line of whoever asks. The number is the version of these messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    ListSessions(u32),
    /// Of this name, if one client alone has one.
    EndSession(String),
    /// With this id, as they are listed.
    EndSessionWithId(u64),
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
pub enum Told {
    Sessions(Vec<Listed>),
    /// Those of these names end. What runs in them is being stopped.
    Ended(Vec<String>),
    /// How the process is, as at `/health`.
    Health(Value),
    Runs(Vec<ListedRun>),
    /// Those of these executions are being stopped.
    EndedRuns(Vec<String>),
    /// Nothing was done.
    Refused {
        id: Option<u64>,
        reason: String,
    },
}

/// Does what is asked.
pub(super) fn carry_out(order: &Order, supervisor: &Supervisor) -> Told {
    let (sessions, executions) = (supervisor.sessions(), supervisor.executions());
    match order {
        Order::Health(_) => Told::Health(serde_json::to_value(supervisor.health()).unwrap_or_default()),
        Order::ListSessions(_) => Told::Sessions(sessions.list()),
        Order::EndSession(name) => ended(sessions.end(Which::Named(name), BY_A_PERSON)),
        Order::EndSessionWithId(id) => ended(sessions.end(Which::Numbered(*id), BY_A_PERSON)),
        Order::ListRuns(_) => Told::Runs(executions.list()),
        Order::EndRun(execution) => Told::EndedRuns(executions.end(Some(execution))),
        Order::EndRuns(_) => Told::EndedRuns(executions.end(None)),
        Order::EndSessions(_) => ended(sessions.end(Which::All, BY_A_PERSON)),
    }
}

fn ended(ended: Result<Vec<String>, usize>) -> Told {
    match ended {
        Ok(names) => Told::Ended(names),
        Err(count) => {
            let reason = format!(
                "{count} clients have a session of this name: end one of them by its id, as they are listed"
            );
            Told::Refused { id: None, reason }
        }
    }
}

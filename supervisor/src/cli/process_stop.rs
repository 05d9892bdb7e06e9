//! What became of one Lockhouse process that was asked to end.

use lockhouse_policies::printable;
use serde_json::{Value, json};

use super::account_name::account_name;

/// What became of one process.
pub(super) struct ProcessStop {
    pub(super) pid: u32,
    /// The account. `None` if it is that of this user.
    pub(super) uid: Option<u32>,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// It is ending: runs end with the reason.
    Ending,
    /// It has ended.
    Ended,
    /// It did not end by itself, and ended on SIGTERM.
    Terminated,
    /// It was killed with SIGKILL.
    Killed,
    /// It could not be ended.
    Remains,
    Refused(String),
    /// It is of a version that cannot be asked to stop.
    UnknownRequest,
    NoAnswer,
}

impl ProcessStop {
    pub(super) fn print(&self) {
        let (pid, user) = (self.pid, self.user());
        let done = match &self.outcome {
            Outcome::Ending => "it is ending",
            Outcome::Ended => "it has ended",
            Outcome::Terminated => "it has ended on SIGTERM",
            Outcome::Killed => "it was killed, since it did not end on SIGTERM",
            _ => {
                return eprintln!("lockhouse: process {pid}{user}: {}", self.failure().unwrap_or_default());
            }
        };
        println!("process {pid}{user}: {done}");
    }

    fn user(&self) -> String {
        self.uid.map(|uid| format!(" of {}", printable(&account_name(uid)))).unwrap_or_default()
    }

    /// Returns why the process does not end; `None` if it does.
    pub(super) fn failure(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Ending | Outcome::Ended | Outcome::Terminated | Outcome::Killed => None,
            Outcome::Remains => Some("it could not be ended".to_owned()),
            Outcome::Refused(reason) => Some(format!("it does not stop: {}", printable(reason))),
            Outcome::UnknownRequest => Some(format!(
                "this version of Lockhouse does not know the request; `kill {}` ends it",
                self.pid
            )),
            Outcome::NoAnswer => Some(format!("it did not answer; `kill {}` ends it", self.pid)),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let outcome = match &self.outcome {
            Outcome::Ending => "ending",
            Outcome::Ended => "ended",
            Outcome::Terminated => "terminated",
            Outcome::Killed => "killed",
            Outcome::Remains => "remains",
            Outcome::Refused(_) => "refused",
            Outcome::UnknownRequest => "unknown_request",
            Outcome::NoAnswer => "no_answer",
        };
        json!({"pid": self.pid, "uid": self.uid, "outcome": outcome, "error": self.failure()})
    }
}

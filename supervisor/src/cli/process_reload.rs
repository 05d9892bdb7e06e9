//! The outcome of a reload in one Lockhouse process.

use lockhouse_link::OperatorError;
use lockhouse_messages::ReloadReport;
use lockhouse_policies::printable;
use serde_json::{Value, json};

use super::account_name::account_name;
use super::terminal::sanitize_lines;

/// The outcome of a reload in one Lockhouse process.
pub(super) struct ProcessReload {
    pub(super) pid: u32,
    /// The account. `None` if it is that of this user.
    pub(super) uid: Option<u32>,
    /// `None` if the process did not report its version.
    pub(super) version: Option<String>,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    /// The process has read the files. The report says whether they are in force.
    Answered(ReloadReport),
    /// The process refused the request, for this reason.
    Refused(String),
    /// The process is of a version that cannot be asked to reload.
    UnknownRequest,
    /// The process has not answered in time, so its configuration may be the previous one.
    NoAnswer,
}

impl From<OperatorError> for Outcome {
    fn from(error: OperatorError) -> Self {
        match error {
            OperatorError::OtherVersion => Self::UnknownRequest,
            OperatorError::Refused(reason) => Self::Refused(reason),
            OperatorError::NoAnswer => Self::NoAnswer,
        }
    }
}

impl ProcessReload {
    pub(super) fn print(&self) {
        let user = self.uid.map(|uid| format!(" of {}", printable(&account_name(uid)))).unwrap_or_default();
        let pid = format!("{}{user}", self.pid);
        match &self.outcome {
            Outcome::Answered(report) if report.in_force => {
                println!("process {pid}: the configuration is in force (generation {})", report.generation);
                if !report.restart_required.is_empty() {
                    let tables = printable(&report.restart_required.join(", "));
                    println!("process {pid}: changes in {tables} take effect when Lockhouse is restarted");
                }
            }
            Outcome::Answered(report) => {
                eprintln!(
                    "lockhouse: process {pid} keeps the previous configuration, because the files have errors:"
                );
                eprintln!("{}", sanitize_lines(report.error.as_deref().unwrap_or_default()));
            }
            _ => eprintln!("lockhouse: process {pid}: {}", self.failure().unwrap_or_default()),
        }
    }

    /// Returns why the process has not read the files; `None` if it has.
    fn failure(&self) -> Option<String> {
        let pid = self.pid;
        match &self.outcome {
            Outcome::Answered(_) => None,
            Outcome::Refused(reason) => Some(format!("nothing was reloaded: {}", printable(reason))),
            Outcome::UnknownRequest => {
                let version = self.version.as_ref().map(|version| format!(" ({})", printable(version)));
                Some(format!(
                    "nothing was reloaded: this version of Lockhouse{} does not know the request; `kill -HUP {pid}` \
                     reloads its configuration",
                    version.unwrap_or_default()
                ))
            }
            Outcome::NoAnswer => Some(format!(
                "it did not answer, so the previous configuration may still be in force; its log shows whether it \
                 reloads on `kill -HUP {pid}`"
            )),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let (outcome, report) = match &self.outcome {
            Outcome::Answered(report) if report.in_force => ("in_force", Some(report)),
            Outcome::Answered(report) => ("invalid", Some(report)),
            Outcome::Refused(_) => ("refused", None),
            Outcome::UnknownRequest => ("unknown_request", None),
            Outcome::NoAnswer => ("no_answer", None),
        };
        let mut reload = json!({
            "pid": self.pid, "version": self.version, "outcome": outcome,
            "in_force": outcome == "in_force",
            "generation": report.map(|report| report.generation),
            "digests": report.map(|report| &report.digests),
            "restart_required": report.map(|report| &report.restart_required),
            "error": self.failure().or_else(|| report.and_then(|report| report.error.clone())),
        });
        if let Some(uid) = self.uid {
            reload["uid"] = uid.into();
        }
        reload
    }
}

//! `lockhouse reload --all-users`: reloads the configuration in the Lockhouse processes of all accounts.

use futures_util::future::join_all;
use lockhouse_messages::{OperatorRequest, OperatorResponse};

use super::asked_process::AskFailure;
use super::{State, UserProcess, find};
use crate::cli::process_reload::{Outcome, ProcessReload};

/// Reloads the configuration in all processes, or in the one with this id. A process that does not answer is reported
/// too.
pub(in crate::cli) async fn reload(wanted: Option<u32>) -> Vec<ProcessReload> {
    let found = find().await.into_iter().filter(|process| wanted.is_none_or(|pid| pid == process.pid));
    join_all(found.map(reload_one)).await.into_iter().flatten().collect()
}

async fn reload_one(process: UserProcess) -> Option<ProcessReload> {
    let UserProcess { pid, uid, state } = process;
    let (version, outcome) = match state {
        State::Answers(asked, health) => {
            let outcome = match asked.ask(&OperatorRequest::Reload).await {
                Ok(OperatorResponse::Reloaded(report)) => Outcome::Answered(report),
                Ok(OperatorResponse::Refused { reason }) => Outcome::Refused(reason),
                Ok(_) | Err(AskFailure::OtherVersion) => Outcome::UnknownRequest,
                Err(AskFailure::Refused(reason)) => Outcome::Refused(reason),
                Err(AskFailure::NoAnswer) => Outcome::NoAnswer,
            };
            // `lockhouse run` reads its configuration only once.
            if health["serving"] != true && !matches!(outcome, Outcome::Answered(_)) {
                return None;
            }
            (health["version"].as_str().map(str::to_owned), outcome)
        }
        State::Refuses(_, reason) => (None, Outcome::Refused(reason)),
        State::PartOf(_) => return None,
        State::Silent | State::NotAsked => (None, Outcome::NoAnswer),
    };
    Some(ProcessReload { pid, uid: Some(uid), version, outcome })
}

//! The kill switch: while the administrator stops Lockhouse, runs and calls end with the administrator's reason, and none
//! begins.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::Supervisor;
use crate::execution::{Cancellation, ExecutionAnswer};
use crate::sessions::SessionSelector;

/// Maximum time in which the answers of ended runs are sent before the process stops.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// What the AI client can do while Lockhouse is stopped.
pub(super) const HINT: &str =
    "do not run it again: the administrator of this machine decides when programs may run";

/// Returns the message about a stop with this reason.
fn describe(reason: &str) -> Arc<str> {
    format!("the administrator of this machine has stopped Lockhouse: {reason}").into()
}

impl Supervisor {
    /// Returns why nothing may run, for clients. `None` if code may run.
    pub fn stop_message(&self) -> Option<Arc<str>> {
        self.stop.borrow().clone()
    }

    /// Waits until nothing may run any more, and returns why.
    pub(crate) async fn stopped(&self) -> Arc<str> {
        let mut stop = self.stop.subscribe();
        loop {
            if let Some(message) = &*stop.borrow_and_update() {
                return message.clone();
            }
            // The sender lives as long as this supervisor.
            let _ = stop.changed().await;
        }
    }

    /// Stops or resumes this process as the requirements say.
    pub(super) fn set_stop(&self, reason: Option<&str>) {
        let message = reason.map(describe);
        let is_changed = self.stop.send_if_modified(|stop| {
            let is_changed = *stop != message;
            stop.clone_from(&message);
            is_changed
        });
        match message {
            Some(message) if is_changed => {
                tracing::warn!("{message}");
                self.end_all(&message);
            }
            None if is_changed => tracing::info!("the administrator's stop is lifted"),
            _ => {}
        }
    }

    /// Stops this process for ever, because it cannot meet the requirements. Ends all runs with this message, and waits until
    /// they are answered.
    pub async fn stop_for_ever(&self, message: &str) {
        let message: Arc<str> = message.into();
        self.stop.send_replace(Some(message.clone()));
        self.end_all(&message);
        let _ = timeout(ANSWER_TIMEOUT, self.lifecycle.all_answered()).await;
    }

    fn end_all(&self, message: &str) {
        self.runs.end(None, &Cancellation::Stopped(message.into()));
        // The selector is never ambiguous.
        let _ = self.sessions.end(SessionSelector::All, message);
    }

    /// Gives the answer to a run that the administrator has ended the reason.
    pub(super) fn explain_stop(&self, answer: &mut ExecutionAnswer) {
        if let (Some(message), Some(error)) = (self.stop_message(), &mut answer.error) {
            error.message = message.to_string();
            error.hint = Some(HINT.to_owned());
        }
    }
}

//! Writes records about the page to the audit log, in processes of their own: the process of the page does not read the
//! key of the log.

use std::sync::Arc;
use std::time::Instant;

use lockhouse_audit::RecordThrottle;
use lockhouse_page::{Action, ActionError, PageLogin, PageRecord};
use tokio::sync::mpsc;

use super::action_process::ActionProcesses;

/// Writes the records of one page.
#[derive(Clone)]
pub(super) struct PageRecords(Arc<ActionProcesses>);

impl PageRecords {
    pub(super) fn new(processes: Arc<ActionProcesses>) -> Self {
        Self(processes)
    }

    /// Writes a record.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(super) async fn write(&self, event: PageRecord) -> Result<(), ActionError> {
        let process = i32::try_from(std::process::id()).unwrap_or_default();
        self.0.run(&Action::Record { event, process }).await.map(drop)
    }

    /// Writes a record, and logs the error if that fails.
    pub(super) async fn write_or_log(&self, event: PageRecord) {
        if let Err(error) = self.write(event).await {
            tracing::error!("the audit log does not record what happens on the page: {error}");
        }
    }

    /// Records the start of the page, and then each login. Of refused ones, at most 20 a minute have a record.
    pub(super) async fn follow(&self, mut logins: mpsc::Receiver<Option<String>>) {
        self.write_or_log(PageRecord::Started {}).await;
        let mut refused = RecordThrottle::default();
        while let Some(viewer) = logins.recv().await {
            let left_out = match &viewer {
                Some(_) => Some(0),
                None => refused.admit("page", Instant::now()),
            };
            if let Some(left_out) = left_out {
                self.write_or_log(PageRecord::Login(PageLogin { viewer, left_out })).await;
            }
        }
        std::future::pending().await
    }
}

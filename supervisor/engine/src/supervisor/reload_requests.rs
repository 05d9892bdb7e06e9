//! Requests of operators to reload the configuration. The control socket receives them; the code that owns the paths of
//! the configuration files carries them out.

use lockhouse_audit::LocalUser;
use lockhouse_messages::ReloadReport;
use tokio::sync::{mpsc, oneshot};

use super::Supervisor;

/// Maximum number of requests that wait for the reload of an earlier request. Further requests are refused.
const WAITING_MAX: usize = 16;

/// A request to reload the configuration. The receiver sends its report through the channel `done`.
#[derive(Debug)]
pub struct ReloadRequest {
    /// The operator, if the kernel reports the user.
    pub by: Option<LocalUser>,
    pub done: oneshot::Sender<ReloadReport>,
}

/// Why a request to reload the configuration was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReloadUnavailable {
    #[error("this process does not reload its configuration, because it only runs one program")]
    NotServing,
    #[error("{WAITING_MAX} requests to reload wait already; send it again later")]
    Busy,
    #[error("this process is being stopped")]
    Closing,
}

impl Supervisor {
    /// Begins to accept requests of operators to reload the configuration. The caller must carry out each request that
    /// the returned channel yields. Requests are refused as long as this function was not called.
    pub fn accept_reload_requests(&self) -> mpsc::Receiver<ReloadRequest> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        *self.reload_requests.lock() = Some(sender);
        receiver
    }

    /// Requests a reload of the configuration for the operator `by`, and waits for its report.
    ///
    /// # Errors
    /// [`ReloadUnavailable`] if nothing in this process reloads the configuration.
    pub async fn request_reload(&self, by: Option<LocalUser>) -> Result<ReloadReport, ReloadUnavailable> {
        let requests = self.reload_requests.lock().clone().ok_or(ReloadUnavailable::NotServing)?;
        let (done, report) = oneshot::channel();
        requests.try_send(ReloadRequest { by, done }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ReloadUnavailable::Busy,
            mpsc::error::TrySendError::Closed(_) => ReloadUnavailable::Closing,
        })?;
        report.await.map_err(|_| ReloadUnavailable::Closing)
    }
}

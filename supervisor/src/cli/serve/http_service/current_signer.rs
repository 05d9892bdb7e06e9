//! The signer that is in use. Another one takes its place when it is lost, and when certificate and key are read again.

use std::convert::Infallible;
use std::os::fd::AsFd;
use std::sync::Arc;

use lockhouse_engine::supervisor::Supervisor;
use lockhouse_front::http::{FrontUpdate, TlsSettings};
use lockhouse_link::SetupSender;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::service_process::ProcessError;
use super::signer_process::{SignerError, SignerProcess};
use super::{RESTART_PAUSE, RESTART_PAUSE_MAX};

/// Where the current front of some sockets gets its certificates; empty while there is none. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct FrontChannel(Arc<Mutex<Option<Arc<SetupSender>>>>);

impl FrontChannel {
    pub(super) async fn set(&self, channel: Option<Arc<SetupSender>>) {
        *self.0.lock().await = channel;
    }
}

/// The current signer; none without TLS.
pub(super) struct CurrentSigner {
    tls: Option<TlsSettings>,
    /// As whom it runs, if root starts it.
    account: Option<u32>,
    process: Mutex<Option<SignerProcess>>,
}

impl CurrentSigner {
    /// Starts a signer, with TLS.
    pub(super) async fn start(tls: Option<TlsSettings>, account: Option<u32>) -> Result<Self, SignerError> {
        let process = match &tls {
            Some(tls) => Some(SignerProcess::start(tls, account).await?),
            None => None,
        };
        Ok(Self { tls, account, process: Mutex::new(process) })
    }

    /// Sends the current certificate over this channel of a front, with a connection to the signer, if that is not the process
    /// `known`. Returns the process of the signer; `None` without TLS.
    pub(super) async fn send_certificate(
        &self,
        channel: &SetupSender,
        known: Option<u32>,
    ) -> std::io::Result<Option<u32>> {
        match &*self.process.lock().await {
            Some(signer) if known != Some(signer.pid()) => {
                send_certificate(channel, signer).await?;
                Ok(Some(signer.pid()))
            }
            _ => Ok(known),
        }
    }

    /// Starts a signer with the files as they are now, for new connections to these fronts. The current one ends when no
    /// handshake needs it any more. Returns false without TLS.
    pub(super) async fn replace(&self, fronts: &[FrontChannel]) -> Result<bool, SignerError> {
        let Some(tls) = &self.tls else { return Ok(false) };
        let started = SignerProcess::start(tls, self.account).await?;
        let mut signer = self.process.lock().await;
        // A front that is being started gets it when it is the current one.
        for front in fronts {
            let channel = front.0.lock().await.clone();
            if let Some(channel) = channel {
                send_certificate(&channel, &started).await.map_err(ProcessError::from)?;
            }
        }
        *signer = Some(started);
        Ok(true)
    }

    /// Starts another signer whenever the current one has ended.
    pub(super) async fn replace_lost(&self, supervisor: &Supervisor, fronts: &[FrontChannel]) -> Infallible {
        let mut pause = RESTART_PAUSE;
        self.report(supervisor, None).await;
        loop {
            let current = self.process.lock().await.as_ref().map(|signer| (signer.pid(), signer.ended()));
            let Some((pid, ended)) = current else { return std::future::pending().await };
            ended.await;
            let is_current = self.process.lock().await.as_ref().is_some_and(SignerProcess::has_ended);
            if !is_current {
                pause = RESTART_PAUSE;
                self.report(supervisor, Some(pid)).await;
                continue;
            }
            tracing::error!("the signer of TLS was lost; another one starts");
            if let Err(error) = self.replace(fronts).await {
                tracing::error!("no signer of TLS can be started: {error}; trying again");
                sleep(pause).await;
                pause = (pause * 2).min(RESTART_PAUSE_MAX);
            }
        }
    }

    /// Names the current process, in place of one that has ended, in reports about this service.
    async fn report(&self, supervisor: &Supervisor, ended: Option<u32>) {
        if let Some(pid) = ended {
            supervisor.remove_http_process(pid);
        }
        if let Some(signer) = &*self.process.lock().await {
            supervisor.add_http_process(signer.describe());
        }
    }
}

async fn send_certificate(channel: &SetupSender, signer: &SignerProcess) -> std::io::Result<()> {
    let certificate = FrontUpdate::Certificate(signer.certificate().clone());
    channel.send(&certificate, &[signer.connect()?.as_fd()]).await
}

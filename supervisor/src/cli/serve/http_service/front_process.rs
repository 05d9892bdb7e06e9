//! The process of the front, as the engine's process sees it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use lockhouse_base::process_roles::HTTP_FRONT;
use lockhouse_engine::front_socket::serve_http_front;
use lockhouse_engine::supervisor::{HttpProcess, Supervisor};
use lockhouse_engine::{FrontBudget, UnixAcceptor};
use lockhouse_front::http::{FrontSetup, HttpSettings, HttpSockets, SocketKind};
use lockhouse_link::{ConnectionPasser, SetupSender, greetings};
use lockhouse_messages::Greeting;
use lockhouse_pool::verify_service;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use tokio::time::timeout;

use super::front_child::{FrontChild, FrontStarter};
use super::process_name::ServiceProcess;
use super::service_process::ProcessError;
use crate::cli::http_front;

const FRONT: ServiceProcess = ServiceProcess::Front;
/// Maximum time from the start of the process until it is sealed.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time from the end of the engine until the front has sent its last responses and ended.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Threads of the front: the event loop, and one that parses large bodies.
const THREADS: usize = 2;

/// The process of the front, and the engine's ends of the connections to it.
pub(super) struct FrontProcess {
    child: FrontChild,
    /// The process of the signer whose certificate it has. `None` without TLS.
    pub(super) signer: Option<u32>,
    link: Stream,
    channel: Arc<SetupSender>,
    acceptor: UnixAcceptor,
}

impl FrontProcess {
    /// Starts the process and sends it its settings and sockets. With TLS, a certificate must follow over its channel.
    pub(super) async fn start(
        settings: &HttpSettings,
        sockets: &HttpSockets,
        starter: &FrontStarter,
    ) -> Result<Self, ProcessError> {
        let (own, passed) = SetupSender::pair()?;
        let child = starter.start(passed).await?;
        let (link, front_link) = link()?;
        let (mut accepted, mut ends) = (Vec::new(), Vec::new());
        for socket in &sockets.clients {
            if let SocketKind::AcceptedHere(listener) = &socket.kind {
                let (passer, end) = ConnectionPasser::pair()?;
                accepted.push((listener.clone(), passer));
                ends.push(end);
            }
        }
        let acceptor = UnixAcceptor::new(accepted, sockets.connections_max);
        let mut started = Self { child, signer: None, link, channel: Arc::new(own), acceptor };
        let descriptors = FrontSetup::descriptors(sockets, &front_link, &ends);
        match started.channel.send(&FrontSetup::new(settings, sockets), &descriptors).await {
            Ok(()) => Ok(started),
            Err(error) => Err(started.fault().await.unwrap_or(error.into())),
        }
    }

    /// Returns the process, for reports.
    fn describe(&self) -> HttpProcess {
        HttpProcess { pid: self.child.pid(), role: HTTP_FRONT }
    }

    /// Returns where the front gets its certificates.
    pub(super) fn channel(&self) -> Arc<SetupSender> {
        self.channel.clone()
    }

    /// Waits until the process is sealed, and verifies the seal in `/proc`.
    pub(super) async fn verified(mut self) -> Result<Self, ProcessError> {
        let greeting = timeout(START_TIMEOUT, greetings::read::<Greeting>(&mut &self.link)).await;
        if !matches!(greeting, Ok(Ok(Some(_)))) {
            let silent = ProcessError::Silent { process: FRONT };
            return Err(self.fault().await.unwrap_or(silent));
        }
        verify_service(FRONT.command(), self.child.pid(), THREADS, self.child.parent())?;
        Ok(self)
    }

    /// Returns why the process has ended, if it has.
    async fn fault(&mut self) -> Option<ProcessError> {
        let status = timeout(END_TIMEOUT, self.child.wait()).await.ok()?.ok()?;
        Some(ProcessError::Ended { process: FRONT, status })
    }

    /// Serves the front until it has ended. A front that does not keep to the protocol is killed.
    ///
    /// # Errors
    /// The process failed.
    pub(super) async fn serve(
        self,
        supervisor: Arc<Supervisor>,
        budget: FrontBudget,
    ) -> Result<(), ProcessError> {
        let described = self.describe();
        supervisor.add_http_process(described);
        let served = self.serve_process(&supervisor, budget).await;
        supervisor.remove_http_process(described.pid);
        served
    }

    async fn serve_process(
        self,
        supervisor: &Arc<Supervisor>,
        budget: FrontBudget,
    ) -> Result<(), ProcessError> {
        let Self { mut child, link, channel: _channel, acceptor, .. } = self;
        if let Err(error) = serve_http_front(supervisor, &link, acceptor, budget).await {
            tracing::warn!("the connection to the front ended: {error}");
        }
        drop(link);
        if !supervisor.lifecycle().closing().is_cancelled() {
            // Without the engine it has nothing to do, and an attacker may hold it. One that has retired has ended.
            child.kill()?;
        }
        match timeout(END_TIMEOUT, child.wait()).await {
            Ok(status) if status.as_ref().is_ok_and(|status| status.success()) => Ok(()),
            Ok(status) => Err(ProcessError::Lost { process: FRONT, status: status? }),
            Err(_) => Err(ProcessError::Silent { process: FRONT }),
        }
    }
}

/// Creates the connection between engine and front. Returns the engine's end, and the descriptor for the front.
fn link() -> std::io::Result<(Stream, OwnedFd)> {
    let (own, passed) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
    Ok((http_front::local_stream(own)?, passed))
}

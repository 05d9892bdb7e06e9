//! The front of `lockhouse serve` in a process of its own, if the environment variable `LOCKHOUSE_FRONT` is `process`. That
//! process speaks MCP with AI clients, over standard input and output or over HTTP. The engine stays in this process, with
//! the secrets, the policy and the audit log. It also opens the Unix domain sockets and accepts their connections, so that the
//! kernel tells it, and not the front, who is at their other ends.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use lockhouse_access::Authenticator;
use lockhouse_config::Files;
use lockhouse_engine::UnixAcceptor;
use lockhouse_engine::front_socket::serve_child;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_front::http::{
    HttpSettings, ListenAddress, UnixSocketFiles, UnixSockets, close_sockets_on_exec, socket_variable,
};
use lockhouse_link::{ConnectionPasser, EngineClient, PassedConnections, greetings};
use lockhouse_messages::Greeting;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Arguments, Front, ServeResult, open_front, report_start_error, serve_front};
use crate::cli::{UNAVAILABLE, load, print_error};

/// The environment variable that moves the front into a process of its own, and the value that does.
const VARIABLE: &str = "LOCKHOUSE_FRONT";
const PROCESS: &str = "process";
/// The environment variable that tells the front's process the descriptor of its connection to the engine.
const LINK_VARIABLE: &str = "LOCKHOUSE_FRONT_LINK";
/// The environment variable that tells the front's process the descriptors from which it takes the connections of its Unix
/// domain sockets, separated by commas: one for each of these sockets, in the order of their addresses.
const CONNECTIONS_VARIABLE: &str = "LOCKHOUSE_FRONT_CONNECTIONS";
/// Maximum time from the end of the engine until the front's process has sent its last responses and ended.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The process of the front, and the engine's end of the connection to it.
pub(super) struct FrontProcess {
    child: Child,
    stream: Stream,
    acceptor: UnixAcceptor,
    _socket_files: Option<UnixSocketFiles>,
}

/// What the front's process inherits from the engine's process.
pub(super) struct Inherited {
    link: Stream,
    /// The connections of each Unix domain socket.
    connections: Vec<PassedConnections>,
}

/// Whether the front gets a process of its own.
pub(super) fn is_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == PROCESS)
}

impl FrontProcess {
    /// Starts the front's process, and waits until it can serve AI clients: until its listeners are open. Nothing else may
    /// be started meanwhile, since it would inherit the connection. `http` has the settings of a front for HTTP.
    ///
    /// # Errors
    /// The exit status. This process, or that of the front, has printed why it does not start.
    pub(super) async fn start(http: Option<&HttpSettings>) -> Result<Self, ExitCode> {
        let sockets = match http {
            Some(http) => Some(UnixSockets::open(http).await.map_err(|error| report_start_error(&error))?),
            None => None,
        };
        let mut started = Self::spawn(sockets).map_err(|error| print_error(&error, UNAVAILABLE))?;
        match greetings::read::<Greeting>(&mut &started.stream).await {
            Ok(Some(_)) => Ok(started),
            Ok(None) | Err(_) => {
                let status = started.child.wait().await.ok().and_then(|status| status.code());
                let status = status.and_then(|status| u8::try_from(status).ok());
                Err(ExitCode::from(status.unwrap_or(UNAVAILABLE)))
            }
        }
    }

    fn spawn(sockets: Option<UnixSockets>) -> std::io::Result<Self> {
        let (own, passed) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
        let (listeners, connections_max, files) = match sockets {
            Some(UnixSockets { listeners, connections_max, files }) => {
                (listeners, connections_max, Some(files))
            }
            None => (Vec::new(), 0, None),
        };
        let pairs = listeners.iter().map(|_| ConnectionPasser::pair());
        let (passers, ends): (Vec<_>, Vec<_>) =
            pairs.collect::<std::io::Result<Vec<_>>>()?.into_iter().unzip();
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).env_remove(VARIABLE).kill_on_drop(true);
        command.env(LINK_VARIABLE, pass_on([&passed])?).env(CONNECTIONS_VARIABLE, pass_on(&ends)?);
        command.envs(socket_variable());
        let child = command.spawn()?;
        close_sockets_on_exec()?;
        let acceptor = UnixAcceptor::new(listeners.into_iter().zip(passers).collect(), connections_max);
        Ok(Self { child, stream: local_stream(own)?, acceptor, _socket_files: files })
    }

    /// Serves the front until its process has ended.
    ///
    /// # Errors
    /// The process failed. It has printed why.
    pub(super) async fn serve(
        self,
        supervisor: &Arc<Supervisor>,
        authenticator: Option<Arc<Authenticator>>,
    ) -> ServeResult<()> {
        let Self { mut child, stream, acceptor, _socket_files } = self;
        if let Err(error) = serve_child(supervisor, &stream, authenticator, acceptor).await {
            tracing::warn!("the connection to the front ended: {error}");
        }
        drop(stream);
        match timeout(END_TIMEOUT, child.wait()).await {
            Ok(status) => check(status?),
            Err(_) => Err("the process of the front did not end, and was killed".into()),
        }
    }
}

/// Lets the next process that is started inherit these descriptors. Returns their numbers, separated by commas.
fn pass_on<'s>(sockets: impl IntoIterator<Item = &'s OwnedFd>) -> std::io::Result<String> {
    let mut numbers = Vec::new();
    for socket in sockets {
        fcntl(socket, FcntlArg::F_SETFD(FdFlag::empty()))?;
        numbers.push(socket.as_raw_fd().to_string());
    }
    Ok(numbers.join(","))
}

fn check(status: ExitStatus) -> ServeResult<()> {
    if status.success() { Ok(()) } else { Err(format!("the process of the front ended: {status}").into()) }
}

fn local_stream(socket: OwnedFd) -> std::io::Result<Stream> {
    // The runtime accepts only such sockets.
    fcntl(&socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(interprocess::os::unix::uds_local_socket::tokio::Stream::try_from(socket)?.into())
}

/// Returns the connections to the engine, if this is the front's process.
pub(super) fn inherited() -> Option<std::io::Result<Inherited>> {
    let link: RawFd = std::env::var(LINK_VARIABLE).ok()?.parse().ok()?;
    let connections = std::env::var(CONNECTIONS_VARIABLE).unwrap_or_default();
    let numbers: Vec<RawFd> = connections.split(',').filter_map(|number| number.parse().ok()).collect();
    let take_all = || {
        let link = local_stream(take(link)?)?;
        let connections = numbers.into_iter().map(|number| PassedConnections::new(take(number)?));
        Ok(Inherited { link, connections: connections.collect::<std::io::Result<_>>()? })
    };
    Some(take_all())
}

#[allow(unsafe_code, reason = "A file descriptor that the environment names")]
fn take(number: RawFd) -> std::io::Result<OwnedFd> {
    // SAFETY: The process of the engine passes the descriptor to this process alone, and it is taken once.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    Ok(socket)
}

/// Runs the front's process: opens the listeners, connects to the engine, and serves AI clients until they have disconnected
/// or the engine ends.
pub(super) async fn run(
    inherited: std::io::Result<Inherited>,
    files: &Files,
    arguments: Arguments,
) -> ExitCode {
    ignore_stop_signals();
    let Inherited { link, connections } = match inherited {
        Ok(inherited) => inherited,
        Err(error) => return print_error(&error, UNAVAILABLE),
    };
    // Only the engine needs the rest.
    let settings = match load(files) {
        Ok(loaded) => loaded.settings,
        Err(status) => return status,
    };
    let front = match open_front(&settings, &arguments, Some(connections)).await {
        Ok(front) => front,
        Err(status) => return status,
    };
    let metrics = settings.metrics.clone();
    drop(settings);
    match serve_over(link, front, &metrics).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(error.as_ref(), UNAVAILABLE),
    }
}

async fn serve_over(link: Stream, front: Front, metrics: &[ListenAddress]) -> ServeResult<()> {
    let closing = CancellationToken::new();
    // The engine ends without a greeting if it cannot start, and has printed why.
    let Ok(engine) = EngineClient::connect_to_parent(link, closing.clone()).await else { return Ok(()) };
    serve_front(&engine, front, metrics, &closing).await
}

/// The engine's process gets the same signals, and ends this one.
fn ignore_stop_signals() {
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        if let Ok(mut signal) = signal(kind) {
            tokio::spawn(async move { while signal.recv().await.is_some() {} });
        }
    }
}

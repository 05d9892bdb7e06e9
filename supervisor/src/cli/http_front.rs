//! `lockhouse http-front`: the process that speaks TLS, HTTP and MCP with AI clients. The engine's process starts it, and sends
//! it its settings and sockets over its standard input. It is sealed before it reads the first byte of a client.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use lockhouse_base::telemetry::log;
use lockhouse_front::http::{HttpLimits, HttpServer, warm_up};
use lockhouse_link::{EngineClient, SetupReceiver};
use lockhouse_sandbox::{MappedMemory, SandboxError, ServiceKind, ServiceLimits, ServiceSandbox};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tokio_util::sync::CancellationToken;

use super::service_start::{self, take_standard_input};
use super::{UNAVAILABLE, limit_freed_memory, print_error};

/// The name of the command.
pub(super) const COMMAND: &str = "http-front";
/// The option with the user as whom a process of the HTTP service runs.
pub(super) const ACCOUNT_OPTION: &str = "--account-id";

/// Memory in bytes that the front may use besides that for request bodies and connections: most of it for answers in transit.
/// Bound: AI clients.
const MEMORY_BYTES: u64 = 1024 * 1024 * 1024;
/// Memory in bytes for one connection: its unread data, its buffers and the state of TLS.
const CONNECTION_BYTES: u64 = 256 * 1024;
/// Descriptors besides those of connections.
const DESCRIPTORS: u64 = 256;
/// Interval at which the front returns freed memory to the kernel.
const TRIM_INTERVAL: Duration = Duration::from_secs(10);
/// The thread that parses large bodies never ends: a sealed process cannot start another one.
const THREAD_LIFETIME: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The user as whom this process runs
    #[arg(long)]
    account_id: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
enum FrontError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    System(#[from] io::Error),
    #[error("the crypto library: {0}")]
    Crypto(String),
}

/// Runs the front until the engine ends.
pub(super) fn http_front(arguments: &Arguments) -> ExitCode {
    limit_freed_memory();
    use_one_heap();
    let prepared = MappedMemory::of_this_process().and_then(|mapped| {
        let account = arguments.account_id;
        service_start::prepare(ServiceKind::Front, "lockhouse-front", account)
            .map(|sandbox| (mapped, sandbox))
    });
    let (mapped, sandbox) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return print_error(&error, UNAVAILABLE),
    };
    log::install(log::Format::Json, "lockhouse=info,rmcp=off,warn");
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().max_blocking_threads(1).thread_keep_alive(THREAD_LIFETIME);
    let served = runtime
        .build()
        .map_err(FrontError::from)
        .and_then(|runtime| runtime.block_on(serve(sandbox, mapped)).map(|never| match never {}));
    served.unwrap_or_else(|error| print_error(&error, UNAVAILABLE))
}

/// Makes all threads allocate from one heap. By default glibc gives the thread that parses large bodies a heap of its own, and opens a
/// file in `/proc` before it first shrinks such a heap. The seal forbids that: a message with more than 128 KiB would end the process.
#[allow(unsafe_code, reason = "mallopt is an unsafe call of the allocator")]
fn use_one_heap() {
    // SAFETY: sets an integer parameter while this process has a single thread.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Returns freed memory to the kernel at intervals. The allocator itself returns only the end of its heap.
#[allow(unsafe_code, reason = "malloc_trim is an unsafe call of the allocator")]
async fn return_freed_memory() {
    loop {
        tokio::time::sleep(TRIM_INTERVAL).await;
        // SAFETY: it changes no block that is in use.
        unsafe { libc::malloc_trim(0) };
    }
}

async fn serve(sandbox: ServiceSandbox, mapped: MappedMemory) -> Result<Infallible, FrontError> {
    let (server, link) = HttpServer::inherit(SetupReceiver::new(take_standard_input()?)?).await?;
    let link = local_stream(link)?;
    warm_up().map_err(|error| FrontError::Crypto(error.to_string()))?;
    sandbox.restrict_files()?;
    // Landlock is a matter of each thread, so this one starts after it. The rest holds for all threads.
    let _ = tokio::task::spawn_blocking(|| ()).await;
    let _sandboxed = sandbox.seal(&limits(server.limits()), mapped)?;
    let closing = CancellationToken::new();
    // The process lasts as long as the link.
    let link: &Stream = Box::leak(Box::new(link));
    if let Ok(engine) = EngineClient::connect_to_parent(link, link, closing.clone()).await {
        tokio::spawn(return_freed_memory());
        server.serve(engine, closing).await;
    }
    // The engine has ended. So does this process, without destructors that need more system calls.
    std::process::exit(0)
}

/// Returns what the front may use with these limits of the HTTP server.
fn limits(http: HttpLimits) -> ServiceLimits {
    let (connections, bodies) = (http.connections as u64, http.bodies_bytes as u64);
    ServiceLimits {
        memory_bytes: MEMORY_BYTES + 2 * bodies + connections * CONNECTION_BYTES,
        descriptors: DESCRIPTORS + connections,
    }
}

/// Makes a stream of a connected Unix domain socket.
pub(super) fn local_stream(socket: OwnedFd) -> io::Result<Stream> {
    // The runtime accepts only such sockets.
    fcntl(&socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(interprocess::os::unix::uds_local_socket::tokio::Stream::try_from(socket)?.into())
}

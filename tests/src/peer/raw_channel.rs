//! Access to the worker's socket without the protocol checks of [`lockhouse_worker::channel::Channel`].

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use lockhouse_protocol::{CallId, FromWorker, Reply, ServerName, ToolName, WorkerRequest, frame};
use lockhouse_worker::tool_host::ToolHost;
use nix::errno::Errno;
use nix::sys::signal::{Signal, raise};
use nix::sys::socket::{Shutdown, shutdown};

/// The hostile worker's channel to the supervisor, for reading and writing.
pub(crate) struct RawChannel {
    host: &'static dyn ToolHost,
    socket: BorrowedFd<'static>,
}

impl RawChannel {
    pub(crate) fn new(host: &'static dyn ToolHost) -> Self {
        Self { host, socket: host.socket() }
    }

    /// Writes all of these bytes, valid or not. If the supervisor has closed the channel, this worker exits.
    pub(crate) fn write(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match nix::unistd::write(self.socket, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::EINTR) => {}
                Err(_) => std::process::exit(0),
            }
        }
    }

    /// Sends a message to the supervisor, whether or not the protocol permits it in the current phase.
    pub(crate) fn send(&self, message: &FromWorker) {
        self.write(&encoded(message));
    }

    /// Sends a frame whose body consists of `parts`, with the correct length.
    pub(crate) fn body(&self, parts: &[&[u8]]) {
        let body = parts.concat();
        self.write(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.write(&body);
    }

    /// Sends a valid request to the supervisor and returns the supervisor's reply.
    pub(crate) fn ask(&self, request: WorkerRequest) -> Reply {
        loop {
            if let Some(reply) = self.host.ask(request.clone(), &mut || false) {
                return reply;
            }
        }
    }

    /// Shuts down the sending side of the socket. Returns an error if the sandbox does not permit that.
    pub(crate) fn half_close(&self) -> nix::Result<()> {
        shutdown(self.socket.as_raw_fd(), Shutdown::Write)
    }

    pub(crate) fn close(&self) {
        let _ = nix::unistd::close(self.socket.as_raw_fd());
    }
}

/// Waits until the supervisor kills this worker. If the supervisor does not kill it, this function never returns.
pub(crate) fn wait() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Ends this process by the signal. The signal is sent twice, because Rust's stack-overflow handler only restores the
/// default action for SIGSEGV and SIGBUS when it is called first.
pub(crate) fn end_by(signal: Signal) {
    let _ = raise(signal);
    let _ = raise(signal);
}

pub(crate) fn encoded(message: &FromWorker) -> Vec<u8> {
    frame::encode(message, u32::MAX).unwrap_or_default()
}

pub(crate) fn request(call: u32, request: WorkerRequest) -> FromWorker {
    FromWorker::Request { call: CallId(call), request }
}

/// Creates a request for a call of a tool of the fixture server.
pub(crate) fn call(tool: &str, arguments: impl Into<Vec<u8>>) -> WorkerRequest {
    match (ServerName::new("fixture"), ToolName::new(tool)) {
        (Ok(server), Ok(tool)) => WorkerRequest::Call {
            server,
            tool,
            arguments: arguments.into(),
            decoded: Vec::new(),
            timeout_ms: None,
            line: Some(u32::MAX),
        },
        _ => WorkerRequest::ListServers,
    }
}

pub(crate) fn list_tools() -> WorkerRequest {
    ServerName::new("fixture")
        .map_or(WorkerRequest::ListServers, |server| WorkerRequest::ListTools { server })
}

/// Encodes a number as the worker protocol does: four bytes, little-endian.
pub(crate) fn number(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

pub(crate) fn length(length: u64) -> [u8; 8] {
    length.to_le_bytes()
}

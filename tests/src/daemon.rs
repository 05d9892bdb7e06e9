//! A running `lockhouse serve` with the HTTP transport, for tests.

mod http_client;
mod reply;

use parking_lot::Mutex;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::task::JoinHandle;

pub use http_client::{ALL_VERSIONS, HttpClient, LATEST_VERSION};
pub use reply::{Events, Reply};

use crate::{Ended, Lockhouse, front_of};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);
const LISTENING: &str = "listening at ";

/// A running `lockhouse serve` process that serves MCP over HTTP. Dropping this kills the process.
pub struct Daemon {
    child: Child,
    stderr: JoinHandle<String>,
    stderr_bytes: Arc<Mutex<Vec<u8>>>,
    /// The first address on which the server listens, from its log: `http://127.0.0.1:PORT/mcp`, or `unix:/PATH`.
    listening_at: String,
}

impl Lockhouse {
    /// Starts `lockhouse serve` on a free port of 127.0.0.1.
    pub async fn daemon(&self) -> Daemon {
        Daemon::open(self.command(&["serve", "--listen", "127.0.0.1:0"])).await
    }
}

impl Daemon {
    /// Starts a command that runs `lockhouse serve --listen`, and waits until the server listens.
    ///
    /// # Panics
    /// If the process exits or does not listen in time.
    pub async fn open(command: Command) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let mut errors = child.stderr.take().expect("stderr");
        let stderr_bytes = Arc::new(Mutex::new(Vec::new()));
        let received = stderr_bytes.clone();
        let stderr = tokio::spawn(async move {
            let mut part = vec![0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut part).await {
                received.lock().extend_from_slice(&part[..count]);
            }
            text_of(&received)
        });
        let mut daemon = Self { child, stderr, stderr_bytes, listening_at: String::new() };
        let address = crate::wait_until("it listens", async || {
            assert!(daemon.child.try_wait().expect("a status").is_none(), "it ended: {}", daemon.log());
            let log = daemon.log();
            let (_, address) = log.split_once(LISTENING)?;
            address.split_once('\n').map(|(address, _)| address.trim().to_owned())
        });
        daemon.listening_at = address.await;
        daemon
    }

    /// Returns the first address on which the server listens, as its log shows it.
    #[must_use]
    pub fn listening_at(&self) -> &str {
        &self.listening_at
    }

    /// Returns `HOST:PORT` of the first address on which the server listens.
    ///
    /// # Panics
    /// If the server listens on a Unix domain socket.
    #[must_use]
    pub fn address(&self) -> String {
        let (_, rest) = self.listening_at.split_once("://").expect("a TCP address");
        rest.split('/').next().unwrap_or_default().to_owned()
    }

    /// Returns the URL of a path on this server.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        match self.listening_at.strip_prefix("unix:") {
            Some(_) => format!("http://localhost{path}"),
            None => format!("{}{path}", self.listening_at.trim_end_matches("/mcp")),
        }
    }

    /// Creates an AI client of the newest MCP protocol version, with a bearer token or without one.
    #[must_use]
    pub fn http_client(&self, token: Option<&str>) -> HttpClient {
        HttpClient::new(self, token)
    }

    /// Creates an AI client that has initialized an MCP session of the earlier protocol version `version`.
    pub async fn session(&self, token: Option<&str>, version: &str) -> HttpClient {
        HttpClient::initialized(self, token, version).await
    }

    /// Opens a TCP connection to the server without sending anything.
    ///
    /// # Panics
    /// If the connection fails.
    pub async fn connection(&self) -> TcpStream {
        TcpStream::connect(self.address()).await.expect("a connection")
    }

    /// Sends bytes on a new connection to the server, and returns what the server sends until it closes the
    /// connection.
    ///
    /// # Panics
    /// If the server does not close the connection in time.
    pub async fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut connection = self.connection().await;
        // Writing fails if the server closes the connection before it has read all bytes.
        let _ = connection.write_all(bytes.as_ref()).await;
        read_to_end(&mut connection).await
    }

    /// Returns the process id of the server.
    ///
    /// # Panics
    /// If the server has exited.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("a process that has not ended")
    }

    /// Returns the process ID of the front, which speaks HTTP.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn front_pid(&self) -> u32 {
        front_of(self.pid()).expect("the front's process").pid
    }

    /// Returns the server's log: its standard error, as far as the test has read it.
    #[must_use]
    pub fn log(&self) -> String {
        text_of(&self.stderr_bytes)
    }

    /// Waits until the server's log contains `words`, and returns the log so far.
    ///
    /// # Panics
    /// If the log does not contain `words` in time.
    pub async fn wait_for_log(&self, words: &str) -> String {
        crate::wait_until(&format!("the log says {words:?}"), async || {
            Some(self.log()).filter(|log| log.contains(words))
        })
        .await
    }

    /// Makes the server reload its configuration (SIGHUP) and waits for the log line about its success or failure.
    /// Returns the part of the log that follows the signal.
    ///
    /// # Panics
    /// If no such log line appears in time.
    pub async fn reload(&self) -> String {
        let before = self.log().len();
        self.signal(Signal::SIGHUP);
        crate::wait_until("the configuration is loaded", async || {
            let log_text = self.log()[before..].to_owned();
            (log_text.contains("the configuration ") && log_text.ends_with('\n')).then_some(log_text)
        })
        .await
    }

    /// Sends a signal to the server.
    ///
    /// # Panics
    /// If the server has exited.
    pub fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(Pid::from_raw(self.pid() as i32), signal).expect("a signal");
    }

    /// Kills the server and its front with SIGKILL, and waits until both have ended, so that another server may listen at the same
    /// address.
    ///
    /// # Panics
    /// If they do not end in time.
    pub async fn kill(&self) {
        let processes = [self.front_pid(), self.pid()];
        for pid in processes {
            // The server may end when its front has.
            let _ = nix::sys::signal::kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
        crate::wait_until("killed processes end", async || {
            (!processes.into_iter().any(crate::is_alive)).then_some(())
        })
        .await;
    }

    /// Stops the server with SIGTERM, waits for its exit, and returns its exit status and log.
    ///
    /// # Panics
    /// If the server does not exit in time.
    pub async fn terminate(self) -> Ended {
        self.signal(Signal::SIGTERM);
        self.ended().await
    }

    /// Waits until the server exits by itself, and returns its exit status and log.
    ///
    /// # Panics
    /// If the server does not exit in time.
    pub async fn ended(mut self) -> Ended {
        let ending = async {
            let status = self.child.wait().await.expect("a status").code();
            Ended { status, stderr: self.stderr.await.expect("its text") }
        };
        tokio::time::timeout(SHUTDOWN_TIMEOUT, ending).await.expect("the server ends")
    }
}

/// Reads a connection until the other end closes it, and returns the received bytes as text.
///
/// # Panics
/// If the connection is not closed in time.
pub async fn read_to_end(connection: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let reading = connection.read_to_end(&mut bytes);
    // A reset of the connection counts as its end.
    let _ = tokio::time::timeout(RESPONSE_TIMEOUT, reading).await.expect("hung: the connection closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn text_of(stderr_bytes: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&stderr_bytes.lock()).into_owned()
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(RESPONSE_TIMEOUT, future).await.unwrap_or_else(|_| panic!("hung: {what}"))
}

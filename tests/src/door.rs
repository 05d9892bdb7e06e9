//! `lockhouse serve` over HTTP: the process, and where it listens.

mod reply;
mod visitor;

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

pub use reply::{Events, Reply};
pub use visitor::{ALL_VERSIONS, LATEST_VERSION, Visitor};

use crate::{Ended, Lockhouse};

const HANGS_AFTER: Duration = Duration::from_secs(60);
const ENDS_WITHIN: Duration = Duration::from_secs(20);
const LISTENING: &str = "listening at ";

/// A Lockhouse that serves over HTTP. It is killed when this is dropped.
pub struct Door {
    child: Child,
    stderr: JoinHandle<String>,
    said: Arc<Mutex<Vec<u8>>>,
    /// As the log says it: `http://127.0.0.1:PORT/mcp`, or `unix:/PATH`.
    place: String,
}

impl Lockhouse {
    /// Starts `lockhouse serve` at any free port of 127.0.0.1.
    pub async fn door(&self) -> Door {
        Door::open(self.command(&["serve", "--listen", "127.0.0.1:0"])).await
    }
}

impl Door {
    /// Starts the command and waits until it listens.
    ///
    /// # Panics
    /// If it does not.
    pub async fn open(command: Command) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let mut errors = child.stderr.take().expect("stderr");
        let said = Arc::new(Mutex::new(Vec::new()));
        let so_far = said.clone();
        let stderr = tokio::spawn(async move {
            let mut part = vec![0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut part).await {
                so_far.lock().extend_from_slice(&part[..count]);
            }
            text_of(&so_far)
        });
        let mut door = Self { child, stderr, said, place: String::new() };
        let place = crate::wait_until("it listens", async || {
            assert!(door.child.try_wait().expect("a status").is_none(), "it ended: {}", door.said());
            let said = door.said();
            let (_, place) = said.split_once(LISTENING)?;
            place.split_once('\n').map(|(place, _)| place.trim().to_owned())
        });
        door.place = place.await;
        door
    }

    /// The first place where it listens, as the log says it.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// `HOST:PORT` of the first place where it listens.
    ///
    /// # Panics
    /// If that is no TCP address.
    #[must_use]
    pub fn address(&self) -> String {
        let (_, rest) = self.place.split_once("://").expect("a TCP address");
        rest.split('/').next().unwrap_or_default().to_owned()
    }

    /// The URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        match self.place.strip_prefix("unix:") {
            Some(_) => format!("http://localhost{path}"),
            None => format!("{}{path}", self.place.trim_end_matches("/mcp")),
        }
    }

    /// Somebody who comes to it, with a token or without one, and speaks the protocol of today.
    #[must_use]
    pub fn visitor(&self, token: Option<&str>) -> Visitor {
        Visitor::new(self, token)
    }

    /// Somebody who initializes a session of this earlier protocol version.
    pub async fn session(&self, token: Option<&str>, version: &str) -> Visitor {
        Visitor::initialized(self, token, version).await
    }

    /// A connection on which nothing was said yet.
    ///
    /// # Panics
    /// If there is none.
    pub async fn connection(&self) -> TcpStream {
        TcpStream::connect(self.address()).await.expect("a connection")
    }

    /// Sends bytes on a connection of their own: what came back until the server closed it.
    ///
    /// # Panics
    /// If it does not close in time.
    pub async fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut connection = self.connection().await;
        // It may close before it has read everything.
        let _ = connection.write_all(bytes.as_ref()).await;
        read_to_end(&mut connection).await
    }

    /// The process.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("a process that has not ended")
    }

    /// Standard error, as far as it was read.
    #[must_use]
    pub fn said(&self) -> String {
        text_of(&self.said)
    }

    /// What it has said so far, once these words are among it.
    ///
    /// # Panics
    /// If it does not say them in time.
    pub async fn says(&self, words: &str) -> String {
        crate::wait_until(&format!("the log says {words:?}"), async || {
            Some(self.said()).filter(|said| said.contains(words))
        })
        .await
    }

    /// Asks it to load its configuration again, and waits until it says that it did, or that it did not: what it said
    /// since.
    ///
    /// # Panics
    /// If it says neither.
    pub async fn reload(&self) -> String {
        let before = self.said().len();
        self.signal(Signal::SIGHUP);
        crate::wait_until("the configuration is loaded", async || {
            let said = self.said()[before..].to_owned();
            (said.contains("the configuration ") && said.ends_with('\n')).then_some(said)
        })
        .await
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If it has ended.
    pub fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(Pid::from_raw(self.pid() as i32), signal).expect("a signal");
    }

    /// Asks it to end, and waits for its end.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn terminate(self) -> Ended {
        self.signal(Signal::SIGTERM);
        self.ended().await
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn ended(mut self) -> Ended {
        let ending = async {
            let status = self.child.wait().await.expect("a status").code();
            Ended { status, stderr: self.stderr.await.expect("its text") }
        };
        tokio::time::timeout(ENDS_WITHIN, ending).await.expect("the server ends")
    }
}

/// What comes on a connection until its other end closes it.
///
/// # Panics
/// If it does not close in time.
pub async fn read_to_end(connection: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let reading = connection.read_to_end(&mut bytes);
    // A reset is a close as well.
    let _ = tokio::time::timeout(HANGS_AFTER, reading).await.expect("hung: the connection closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn text_of(said: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&said.lock()).into_owned()
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANGS_AFTER, future).await.unwrap_or_else(|_| panic!("hung: {what}"))
}

//! The parent of the attacked service processes, as the engine is: it has secrets, listens, and starts the processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use serde_json::{Value, json};

/// How long an attack may take before its process is killed.
const ATTACK_TIMEOUT: Duration = Duration::from_secs(5);

/// A service process, with what it inherited from this one.
struct Service {
    child: Child,
    channel: BufReader<UnixStream>,
    listener: TcpListener,
}

/// Starts a service process for each line of the standard input, lets it make the attack of that line, and prints how that
/// ended. The first line that it prints has the process ids of this process and of another service.
///
/// # Errors
/// The operating system's.
pub(crate) fn run(arguments: &[String]) -> std::io::Result<()> {
    let secret = std::fs::File::open("/proc/self/status")?;
    fcntl(&secret, FcntlArg::F_DUPFD(super::INHERITED))?;
    let other = Service::start(arguments)?.map_err(std::io::Error::other)?;
    print(&json!({"parent": std::process::id(), "other": other.child.id()}))?;
    for line in std::io::stdin().lines() {
        let end = match Service::start(arguments)? {
            Ok(service) => service.attack(&line?)?,
            Err(fault) => json!({"fault": fault}),
        };
        print(&end)?;
    }
    let Service { mut child, .. } = other;
    child.kill()?;
    child.wait().map(drop)
}

fn print(value: &Value) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{value}")
}

impl Service {
    /// Starts a process and waits until it is sealed. Returns what it wrote to its standard error if it ended before.
    fn start(arguments: &[String]) -> std::io::Result<Result<Self, String>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        fcntl(&listener, FcntlArg::F_SETFD(FdFlag::empty()))?;
        let (own, theirs) = UnixStream::pair()?;
        own.set_read_timeout(Some(ATTACK_TIMEOUT))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("service").arg(listener.as_raw_fd().to_string()).args(arguments);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::piped()).env_clear();
        let mut service = Self { child: command.spawn()?, channel: BufReader::new(own), listener };
        drop(command);
        match service.line()?.as_deref() {
            Some("sealed") => Ok(Ok(service)),
            _ => Ok(Err(service.ended()?.1)),
        }
    }

    /// Sends a request, and returns how it ended. A process that answers an attack is killed then.
    fn attack(mut self, request: &str) -> std::io::Result<Value> {
        let mut client = TcpStream::connect(self.listener.local_addr()?)?;
        client.write_all(b"hello")?;
        client.set_read_timeout(Some(ATTACK_TIMEOUT))?;
        // The process may have ended; then there is no answer.
        let _ = writeln!(self.channel.get_mut(), "{request}");
        let answer = match self.line() {
            Ok(line) => line.map(|value| json!({"value": value})),
            Err(_) => Some(json!({"timeout": true})),
        };
        let mut answered = [0; 5];
        if request.ends_with("accept") && answer.is_some() {
            client.read_exact(&mut answered)?;
        }
        if answer.is_some() {
            self.child.kill()?;
        }
        let (status, log) = self.ended()?;
        let mut end = answer.unwrap_or_else(|| json!({"signal": status.signal(), "status": status.code()}));
        end["log"] = log.into();
        end["client"] = String::from_utf8_lossy(&answered).trim_end_matches('\0').into();
        Ok(end)
    }

    /// Returns the next line of the process that is not empty, or `None` if it has closed its channel.
    fn line(&mut self) -> std::io::Result<Option<String>> {
        let mut line = String::new();
        while line.trim().is_empty() {
            line.clear();
            match self.channel.read_line(&mut line) {
                Ok(0) => return Ok(None),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(None),
                done => done?,
            };
        }
        Ok(Some(line.trim().to_owned()))
    }

    /// Waits for the end of the process. Returns how it ended, and what it wrote to its standard error.
    fn ended(mut self) -> std::io::Result<(std::process::ExitStatus, String)> {
        let status = self.child.wait()?;
        let mut log = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut log)?;
        }
        Ok((status, log))
    }
}

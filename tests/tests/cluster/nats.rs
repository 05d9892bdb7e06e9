//! A NATS server with JetStream on this machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lockhouse_tests::{Lockhouse, free_port, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A running server.
pub(super) struct Nats {
    program: PathBuf,
    process: Child,
    port: u16,
    files: Lockhouse,
}

impl Nats {
    /// Starts a server. `None` if `tests/cluster/prepare.sh` has not installed the program.
    pub(super) async fn start() -> Option<Self> {
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/cluster");
        if !build.join("stamp").exists() {
            println!("left out, since `make prepare-cluster` has not installed NATS");
            return None;
        }
        let (program, port, files) = (build.join("venv/bin/nats-server"), free_port(), Lockhouse::new());
        let process = spawn(&program, port, &files);
        let nats = Self { program, process, port, files };
        nats.listens().await;
        Some(nats)
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    async fn listens(&self) {
        let address = ("127.0.0.1", self.port);
        wait_until("NATS listens", async || tokio::net::TcpStream::connect(address).await.ok().map(drop))
            .await;
    }

    /// Ends the server, or starts it again with what it has stored.
    pub(super) fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub(super) async fn start_again(&mut self) {
        self.process = spawn(&self.program, self.port, &self.files);
        self.listens().await;
    }

    /// Stops the process without ending it, so that its connections stay open and it answers nothing.
    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).expect("a pid");
        kill(Pid::from_raw(pid), signal).expect("it runs");
    }
}

fn spawn(program: &Path, port: u16, files: &Lockhouse) -> Child {
    let log = std::fs::File::create(files.path("nats.log")).expect("a log");
    let mut command = Command::new(program);
    command.args(["--addr", "127.0.0.1", "--port", &port.to_string(), "--jetstream", "--store_dir"]);
    command.arg(files.path("nats")).stdout(Stdio::null()).stderr(log).spawn().expect("it is started")
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.stop();
    }
}

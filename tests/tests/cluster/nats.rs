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
    configuration: Option<PathBuf>,
}

impl Nats {
    /// Starts a server. `None` if `tests/cluster/prepare.sh` has not installed the program.
    pub(super) async fn start() -> Option<Self> {
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/cluster");
        if !build.join("stamp").exists() {
            println!("left out, since `make prepare-cluster` has not installed NATS");
            return None;
        }
        let nats = Self::start_with(build.join("venv/bin/nats-server"), Lockhouse::new(), None);
        nats.listens().await;
        Some(nats)
    }

    /// Starts a server with the configuration that `lockhouse cluster account` has written for these hosts into the folder
    /// `account` of `files`, with a certificate for this machine. `None` if the program is not installed.
    pub(super) async fn start_secured(files: Lockhouse, hosts: &[&str]) -> Option<Self> {
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/cluster");
        if !build.join("stamp").exists() {
            println!("left out, since `make prepare-cluster` has not installed NATS");
            return None;
        }
        let out = files.path("account").display().to_string();
        let made = files.run(&[&["cluster", "account", "--out", &out], hosts].concat());
        assert_eq!(made.status, Some(0), "{made:?}");
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        let certificate = certificate.self_signed(&key).expect("a certificate").pem();
        let (pem, key) = (files.file("nats.pem", certificate), files.file("nats.key", key.serialize_pem()));
        let text = std::fs::read_to_string(files.path("account/nats-server.conf")).expect("a configuration");
        let text = text.replace("/etc/nats/server.pem", &pem.display().to_string());
        let text = text.replace("/etc/nats/server.key", &key.display().to_string());
        let text = text.replace("/var/lib/nats", &files.path("nats").display().to_string());
        let text = text.replace("port: 4222\n", "");
        let configuration = files.file("nats.conf", text);
        let nats = Self::start_with(build.join("venv/bin/nats-server"), files, Some(configuration));
        nats.listens().await;
        Some(nats)
    }

    fn start_with(program: PathBuf, files: Lockhouse, configuration: Option<PathBuf>) -> Self {
        let port = free_port();
        let process = spawn(&program, port, &files, configuration.as_deref());
        Self { program, process, port, files, configuration }
    }

    pub(super) fn url(&self) -> String {
        let scheme = if self.configuration.is_some() { "tls" } else { "nats" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Returns the keys of `[cluster]` with which each host logs in to a server that [`Self::start_secured`] has started. `HOST` stands for
    /// its name.
    pub(super) fn login(&self) -> String {
        let (account, authorities) = (self.path("account"), self.path("nats.pem"));
        format!(
            "nkey = \"${{file:{}/HOST.nkey}}\"\nnats_ca = \"{}\"\n",
            account.display(),
            authorities.display()
        )
    }

    /// Returns the path of a file of the server.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.files.path(name)
    }

    /// Returns what the server has logged.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.path("nats.log")).unwrap_or_default()
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
        self.process = spawn(&self.program, self.port, &self.files, self.configuration.as_deref());
        self.listens().await;
    }

    /// Stops the process without ending it, so that its connections stay open and it answers nothing.
    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).expect("a pid");
        kill(Pid::from_raw(pid), signal).expect("it runs");
    }
}

fn spawn(program: &Path, port: u16, files: &Lockhouse, configuration: Option<&Path>) -> Child {
    let log = std::fs::File::create(files.path("nats.log")).expect("a log");
    let mut command = Command::new(program);
    command.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
    match configuration {
        Some(configuration) => command.arg("--config").arg(configuration),
        None => command.args(["--jetstream", "--store_dir"]).arg(files.path("nats")),
    };
    command.stdout(Stdio::null()).stderr(log).spawn().expect("it is started")
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.stop();
    }
}

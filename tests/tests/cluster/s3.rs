//! An S3 server on this machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lockhouse_tests::{Lockhouse, free_port, wait_until};

pub(super) const ACCESS_KEY: &str = "access-key-of-tests";
pub(super) const SECRET_KEY: &str = "secret-key-of-tests-0123456789";

/// The length of the name of an object: a digest in hexadecimal.
const OBJECT_NAME_CHARS: usize = 64;

/// A running server with an empty bucket `values`.
pub(super) struct S3 {
    kind: Kind,
    process: Child,
    port: u16,
    files: Lockhouse,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Has its objects in files, and ignores conditions of requests.
    Nanio,
    /// Has its objects in memory, and answers as the service of AWS.
    Moto,
}

impl S3 {
    /// Starts nanio. `None` if `tests/cluster/prepare.sh` has not installed it.
    pub(super) async fn start() -> Option<Self> {
        if !nanio().exists() {
            println!("left out, since `make prepare-cluster` has not installed nanio");
            return None;
        }
        Some(Self::start_kind(Kind::Nanio).await)
    }

    /// Starts moto. `None` if this machine does not have it.
    pub(super) async fn start_moto() -> Option<Self> {
        let version =
            Command::new("moto_server").arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !version.is_ok_and(|status| status.success()) {
            println!("left out, since there is no moto_server");
            return None;
        }
        let server = Self::start_kind(Kind::Moto).await;
        let created = reqwest::Client::new().put(format!("{}/values", server.url())).send().await;
        assert!(created.is_ok_and(|response| response.status().is_success()), "a bucket is made");
        Some(server)
    }

    async fn start_kind(kind: Kind) -> Self {
        let (port, files) = (free_port(), Lockhouse::new());
        std::fs::create_dir_all(files.path("s3/values")).expect("a bucket");
        let process = spawn(kind, port, &files);
        let server = Self { kind, process, port, files };
        server.listens().await;
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the contents of all objects. Empty if they are not in files.
    pub(super) fn contents(&self) -> Vec<Vec<u8>> {
        let mut contents = Vec::new();
        let mut folders = vec![self.files.path("s3/values/lockhouse")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name().into_encoded_bytes();
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    // The server writes an object under another name before it renames it.
                    false if name.len() != OBJECT_NAME_CHARS || !name.iter().all(u8::is_ascii_hexdigit) => {}
                    // The hosts may have removed it meanwhile.
                    false => contents.extend(std::fs::read(entry.path())),
                }
            }
        }
        contents
    }

    /// Returns the number of objects.
    pub(super) async fn count(&self) -> usize {
        match self.kind {
            Kind::Nanio => self.contents().len(),
            Kind::Moto => {
                let listed = reqwest::get(format!("{}/values", self.url())).await.expect("a list");
                listed.text().await.expect("a list").matches("<Key>").count()
            }
        }
    }

    /// Waits until there are this many objects.
    pub(super) async fn has(&self, count: usize) {
        wait_until("the values are copied", async || (self.count().await >= count).then_some(())).await;
    }

    pub(super) fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    async fn listens(&self) {
        let address = ("127.0.0.1", self.port);
        wait_until("S3 listens", async || tokio::net::TcpStream::connect(address).await.ok().map(drop)).await;
    }
}

fn nanio() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/cluster/venv/bin/nanio")
}

fn spawn(kind: Kind, port: u16, files: &Lockhouse) -> Child {
    let log = std::fs::File::create(files.path("s3.log")).expect("a log");
    let port = port.to_string();
    let mut command = match kind {
        Kind::Nanio => {
            let mut command = Command::new(nanio());
            command.args(["serve", "--host", "127.0.0.1", "--no-access-log", "--port", &port, "--data-dir"]);
            command.arg(files.path("s3"));
            command.env("NANIO_ACCESS_KEY", ACCESS_KEY).env("NANIO_SECRET_KEY", SECRET_KEY);
            command
        }
        Kind::Moto => {
            let mut command = Command::new("moto_server");
            command.args(["-H", "127.0.0.1", "-p", &port]);
            command
        }
    };
    command.stdout(Stdio::null()).stderr(log).spawn().expect("it is started")
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.stop();
    }
}

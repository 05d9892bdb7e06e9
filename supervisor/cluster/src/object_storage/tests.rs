use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::*;

const CONNECTION_WAIT: Duration = Duration::from_secs(20);

/// An S3 server of `tests/cluster/prepare.sh`.
struct Server {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts the server. `None` if it is not installed.
    fn start() -> Option<Self> {
        let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../build/cluster/venv/bin/nanio");
        if !program.exists() {
            println!("left out, since `make prepare-cluster` has not installed nanio");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("values")).expect("a bucket");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let mut command = Command::new(program);
        command
            .args(["serve", "--host", "127.0.0.1", "--port", &port.to_string(), "--data-dir"])
            .arg(folder.path());
        command.env("NANIO_ACCESS_KEY", "access").env("NANIO_SECRET_KEY", "secret-of-tests");
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it is started");
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| stream.write_all(b"")).is_err() {
            assert!(begun.elapsed() < CONNECTION_WAIT, "the server listens");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(Self { process, port, _folder: folder })
    }

    fn storage(&self, bucket: &str, prefix: &str, secret_key: &str) -> ObjectStorage {
        let place = ValuePlace {
            endpoint: format!("http://127.0.0.1:{}", self.port).parse().expect("an address"),
            bucket: bucket.parse().expect("a name"),
            region: "us-east-1".to_owned(),
            prefix: prefix.parse().expect("a prefix"),
        };
        let credentials =
            StorageCredentials { access_key: "access".to_owned(), secret_key: secret_key.to_owned() };
        ObjectStorage::new(&place, &credentials).expect("a client")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn old_objects_of_the_hosts_are_removed_and_no_others() {
    let Some(server) = Server::start() else { return };
    let storage = server.storage("values", "a/b", "secret-of-tests");
    let other = server.storage("values", "a/bc", "secret-of-tests");
    for name in ["own-1", "own-2", "README"] {
        storage.write(name, b"content".to_vec()).await.expect("written");
    }
    other.write("own-1", b"content".to_vec()).await.expect("written");
    let (now, minute) = (SystemTime::now(), Duration::from_secs(60));
    let is_own = |name: &str| name.starts_with("own-");
    assert_eq!(storage.remove_older(now - minute, is_own).await, Ok(0), "control: they are younger");
    assert_eq!(storage.read("own-1", 7).await, Ok(Some(b"content".to_vec())), "control");
    assert_eq!(storage.remove_older(now + minute, is_own).await, Ok(2));
    assert_eq!(storage.read("own-1", 7).await, Ok(None));
    assert_eq!(storage.read("README", 7).await, Ok(Some(b"content".to_vec())));
    assert_eq!(other.read("own-1", 7).await, Ok(Some(b"content".to_vec())));
}

#[tokio::test]
async fn failures_have_reasons() {
    let Some(server) = Server::start() else { return };
    let storage = server.storage("values", "a", "secret-of-tests");
    storage.write("object", b"content".to_vec()).await.expect("written");
    assert_eq!(storage.read("object", 6).await, Err(ObjectError::TooLarge));
    let foreign = server.storage("values", "a", "another-secret");
    assert_eq!(foreign.read("object", 7).await, Err(ObjectError::Refused));
    assert_eq!(foreign.write("object", Vec::new()).await, Err(ObjectError::Refused));
    let missing = server.storage("no-bucket", "a", "secret-of-tests");
    assert_eq!(missing.write("object", Vec::new()).await, Err(ObjectError::NoBucket));
    drop(server);
    assert_eq!(storage.read("object", 7).await, Err(ObjectError::Unreachable));
}

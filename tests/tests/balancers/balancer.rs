//! HAProxy, nginx and Caddy as the configurations of `packaging/balancers` describe them, in front of two hosts on this machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lockhouse_tests::{Lockhouse, free_port, wait_until};

/// The name under which clients know the service.
pub(crate) const NAME: &str = "lockhouse.example.com";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Haproxy,
    Nginx,
    Caddy,
}

/// How often a balancer is started, each time at another port, because another process may take the port first.
const STARTS_MAX: usize = 5;

/// A running balancer.
pub(crate) struct Balancer {
    process: Child,
    pub(crate) port: u16,
    pub(crate) certificate: reqwest::Certificate,
    /// The file with the certificate.
    pub(crate) pem: PathBuf,
    files: Lockhouse,
}

/// Returns the folder with the programs. `None` if `tests/balancers/prepare.sh` has not unpacked them.
fn programs() -> Option<PathBuf> {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/balancers");
    if build.join("stamp").exists() {
        return Some(build.join("root"));
    }
    println!("left out, since `make prepare-balancers` has not unpacked the balancers");
    None
}

impl Balancer {
    /// Starts a balancer with its configuration, changed by `change`, in front of the hosts at two addresses. `None` if it is not there.
    pub(crate) async fn start(
        kind: Kind,
        hosts: &[String; 2],
        change: impl Fn(String) -> String,
    ) -> Option<Self> {
        let programs = programs()?;
        let mut log = String::new();
        for _ in 0..STARTS_MAX {
            let mut balancer = Self::start_at(free_port(), &programs, kind, hosts, &change);
            let listens = wait_until("the balancer listens or has ended", async || {
                let listens = tokio::net::TcpStream::connect(("127.0.0.1", balancer.port)).await.is_ok();
                let has_ended = balancer.process.try_wait().expect("a status").is_some();
                (listens || has_ended).then_some(!has_ended)
            });
            if listens.await {
                return Some(balancer);
            }
            log = std::fs::read_to_string(balancer.files.path("balancer/log")).unwrap_or_default();
        }
        panic!("{kind:?} does not start: {log}")
    }

    fn start_at(
        port: u16,
        programs: &Path,
        kind: Kind,
        hosts: &[String; 2],
        change: impl Fn(String) -> String,
    ) -> Self {
        let files = Lockhouse::new();
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate =
            rcgen::CertificateParams::new([NAME.to_owned(), "127.0.0.1".to_owned()]).expect("a name");
        let certificate = certificate.self_signed(&key).expect("a certificate").pem();
        let pem = files.file("balancer/lockhouse.pem", format!("{certificate}{}", key.serialize_pem()));
        let key = files.file("balancer/lockhouse.key", key.serialize_pem());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/balancers");
        let name = match kind {
            Kind::Haproxy => "haproxy.cfg",
            Kind::Nginx => "nginx.conf",
            Kind::Caddy => "Caddyfile",
        };
        let text = change(std::fs::read_to_string(root.join(name)).expect("a configuration"));
        let text = text.replace("10.0.0.1:7300", &hosts[0]).replace("10.0.0.2:7300", &hosts[1]);
        let file = pem.clone();
        let (pem, key) = (pem.display().to_string(), key.display().to_string());
        let mut command = match kind {
            Kind::Haproxy => {
                let text = text.replace("bind :443", &format!("bind 127.0.0.1:{port}"));
                let text = text.replace("/etc/haproxy/lockhouse.pem", &pem);
                let mut command = Command::new(programs.join("usr/sbin/haproxy"));
                command.arg("-db").arg("-f").arg(files.file("balancer/haproxy.cfg", text));
                command
            }
            Kind::Nginx => {
                let text = text.replace("listen 443 ssl", &format!("listen 127.0.0.1:{port} ssl"));
                let text =
                    text.replace("/etc/nginx/lockhouse.pem", &pem).replace("/etc/nginx/lockhouse.key", &key);
                let site = files.file("balancer/site.conf", text);
                let places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .map(|name| format!("{name}_temp_path temp-{name};\n"))
                    .concat();
                let main = format!(
                    "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{places}include {};\n}}\n",
                    site.display()
                );
                let main = files.file("balancer/main.conf", main);
                let mut command = Command::new(programs.join("usr/sbin/nginx"));
                command
                    .arg("-p")
                    .arg(main.parent().expect("a folder"))
                    .arg("-e")
                    .arg("stderr")
                    .arg("-c")
                    .arg(main);
                command
            }
            Kind::Caddy => {
                let text = text.replace(
                    &format!("https://{NAME}"),
                    &format!("https://{NAME}:{port}, https://127.0.0.1:{port}"),
                );
                let text =
                    text.replace("/etc/caddy/lockhouse.pem", &pem).replace("/etc/caddy/lockhouse.key", &key);
                let text = format!("{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{text}");
                let mut command = Command::new(programs.join("usr/bin/caddy"));
                command
                    .args(["run", "--adapter", "caddyfile", "--config"])
                    .arg(files.file("balancer/Caddyfile", text));
                command.env("HOME", files.path("balancer"));
                command
            }
        };
        command.env("LD_LIBRARY_PATH", programs.join("usr/lib/x86_64-linux-gnu"));
        let log = std::fs::File::create(files.path("balancer/log")).expect("a log");
        let process = command.stdout(Stdio::null()).stderr(log).spawn().expect("it is started");
        let certificate = reqwest::Certificate::from_pem(certificate.as_bytes()).expect("a certificate");
        Self { process, port, certificate, pem: file, files }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! A host with a person and, if the administrator requires it, an engine of the system for that person. It is a mount
//! namespace in which `/etc`, `/run` and `/var/lib` are directories of the test, so it needs root.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lockhouse_tests::{Lockhouse, Session, fixture_server, wait_until};

/// The accounts: numbers without a name, since a test must not create accounts.
pub(super) const PERSON: u32 = 1_001;
pub(super) const OTHER_PERSON: u32 = 1_002;
pub(super) const ENGINE: u32 = 990;
const OTHER_ENGINE: u32 = 991;
/// Where the programs under test are in the namespace: other accounts may not be able to reach the target directory.
const PROGRAMS: &str = "/mnt";
const NAMESPACE: &str = "mount --bind \"$1\" /etc && mount --bind \"$2\" /run && mount --bind \"$3\" /var/lib && \
                         mount --bind \"$4\" /mnt && shift 4 && cd / && exec \"$@\"";

/// A host with one person, who has a configuration and a policy.
pub(super) struct Host {
    lockhouse: Lockhouse,
    engine: Option<Child>,
    /// The engine of the other person.
    other_engine: Option<Child>,
    /// The words before the command of the engine.
    wrapper: Vec<&'static str>,
}

impl Host {
    /// Creates a host that nobody manages: the person's AI clients have engines of their own.
    pub(super) fn unmanaged(policy: &str) -> Self {
        let lockhouse = Lockhouse::new();
        for below in ["etc/lockhouse", "run/lockhouse-engines", "var", "home/.config/lockhouse"] {
            std::fs::create_dir_all(lockhouse.path(below)).unwrap();
        }
        for name in ["passwd", "group", "nsswitch.conf"] {
            let _ = std::fs::copy(Path::new("/etc").join(name), lockhouse.path("etc").join(name));
        }
        // Python's library has a link to a file there.
        let _ =
            Command::new("sh").args(["-c", "cp -r /etc/python3* \"$0\""]).arg(lockhouse.path("etc")).status();
        for below in ["", "etc", "etc/lockhouse", "run", "run/lockhouse-engines", "var"] {
            std::fs::set_permissions(lockhouse.path(below), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let host = Self { lockhouse, engine: None, other_engine: None, wrapper: Vec::new() };
        host.write("home/.config/lockhouse/config.toml", &configuration(&host.path("tools/shell_server.py")));
        host.write("home/.config/lockhouse/policy.toml", policy);
        give(&host.path("home"), PERSON);
        std::fs::create_dir_all(host.path("other-home")).unwrap();
        give(&host.path("other-home"), OTHER_PERSON);
        host.write("tools/client.py", include_str!("client.py"));
        host.write("tools/approve.py", include_str!("approve.py"));
        host.write("tools/accept.py", include_str!("accept.py"));
        host.write("tools/shell_server.py", include_str!("shell_server.py"));
        std::fs::set_permissions(host.path("tools"), std::fs::Permissions::from_mode(0o755)).unwrap();
        host
    }

    /// Creates a host with an engine of the system for the person, which has the same configuration and policy.
    pub(super) async fn managed(policy: &str) -> Self {
        Self::managed_on(policy, "", Vec::new()).await
    }

    /// Creates a host as [`Self::managed`], with these further requirements.
    pub(super) async fn managed_with(policy: &str, requirements: &str) -> Self {
        Self::managed_on(policy, requirements, Vec::new()).await
    }

    /// The same on a kernel that lacks a feature, as the program `lacking` names it.
    pub(super) async fn managed_without(policy: &str, lack: &'static str) -> Self {
        Self::managed_on(policy, "", vec!["/mnt/lacking", lack, "--"]).await
    }

    async fn managed_on(policy: &str, requirements: &str, wrapper: Vec<&'static str>) -> Self {
        let mut host = Self::unmanaged(policy);
        host.write("etc/lockhouse/requirements.toml", &format!("engine = \"system\"\n{requirements}"));
        host.prepare_engine(ENGINE, PERSON, policy);
        host.wrapper = wrapper;
        host.start_engine().await;
        host
    }

    /// Makes the files of an engine of the system for a person, and the directory of its sockets.
    fn prepare_engine(&self, account: u32, person: u32, policy: &str) {
        let home = engine_home(person);
        let configuration = configuration(&self.path("tools/shell_server.py"));
        self.write(&format!("{home}/config/lockhouse/config.toml"), &configuration);
        self.write(&format!("{home}/config/lockhouse/policy.toml"), policy);
        std::fs::create_dir_all(self.sockets(person)).unwrap();
        for below in [self.path(home), self.sockets(person)] {
            give(&below, account);
        }
        std::fs::set_permissions(self.path(home), std::fs::Permissions::from_mode(0o700)).unwrap();
    }

    pub(super) async fn start_engine(&mut self) {
        self.engine = Some(self.spawn_engine(ENGINE, PERSON).await);
    }

    /// Starts an engine of the system for the other person too, in an account of its own.
    pub(super) async fn start_engine_of_other(&mut self, policy: &str) {
        self.prepare_engine(OTHER_ENGINE, OTHER_PERSON, policy);
        self.other_engine = Some(self.spawn_engine(OTHER_ENGINE, OTHER_PERSON).await);
    }

    async fn spawn_engine(&self, account: u32, person: u32) -> Child {
        let sockets = format!("/run/lockhouse-engines/{person}");
        let home = self.path(engine_home(person));
        let person_word = person.to_string();
        let program = format!("{PROGRAMS}/lockhouse");
        let words = [program.as_str(), "engine", "--person", &person_word, "--sockets", &sockets];
        let mut command = self.command(account, &[self.wrapper.as_slice(), &words].concat());
        command.env("HOME", &home).env("XDG_CONFIG_HOME", home.join("config"));
        command.env("STATE_DIRECTORY", home.join("state")).env("LOGS_DIRECTORY", home.join("log"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(self.log());
        let mut engine = command.spawn().unwrap();
        let socket = self.sockets(person).join("front.sock");
        wait_until("the engine accepts fronts", async || {
            assert!(engine.try_wait().unwrap().is_none(), "the engine has ended: {}", self.engine_log());
            std::os::unix::net::UnixStream::connect(&socket).ok().map(drop)
        })
        .await;
        engine
    }

    /// Kills the engine as the kernel does when memory is short.
    pub(super) fn kill_engine(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            engine.kill().unwrap();
            engine.wait().unwrap();
        }
    }

    fn log(&self) -> std::fs::File {
        std::fs::File::options().append(true).create(true).open(self.path("engine.log")).unwrap()
    }

    /// Returns the records of the engine's audit log.
    pub(super) fn records(&self) -> Vec<serde_json::Value> {
        let mut records = Vec::new();
        for entry in std::fs::read_dir(self.path("engine/log")).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            records.extend(text.lines().filter_map(|line| serde_json::from_str(line).ok()));
        }
        records
    }

    /// Returns what the engine has logged so far.
    pub(super) fn engine_log(&self) -> String {
        std::fs::read_to_string(self.path("engine.log")).unwrap_or_default()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.lockhouse.path(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.lockhouse.file(name, text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// Makes the person the owner of a directory and of all that is in it.
    pub(super) fn give_to_person(&self, name: &str) {
        give(&self.path(name), PERSON);
    }

    /// Returns the directory with the sockets of a person's engine, outside of the namespace.
    fn sockets(&self, person: u32) -> PathBuf {
        self.path(&format!("run/lockhouse-engines/{person}"))
    }

    /// Returns a command that an account runs on this host.
    fn command(&self, account: u32, words: &[&str]) -> Command {
        let programs = fixture_server().parent().unwrap().to_owned();
        let account = account.to_string();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", NAMESPACE, "sh"]);
        command.args(["etc", "run", "var"].map(|name| self.path(name))).arg(programs);
        command
            .args(["setpriv", "--reuid", &account, "--regid", &account, "--clear-groups", "--"])
            .args(words);
        command.env_clear().env("PATH", "/mnt:/usr/bin:/bin").env("LANG", "C.UTF-8");
        command
    }

    /// Returns a command of `lockhouse` that an account runs.
    pub(super) fn lockhouse_as(&self, account: u32, arguments: &[&str]) -> Command {
        let program = format!("{PROGRAMS}/lockhouse");
        let mut command = self.command(account, &[&[program.as_str()], arguments].concat());
        command.env("HOME", self.path("home"));
        command
    }

    /// Returns a command that runs a shell script as an account: what an AI agent with a shell can do. The script has the
    /// places of the engine, whether it is that of the system or the person's own.
    pub(super) fn shell_as(&self, account: u32, script: &str) -> Command {
        let mut command = self.command(account, &["sh", "-c", script]);
        command.env("HOME", self.path(if account == OTHER_PERSON { "other-home" } else { "home" }));
        command.envs(self.place_values());
        command
    }

    /// Returns the places of the engine as assignments of a shell.
    pub(super) fn places(&self) -> Vec<String> {
        let assign = |(name, path): (&str, PathBuf)| format!("{name}={}", path.display());
        self.place_values().into_iter().map(assign).collect()
    }

    fn place_values(&self) -> [(&'static str, PathBuf); 5] {
        let home = self.path("home");
        let state = home.join(".local/state/lockhouse");
        let [config, state, log, sockets] = match self.engine {
            Some(_) => [
                self.path("engine/config/lockhouse"),
                self.path("engine/state"),
                self.path("engine/log"),
                PathBuf::from(format!("/run/lockhouse-engines/{PERSON}")),
            ],
            None => [home.join(".config/lockhouse"), state.clone(), state.join("audit"), state.join("run")],
        };
        let tools = self.path("tools");
        [("CONFIG", config), ("STATE", state), ("LOG", log), ("SOCKETS", sockets), ("TOOLS", tools)]
    }

    /// Returns the process of the system's engine; `None` if there is none.
    pub(super) fn engine(&self) -> Option<u32> {
        self.engine.as_ref().map(Child::id)
    }

    /// Whether the system's engine runs.
    pub(super) fn engine_runs(&mut self) -> bool {
        self.engine.as_mut().is_some_and(|engine| engine.try_wait().is_ok_and(|status| status.is_none()))
    }

    /// Connects an AI client of the person.
    pub(super) async fn client(&self) -> Session {
        Session::connect(self.lockhouse_as(PERSON, &["serve", "--answer", "structured"]), Session::latest())
            .await
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill_engine();
        if let Some(engine) = &mut self.other_engine {
            engine.kill().unwrap();
            engine.wait().unwrap();
        }
    }
}

/// Returns the directory with the files of a person's engine.
fn engine_home(person: u32) -> &'static str {
    if person == OTHER_PERSON { "other-engine" } else { "engine" }
}

/// Returns the configuration of an engine. The server `shell` does what it is told.
fn configuration(shell_server: &Path) -> String {
    format!(
        "[servers.fixture]\ncommand = \"{PROGRAMS}/fixture-server\"\nenv = {{ TOKEN = \"SECRET-CANARY\" }}\n\
         [servers.shell]\ncommand = \"/usr/bin/python3\"\nargs = [{shell_server:?}]\nstart = \"lazy\"\n\
         [limits]\nquestion_seconds = 3\n"
    )
}

/// Makes an account the owner of a directory and of all that is in it.
fn give(path: &Path, account: u32) {
    chown(path, Some(account), Some(account)).unwrap();
    for entry in std::fs::read_dir(path).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            give(&path, account);
        } else {
            chown(path, Some(account), Some(account)).unwrap();
        }
    }
}

/// Whether this host lets the tests mount and change accounts.
pub(super) fn can_manage() -> bool {
    let mounted = Command::new("unshare").args(["--mount", "mount", "--bind", "/tmp", "/tmp"]).status();
    let can = nix::unistd::geteuid().is_root() && mounted.is_ok_and(|status| status.success());
    if !can {
        println!("skipped: it needs root and mount namespaces");
    }
    can
}

/// Whether this host refuses to every account what a script needs: user namespaces of ordinary accounts, or, with Yama, to trace
/// processes that are no children. Then the script has no control.
pub(super) fn refuses_to_all(script: &str) -> bool {
    let traces = ["c(101, 16", "/mem", "c(438", ".ptrace(16"].iter().any(|part| script.contains(part));
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let person = PERSON.to_string();
    let as_person = ["--reuid", &person, "--regid", &person, "--clear-groups", "unshare", "-r", "-m", "true"];
    let can_unshare =
        || Command::new("setpriv").args(as_person).output().is_ok_and(|done| done.status.success());
    let refuses =
        traces && !["", "0"].contains(&scope.trim()) || script.contains("unshare") && !can_unshare();
    if refuses {
        println!("not tried, since this host refuses it to all: {script}");
    }
    refuses
}

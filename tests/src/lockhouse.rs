//! The program under test and the files around it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{Finished, Session};

/// A policy under which the server `fixture` may be asked for everything.
const ALLOW_ALL: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";

/// `lockhouse` with a home directory, configuration, policy and servers of its own.
#[derive(Debug)]
pub struct Lockhouse {
    directory: TempDir,
    program: PathBuf,
    servers: Map<String, Value>,
}

impl Default for Lockhouse {
    fn default() -> Self {
        Self::new()
    }
}

impl Lockhouse {
    /// Without configuration, policy or servers.
    ///
    /// # Panics
    /// If the temporary directory or the program is missing.
    #[must_use]
    pub fn new() -> Self {
        let built = || target_directory().join("lockhouse");
        let program = std::env::var_os("LOCKHOUSE_BIN").map_or_else(built, PathBuf::from);
        assert!(program.is_file(), "{} is missing: build the workspace first", program.display());
        let directory = tempfile::Builder::new().prefix("lockhouse-test-").tempdir().expect("a directory");
        for below in ["home", "run", "config/lockhouse"] {
            std::fs::create_dir_all(directory.path().join(below)).expect("a directory");
        }
        Self { directory, program, servers: Map::new() }
    }

    /// With the fixture server as `fixture`, and a policy that allows all of it.
    #[must_use]
    pub fn with_fixture() -> Self {
        Self::new().server("fixture", &[]).policy(ALLOW_ALL)
    }

    /// Writes the configuration.
    #[must_use]
    pub fn config(self, text: &str) -> Self {
        self.file("config/lockhouse/config.toml", text);
        self
    }

    /// Writes the policy.
    #[must_use]
    pub fn policy(self, text: &str) -> Self {
        self.file("config/lockhouse/policy.toml", text);
        self
    }

    /// Adds the fixture server under a name, with its flags.
    #[must_use]
    pub fn server(self, name: &str, flags: &[&str]) -> Self {
        let entry = json!({"command": fixture_server(), "args": flags});
        self.servers_entry(name, entry)
    }

    /// With servers of `tests/servers/canned.py` whose results have a form, and a policy that allows all of them.
    #[must_use]
    pub fn with_canned(servers: &[&str], form: &str) -> Self {
        let lockhouse = Self::new();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/canned.py");
        let place = lockhouse.path("");
        let (mut config, mut policy) = (String::new(), "version = 1\n".to_owned());
        for server in servers {
            let arguments = json!([script, server, place, form]);
            let decode = if form == "text" { "decode = \"json\"\n" } else { "" };
            config += &format!("[servers.{server}]\ncommand = \"python3\"\nargs = {arguments}\n{decode}");
            policy += &format!("[servers.{server}]\nallow = [\"*\"]\n");
        }
        lockhouse.config(&config).policy(&policy)
    }

    /// What canned servers were asked so far: server, tool and arguments.
    ///
    /// # Panics
    /// If a line is not JSON.
    #[must_use]
    pub fn calls(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a call")).collect()
    }

    /// Adds any entry to the servers file.
    #[must_use]
    pub fn servers_entry(mut self, name: &str, entry: Value) -> Self {
        self.servers.insert(name.to_owned(), entry);
        self.file("servers.json", json!({"mcpServers": self.servers}).to_string());
        self
    }

    /// Writes any file below the directory of this test, and gives its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// The program under test.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A path below the directory of this test.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The command, with an environment of its own and the files named.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().current_dir(self.path("home")).env("HOME", self.path("home"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for (variable, below) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_RUNTIME_DIR", "run"),
        ] {
            command.env(variable, self.path(below));
        }
        if !self.servers.is_empty() {
            command.arg("--servers").arg(self.path("servers.json"));
        }
        command.args(arguments);
        command
    }

    /// Runs a command to its end.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Finished {
        self.run_with_input(arguments, b"")
    }

    /// Runs a command to its end, with standard input.
    #[must_use]
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Finished {
        let finished = Finished::of(&mut self.command(arguments), input);
        Finished { directory: self.directory.path().display().to_string(), ..finished }
    }

    /// The answer of `lockhouse run --json` to a program.
    #[must_use]
    pub fn answer(&self, language: &str, code: &str) -> Value {
        self.run_with_input(&["run", "-", "--language", language, "--json"], code.as_bytes()).json()
    }

    /// Starts `lockhouse serve` and connects to it.
    pub async fn serve(&self) -> Session {
        Session::connect(self.command(&["serve"]), Session::latest()).await
    }

    /// The audit records of calls and of questions, in the order of time.
    ///
    /// # Panics
    /// If a record is not JSON.
    #[must_use]
    pub fn audit(&self) -> Vec<Value> {
        let of_a_call = ["call", "approval", "denial", "outcome", "question"];
        let mut records = self.records();
        records.retain(|record| of_a_call.iter().any(|event| record["event"] == *event));
        records
    }

    /// Every audit record, in the order of time.
    ///
    /// # Panics
    /// If a record is not JSON.
    #[must_use]
    pub fn records(&self) -> Vec<Value> {
        let texts = self.segments().into_iter().map(std::fs::read_to_string);
        let texts: Vec<String> = texts.map(|text| text.expect("a segment")).collect();
        let lines = texts.iter().flat_map(|text| text.lines());
        let mut records: Vec<Value> =
            lines.map(|line| serde_json::from_str(line).expect("a record")).collect();
        records.sort_by_key(|record| record["time"].as_str().map(str::to_owned));
        records
    }

    /// The files with audit records, in the order of their names.
    ///
    /// # Panics
    /// If the directory cannot be read.
    #[must_use]
    pub fn segments(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.audit_directory()) else { return Vec::new() };
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let is_segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
        let mut paths: Vec<PathBuf> =
            paths.filter(|path| is_segment(path) && !path.ends_with("segments.jsonl")).collect();
        paths.sort();
        paths
    }

    /// Where the audit log is kept.
    #[must_use]
    pub fn audit_directory(&self) -> PathBuf {
        self.path("state/lockhouse/audit")
    }
}

/// The test upstream server.
///
/// # Panics
/// If it is not built.
#[must_use]
pub fn fixture_server() -> PathBuf {
    let path = target_directory().join("fixture-server");
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

/// Where cargo puts programs: tests run in `deps` below it.
///
/// # Panics
/// If the test is nowhere.
#[must_use]
pub fn target_directory() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let parents = test.ancestors().skip(1).find(|directory| !directory.ends_with("deps"));
    parents.map(Path::to_owned).expect("the target directory")
}

//! A test fixture: the program `lockhouse` with its configuration files in a temporary directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{CommandOutput, Session, build_products, fixture_server};

/// The servers of `tests/servers/canned.py` that the documents of earlier products use.
pub const EARLIER_PRODUCTS_SERVERS: [&str; 12] = [
    "arxiv",
    "chroma",
    "context7",
    "docker",
    "filesystem",
    "gdrive",
    "github",
    "k8s",
    "postgres",
    "sheets",
    "slack",
    "supabase",
];

/// A policy that allows all tools of the upstream server `fixture`, which a test can start.
const ALLOW_ALL: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";

/// The program `lockhouse` with a home directory, configuration, policy and servers file of its own, in a temporary
/// directory.
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
    /// Creates a test directory without configuration, policy or upstream servers.
    ///
    /// # Panics
    /// If the program is missing or older than its sources, or no temporary directory can be created.
    #[must_use]
    pub fn new() -> Self {
        Self::new_in(&std::env::temp_dir())
    }

    /// Creates a test directory like [`Self::new`], but not below `/tmp`: programs have a `/tmp` of their own, so files of
    /// the host below it are hidden.
    ///
    /// # Panics
    /// As [`Self::new`].
    #[must_use]
    pub fn outside_tmp() -> Self {
        Self::new_in(Path::new("/var/tmp"))
    }

    fn new_in(parent: &Path) -> Self {
        let program = build_products::lockhouse();
        let directory = tempfile::Builder::new().prefix("lockhouse-test-").tempdir_in(parent);
        let directory = directory.expect("a directory");
        for below in ["home", "run", "config/lockhouse"] {
            std::fs::create_dir_all(directory.path().join(below)).expect("a directory");
        }
        Self { directory, program, servers: Map::new() }
    }

    /// Creates a test directory with the fixture server as the upstream server `fixture`, and a policy that allows
    /// all of its tools.
    #[must_use]
    pub fn with_fixture() -> Self {
        Self::new().server("fixture", &[]).policy(ALLOW_ALL)
    }

    /// Writes `text` as the configuration file of this test.
    #[must_use]
    pub fn config(self, text: &str) -> Self {
        self.file("config/lockhouse/config.toml", text);
        self
    }

    /// Writes `text` as the policy file of this test.
    #[must_use]
    pub fn policy(self, text: &str) -> Self {
        self.file("config/lockhouse/policy.toml", text);
        self
    }

    /// Adds the fixture server to the servers file as the upstream server `name`, which is started with these flags.
    #[must_use]
    pub fn server(self, name: &str, flags: &[&str]) -> Self {
        let entry = json!({"command": fixture_server(), "args": flags});
        self.servers_entry(name, entry)
    }

    /// Creates a test directory with upstream servers of `tests/servers/canned.py`, which return prepared data, and a
    /// policy that allows all of their tools. `form` is the form of their results: `text` (JSON as text), `wrapped`
    /// (lists as the member `result` of an object) or `any` (structured content).
    #[must_use]
    pub fn with_canned(servers: &[&str], form: &str) -> Self {
        let lockhouse = Self::new();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/canned.py");
        let location = lockhouse.path("");
        let (mut config, mut policy) = (String::new(), "version = 1\n".to_owned());
        for server in servers {
            let arguments = json!([script, server, location, form]);
            config += &format!("[servers.{server}]\ncommand = \"python3\"\nargs = {arguments}\n");
            policy += &format!("[servers.{server}]\nallow = [\"*\"]\n");
        }
        lockhouse.config(&config).policy(&policy)
    }

    /// Returns the calls that the upstream servers of [`Lockhouse::with_canned`] have received so far: server, tool
    /// and arguments.
    ///
    /// # Panics
    /// If a recorded line is not JSON.
    #[must_use]
    pub fn calls(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a call")).collect()
    }

    /// Adds the upstream server `name` with this JSON entry to the servers file.
    #[must_use]
    pub fn servers_entry(mut self, name: &str, entry: Value) -> Self {
        self.servers.insert(name.to_owned(), entry);
        self.file("servers.json", json!({"mcpServers": self.servers}).to_string());
        self
    }

    /// Writes a file in the directory of this test, and returns the file's path.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// Returns the path of the program under test.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the path of `name` in the directory of this test.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Creates a command that runs the program under test with these arguments. Of the environment of this test the
    /// command inherits only `PATH`. Its other variables refer to directories of this test. COLUMNS is so large that no
    /// table is wrapped: the width of a path or a time then does not change the lines. `serve` gets
    /// `--answer structured`, unless the arguments have another `--answer`.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().current_dir(self.path("home")).env("HOME", self.path("home"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("COLUMNS", "10000");
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
        if arguments.first() == Some(&"serve") && !arguments.contains(&"--answer") {
            command.args(["--answer", "structured"]);
        }
        command
    }

    /// Runs the program under test with these arguments until it exits.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_with_input(arguments, b"")
    }

    /// Runs the program under test with these arguments and this standard input until it exits.
    #[must_use]
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> CommandOutput {
        let finished = CommandOutput::run(&mut self.command(arguments), input);
        CommandOutput { directory: self.directory.path().display().to_string(), ..finished }
    }

    /// Runs code with `lockhouse run --json` and returns the JSON that it prints.
    #[must_use]
    pub fn answer(&self, language: &str, code: &str) -> Value {
        self.run_with_input(&["run", "-", "--language", language, "--json"], code.as_bytes()).json()
    }

    /// Starts `lockhouse serve` and connects to it as an AI client.
    pub async fn serve(&self) -> Session {
        Session::connect(self.command(&["serve"]), Session::latest()).await
    }

    /// Returns the audit records that are about calls, ordered by time: calls, approvals, denials, outcomes, and
    /// questions of upstream servers to the user.
    #[must_use]
    pub fn audit(&self) -> Vec<Value> {
        let of_a_call = ["call", "approval", "denial", "outcome", "question"];
        let mut records = self.records();
        records.retain(|record| of_a_call.iter().any(|event| record["event"] == *event));
        records
    }

    /// Returns all audit records, ordered by time.
    ///
    /// # Panics
    /// If a record is not JSON.
    #[must_use]
    pub fn records(&self) -> Vec<Value> {
        let texts = self.segments().into_iter().map(std::fs::read_to_string);
        let texts: Vec<String> = texts.map(|text| text.expect("a segment")).collect();
        // A line without an end is still being written.
        let lines = texts.iter().flat_map(|text| text.split_inclusive('\n'));
        let lines = lines.filter(|line| line.ends_with('\n'));
        let mut records: Vec<Value> =
            lines.map(|line| serde_json::from_str(line).expect("a record")).collect();
        records.sort_by_key(|record| record["time"].as_str().map(str::to_owned));
        records
    }

    /// Returns the paths of the audit log's segment files, sorted by name; none if there is no audit directory.
    ///
    /// # Panics
    /// If an entry of the audit directory cannot be read.
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

    /// Returns the directory of the audit log.
    #[must_use]
    pub fn audit_directory(&self) -> PathBuf {
        self.path("state/lockhouse/audit")
    }
}

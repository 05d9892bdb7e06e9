//! A host with an administrator's `/etc`, on which the attempts of a user are tried.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use lockhouse_tests::{CommandOutput, Lockhouse, Page, Session, wait_until};
use serde_json::Value;

use super::{ALLOW, managed, require, server};

/// A host on which one user runs Lockhouse. `/etc` and `/var/lib` are directories of the test.
pub(super) struct Host {
    pub(super) lockhouse: Lockhouse,
    /// What the administrator will require. `None` on a host without requirements.
    later: Option<String>,
}

/// When the requirements of an attempt begin to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// Before the user does anything.
    Start,
    /// When the attempt calls [`Host::forbid`], while processes run.
    Change,
}

/// An attempt of a user: returns whether it succeeded, with what was seen.
pub(super) type Attempt = for<'h> fn(&'h Host) -> LocalBoxFuture<'h, (bool, String)>;

impl Host {
    /// Creates a host with these requirements. `None` for a host without requirements.
    pub(super) fn new(requirements: Option<&str>, since: Since) -> Self {
        let lockhouse = Lockhouse::new().config(&server("fixture")).policy(ALLOW);
        for (name, rules) in [("policy", "deny = [\"add\"]"), ("asks", "allow = [\"*\"]\nask = [\"add\"]")] {
            let text = format!("version = 1\n[servers.fixture]\n{rules}\n");
            lockhouse.file(&format!("etc/lockhouse/{name}.toml"), text);
        }
        let root = lockhouse.path("").display().to_string();
        let requirements = requirements.map(|text| text.replace("ROOT", &root).replace("//", "/"));
        match (&requirements, since) {
            (Some(requirements), Since::Start) => require(&lockhouse, requirements),
            (Some(_), Since::Change) => require(&lockhouse, ""),
            (None, _) => {}
        }
        Self { lockhouse, later: requirements.filter(|_| since == Since::Change) }
    }

    /// Makes the requirements of a host of [`Since::Change`]. Without requirements, does nothing.
    pub(super) fn forbid(&self) {
        if let Some(requirements) = &self.later {
            require(&self.lockhouse, requirements);
        }
    }

    /// Makes the requirements, waits until the audit log has their application, and prints how long that took.
    pub(super) async fn forbid_and_wait(&self, what: &str) {
        if self.later.is_none() {
            return;
        }
        let since = Instant::now();
        self.forbid();
        wait_until("the requirements apply", async || {
            self.is_logged("state", "\"cause\":\"requirements\"").then_some(())
        })
        .await;
        println!("{what}: applied after {:?}", since.elapsed());
    }

    /// Whether nothing is required on this host, so that the attempt must succeed.
    pub(super) fn is_control(&self) -> bool {
        self.later.is_none()
    }

    /// Returns the path of a file of this host.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.lockhouse.path(name)
    }

    /// Writes the user's configuration.
    pub(super) fn config(&self, text: &str) {
        self.lockhouse.file("config/lockhouse/config.toml", text);
    }

    pub(super) fn policy(&self, text: &str) {
        self.lockhouse.file("config/lockhouse/policy.toml", text);
    }

    /// Runs a command with these further variables.
    pub(super) async fn run(&self, arguments: &[&str], variables: &[(&str, PathBuf)]) -> CommandOutput {
        let mut command = self.command(arguments, variables);
        tokio::task::spawn_blocking(move || CommandOutput::run(&mut command, b"")).await.unwrap()
    }

    /// Returns a command on this host.
    pub(super) fn command(&self, arguments: &[&str], variables: &[(&str, PathBuf)]) -> Command {
        let mut command = self.lockhouse.command(arguments);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        managed(&self.lockhouse, &command)
    }

    /// Starts `lockhouse serve`, and connects to it as an AI client.
    pub(super) async fn serve(&self, options: &[&str], variables: &[(&str, PathBuf)]) -> Session {
        let arguments = [&["serve"], options].concat();
        Session::connect(self.command(&arguments, variables), Session::latest()).await
    }

    /// Starts `lockhouse page --service`.
    pub(super) async fn page(&self, options: &[&str], variables: &[(&str, PathBuf)]) -> Page {
        let arguments = [&["page", "--service"], options].concat();
        Page::spawn_service(self.command(&arguments, variables)).await
    }

    /// Runs a Python program, and returns its answer.
    pub(super) async fn answer(&self, code: &str, options: &[&str], variables: &[(&str, PathBuf)]) -> Value {
        let arguments = [&["run", "-c", code, "--language", "python", "--json"], options].concat();
        let output = self.run(&arguments, variables).await;
        serde_json::from_str(&output.stdout).unwrap_or(Value::String(output.stderr))
    }

    /// Returns whether a Python program returns `expected`.
    pub(super) async fn returns(
        &self,
        code: &str,
        expected: Value,
        options: &[&str],
        variables: &[(&str, PathBuf)],
    ) -> (bool, String) {
        let answer = self.answer(code, options, variables).await;
        (answer["value"] == expected, answer.to_string())
    }

    /// Returns whether a server can be used.
    pub(super) async fn lists(
        &self,
        server: &str,
        options: &[&str],
        variables: &[(&str, PathBuf)],
    ) -> (bool, String) {
        let arguments = [&["config", "check", "--json"], options].concat();
        let output = self.run(&arguments, variables).await;
        let report: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        let servers = report["servers"].as_array().cloned().unwrap_or_default();
        (servers.iter().any(|name| name == server), format!("{} {}", output.stdout, output.stderr))
    }

    /// Returns whether an AI client sees a tool.
    pub(super) async fn shows_tool(
        &self,
        tool: &str,
        options: &[&str],
        variables: &[(&str, PathBuf)],
    ) -> (bool, String) {
        let session = self.serve(options, variables).await;
        let tools: Vec<String> =
            session.tools().await.into_iter().map(|tool| tool.name.into_owned()).collect();
        let ended = session.close().await;
        (tools.iter().any(|name| name == tool), format!("{tools:?} {}", ended.stderr))
    }

    /// Returns whether a file of an audit log has this text.
    pub(super) fn is_logged(&self, directory: &str, text: &str) -> bool {
        let mut folders = vec![self.path(directory)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if std::fs::read_to_string(path).is_ok_and(|log| log.contains(text)) {
                    return true;
                }
            }
        }
        false
    }
}

/// Tries an attempt with and without requirements. Returns the outcome of both.
pub(super) async fn try_both(requirements: &str, since: Since, attempt: Attempt) -> [(bool, String); 2] {
    let (required, free) = (Host::new(Some(requirements), since), Host::new(None, since));
    let (required, free) = futures_util::future::join(attempt(&required), attempt(&free)).await;
    [required, free]
}

/// Puts an attempt on the heap.
pub(super) fn boxed<'h>(
    attempt: impl Future<Output = (bool, String)> + 'h,
) -> LocalBoxFuture<'h, (bool, String)> {
    attempt.boxed_local()
}

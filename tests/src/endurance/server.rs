//! The Lockhouse server that an endurance suite tests, from its start to the checks after its shutdown.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use lockhouse_tests::{LANGUAGES, Lockhouse, Session, children, descendants, ensure, is_alive};

use super::leftover_resources::{self, Remains};
use super::load_client::{Client, Program, ProgramAnswer};
use super::report::{Kind, Report};

/// Two programs with one tool call each, in Python and in TypeScript. Running both starts the upstream server and both
/// zygotes.
const FIRST: [&str; 2] =
    ["from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']", "(await fixture.add({a: 1, b: 2})).sum"];

/// The number of concurrent programs per language that use up the idle workers. It exceeds the number of idle
/// workers.
const RENEWING_PROGRAMS: usize = 8;
const RENEW: [&str; 2] =
    ["from mcp_tools.fixture import slow\nslow(ms=200)", "await fixture.slow({ms: 200})"];
/// The maximum number of attempts to replace the idle workers and then find the server idle.
const SETTLE_ATTEMPTS: usize = 4;
/// The maximum time of each attempt to find the server idle.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);

/// A running `lockhouse serve` with the default configuration, the fixture server, and directories of its own.
pub(crate) struct Server {
    lockhouse: Lockhouse,
    pub(crate) client: Client,
    pub(crate) pid: u32,
    /// The file to which every line is copied that the server writes to its client; `None` if lines are not copied.
    wire: Option<PathBuf>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let lockhouse = Lockhouse::with_fixture();
        let session = Session::connect(command(&lockhouse), Session::latest()).await;
        let pid = session.pid();
        Self::ready(lockhouse, session, pid, None).await
    }

    /// Starts the server and copies its standard output to a file. The file shows all lines that the server wrote,
    /// whereas the client library would drop a second answer to a request.
    pub(crate) async fn start_with_wire_kept() -> Self {
        let lockhouse = Lockhouse::with_fixture();
        let wire = lockhouse.path("wire");
        let session = Session::connect(kept(&command(&lockhouse), &wire), Session::latest()).await;
        let program = lockhouse.program().display().to_string();
        let server = children(session.pid()).into_iter().find(|child| child.command.contains(&program));
        let pid = server.expect("the server below its shell").pid;
        Self::ready(lockhouse, session, pid, Some(wire)).await
    }

    async fn ready(lockhouse: Lockhouse, session: Session, pid: u32, wire: Option<PathBuf>) -> Self {
        let client = Client::new(session);
        let mut numbers = 0..FIRST.len();
        let programs = || {
            let number = numbers.next()?;
            Some(Program {
                number,
                language: LANGUAGES[number],
                code: FIRST[number].to_owned(),
                timeout: None,
            })
        };
        let summary = |answered: ProgramAnswer| {
            assert!(answered.is_ok(), "control: it works before the suite: {}", answered.to_text());
        };
        client.load(1, programs, summary).await;
        Self { lockhouse, client, pid, wire }
    }

    /// Waits until no executions run, and returns the resources that the server then holds outside its memory.
    ///
    /// A retired zygote, which was replaced and forks no more workers, exists until its idle workers are used. This
    /// function uses up the idle workers first, so that the result does not depend on whether a zygote has just
    /// retired. If a zygote retires meanwhile, the function uses up the idle workers again, in `SETTLE_ATTEMPTS`
    /// attempts at most.
    pub(crate) async fn settled(&self) -> Result<Remains, String> {
        let directories = ["home", "run", "tmp", "cache"].map(|name| self.lockhouse.path(name));
        let mut settled = Err(String::new());
        for _ in 0..SETTLE_ATTEMPTS {
            self.renew().await;
            settled = leftover_resources::until(SETTLE_TIMEOUT, || {
                leftover_resources::measure_idle(self.pid, &directories)
            })
            .await;
            if settled.is_ok() {
                break;
            }
        }
        settled
    }

    async fn renew(&self) {
        let mut numbers = 0..2 * RENEWING_PROGRAMS;
        let programs = || {
            let number = numbers.next()?;
            let (language, code) = (LANGUAGES[number % 2], RENEW[number % 2].to_owned());
            Some(Program { number, language, code, timeout: None })
        };
        self.client.load(2 * RENEWING_PROGRAMS, programs, drop).await;
    }

    /// Closes the connection and adds to `report` whether the server and all its descendants exit. Returns the lines
    /// that the server wrote to its client (none if they were not copied).
    pub(crate) async fn close(self, report: &mut Report) -> Vec<String> {
        let started = descendants(self.pid);
        let ended = self.client.into_session().close().await;
        let clean = ended.status == Some(0) && !ended.stderr.contains("panicked");
        let last: String = ended.stderr.lines().rev().take(5).collect::<Vec<_>>().join(" | ");
        report.promise(Kind::Count, "the server ends with status 0", ensure(clean, (ended.status, last)));
        let gone = leftover_resources::until(SHUTDOWN_TIMEOUT, || {
            let left: Vec<_> = started.iter().filter(|process| is_alive(process.pid)).collect();
            ensure(left.is_empty(), left)
        });
        report.promise(Kind::Count, "with it ends all that it started", gone.await);
        let wire = self.wire.map(|wire| std::fs::read_to_string(wire).expect("what it wrote"));
        wire.unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

fn command(lockhouse: &Lockhouse) -> Command {
    let temporary = lockhouse.path("tmp");
    std::fs::create_dir_all(&temporary).expect("a directory");
    let mut command = lockhouse.command(&["serve"]);
    command.env("TMPDIR", temporary);
    command
}

/// Returns a command that runs `command` and copies its standard output to `file`.
fn kept(command: &Command, file: &PathBuf) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", r#""$@" | tee "$0""#]).arg(file).arg(command.get_program()).args(command.get_args());
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

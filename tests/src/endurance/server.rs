//! The server that a suite drives, from its start to its judged end.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use lockhouse_tests::{LANGUAGES, Lockhouse, Session, children, descendants, ensure, is_alive};

use super::load::{Answered, Client, Program};
use super::remains::{self, Remains};
use super::report::{Kind, Report};

/// One call in each language, so that the upstream server and both zygotes are there.
const FIRST: [&str; 2] =
    ["from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']", "(await fixture.add({a: 1, b: 2})).sum"];

/// Programs that are there at one time: more than the idle workers, so that all of these are used.
const RENEWING: usize = 8;
const RENEW: [&str; 2] =
    ["from mcp_tools.fixture import slow\nslow(ms=200)", "await fixture.slow({ms: 200})"];
/// How often idle workers are renewed, and how long each time nothing else has to go.
const SETTLES: usize = 4;
const SETTLES_WITHIN: Duration = Duration::from_secs(5);
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// `lockhouse serve` with the configuration that everyone gets, the fixture server, and directories of its own.
pub(crate) struct Server {
    lockhouse: Lockhouse,
    pub(crate) client: Client,
    pub(crate) pid: u32,
    /// Where every line is kept that the server wrote to its client.
    wire: Option<PathBuf>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let lockhouse = Lockhouse::with_fixture();
        let session = Session::connect(command(&lockhouse), Session::latest()).await;
        let pid = session.pid();
        Self::ready(lockhouse, session, pid, None).await
    }

    /// The client's library passes on one answer to a request, and no second one. What the server really wrote is
    /// kept beside it.
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
        let told = |answered: Answered| {
            assert!(answered.is_ok(), "control: it works before the suite: {}", answered.shown());
        };
        client.load(1, programs, told).await;
        Self { lockhouse, client, pid, wire }
    }

    /// What there is of it outside its memory, once nothing runs any more.
    ///
    /// A zygote that retired lives on with its idle workers. They are used up first, so that this is the same
    /// whether or not a zygote has just retired; should one retire meanwhile, they are used up again.
    pub(crate) async fn settled(&self) -> Result<Remains, String> {
        let directories = ["home", "run", "tmp", "cache"].map(|name| self.lockhouse.path(name));
        let mut settled = Err(String::new());
        for _ in 0..SETTLES {
            self.renew().await;
            settled = remains::until(SETTLES_WITHIN, || remains::of_idle(self.pid, &directories)).await;
            if settled.is_ok() {
                break;
            }
        }
        settled
    }

    async fn renew(&self) {
        let mut numbers = 0..2 * RENEWING;
        let programs = || {
            let number = numbers.next()?;
            let (language, code) = (LANGUAGES[number % 2], RENEW[number % 2].to_owned());
            Some(Program { number, language, code, timeout: None })
        };
        self.client.load(2 * RENEWING, programs, drop).await;
    }

    /// Closes the connection, and promises that the server and all that it started end. Gives what it wrote.
    pub(crate) async fn close(self, report: &mut Report) -> Vec<String> {
        let started = descendants(self.pid);
        let ended = self.client.into_session().close().await;
        let clean = ended.status == Some(0) && !ended.stderr.contains("panicked");
        let last: String = ended.stderr.lines().rev().take(5).collect::<Vec<_>>().join(" | ");
        report.promise(Kind::Count, "the server ends with status 0", ensure(clean, (ended.status, last)));
        let gone = remains::until(ENDS_WITHIN, || {
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

/// The same command with its standard output also in a file.
fn kept(command: &Command, file: &PathBuf) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", r#""$@" | tee "$0""#]).arg(file).arg(command.get_program()).args(command.get_args());
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

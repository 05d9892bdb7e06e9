//! A managed host with two people, each with an engine of the system, and what one of them has there that the other may want.

use std::process::Command;

use lockhouse_tests::{Approver, CommandOutput, Page, Session, ensure, structured};
use rmcp::ServiceError;
use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::system_engine::host::{Host, OTHER_PERSON, PERSON};
use crate::system_engine::proposals::digest;

pub(super) const ROOT: u32 = 0;
const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"add\"]\nask = [\"echo\"]\n[servers.mine]\nallow = [\"run\"]\n";
/// A library with which a program believes that it runs in the account of which `PRETENDED` has the number. The kernel knows
/// better.
const PRETENDED: &str = r#"
#include <stdlib.h>
#include <unistd.h>
uid_t getuid(void) { return (uid_t)atoi(getenv("PRETENDED")); }
uid_t geteuid(void) { return getuid(); }
"#;
/// The beginning of each script.
const PRELUDE: &str = r#"
pretending() { export PRETENDED=$1; shift; LD_PRELOAD="$TOOLS/pretended.so" "$@"; }
LAUNCHER=$(cut -d" " -f4 "/proc/$SERVER/stat")
"#;

/// A host whose first person has a client, a call that waits for an answer, a server in their session, a stored file, a session,
/// a proposed policy and an open page.
pub(super) struct TwoPeople {
    host: Host,
    client: Session,
    /// Root, who sees the questions.
    root: Approver,
    /// The call that waits, and its question.
    waiting: Option<JoinHandle<Result<CallToolResult, ServiceError>>>,
    question: Value,
    page: Page,
    page_of_other: Page,
    /// What scripts know about the first person, as assignments of a shell.
    known: String,
}

impl TwoPeople {
    pub(super) async fn new() -> Self {
        let mut host = Host::managed_with(POLICY, "[approvals]\nwait_seconds = 900\n").await;
        add_server_of_person(&mut host).await;
        host.start_engine_of_other("version = 1\n").await;
        let source = host.path("tools/pretended.c");
        host.write("tools/pretended.c", PRETENDED);
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(host.path("tools/pretended.so")).arg(source);
        let compiled = CommandOutput::run(&mut compiler, b"");
        assert_eq!(compiled.status, Some(0), "{compiled:?}");

        let client = host.client().await;
        let code = "from mine import run\nrun(script='printf $PPID')['output']";
        let server = client.run_code("python", code).await["value"].as_str().unwrap_or_default().to_owned();
        client.run_in("notes", "python", "note = 7").await;
        let stored = client.run_code("python", "open('/out/report.txt', 'w').write('quarterly')").await;
        let stored = stored["files"][0]["handle"].as_str().unwrap_or_default().to_owned();
        let proposal = propose(&host);
        let mut root = Approver::spawn(host.lockhouse_as(ROOT, &["approvals", "--json"]));
        root.next("watching").await;
        let [page, page_of_other] = [page(&host, PERSON).await, page(&host, OTHER_PERSON).await];
        let known = [
            format!("FIRST={PERSON}"),
            format!("ENGINE={}", host.engine().unwrap_or_default()),
            format!("FRONT={}", client.pid()),
            format!("SERVER={server}"),
            format!("STORED={stored}"),
            format!("PROPOSAL={proposal}"),
            format!("PORT={}", page.port()),
            format!("FIRST_HOME={}", host.path("home").display()),
        ];
        let known = known.join("\n");
        let (waiting, question) = (None, Value::Null);
        let mut people = Self { host, client, root, waiting, question, page, page_of_other, known };
        people.ask().await;
        people
    }

    /// Makes a call that waits for an answer, unless one waits or the client has ended.
    pub(super) async fn ask(&mut self) {
        if self.waiting.is_none() && !self.client.peer().is_transport_closed() {
            let code = "from fixture import echo\necho(value=7)['value']";
            self.waiting = Some(self.client.start_code("python", code));
            self.question = self.root.next("ask").await;
        }
    }

    /// Runs a script in an account. Returns whether it succeeded, with what was seen.
    pub(super) async fn attempt(&self, account: u32, script: &str) -> (bool, CommandOutput) {
        let page = if account == OTHER_PERSON { &self.page_of_other } else { &self.page };
        let asked =
            format!("QUESTION={}\nDIGEST={}", self.question["ask"]["id"], self.question["ask"]["digest"]);
        let script = format!("{}\n{asked}\nTOKEN={}\n{PRELUDE}\n{script}", self.known, page.token);
        let mut command = self.host.shell_as(account, &script);
        let output =
            tokio::task::spawn_blocking(move || CommandOutput::run(&mut command, b"")).await.unwrap();
        (output.status == Some(0), output)
    }

    /// Whether the engine, the client and the launcher of the first person do what they did before.
    pub(super) async fn is_intact(&mut self) -> Result<(), String> {
        let code = "from fixture import add\nfrom mine import run\n[add(a=40, b=2)['sum'], run(script='true')['status']]";
        let seen = self.client.run_code("python", code).await;
        ensure(self.host.engine_runs() && seen["value"] == json!([42, 0]), (seen, self.host.engine_log()))
    }

    /// Whether the other person has a working engine.
    pub(super) async fn serves_other(&self) -> Result<(), String> {
        let script = "python3 \"$TOOLS/client.py\" 40+2 | grep -q '\"value\": *42'";
        let (succeeds, output) = self.attempt(OTHER_PERSON, script).await;
        ensure(succeeds, output)
    }

    /// Whether the call still waits, and the answer of root is the one that counts.
    pub(super) async fn answer(&mut self) -> Result<(), String> {
        self.root.answer(&self.question, "approve", "once").await;
        self.root.next("taken").await;
        self.is_answered().await
    }

    /// Whether the call is made, after somebody has approved it.
    pub(super) async fn is_answered(&mut self) -> Result<(), String> {
        let answered = structured(self.waiting.take().expect("a call").await.unwrap());
        ensure(answered["value"] == 7, answered)
    }
}

/// Configures a server that runs in the session of the first person.
async fn add_server_of_person(host: &mut Host) {
    host.kill_engine();
    let path = host.path("engine/config/lockhouse/config.toml");
    let configured = std::fs::read_to_string(&path).unwrap();
    let server = host.path("tools/shell_server.py");
    let server = format!(
        "[servers.mine]\ncommand = \"/usr/bin/python3\"\nargs = [{server:?}]\nrun_as = \"user\"\nenv = {{ TOKEN = \"USER-CANARY\" }}\n"
    );
    std::fs::write(&path, configured + &server).unwrap();
    host.start_engine().await;
}

/// Proposes a policy that permits more, and returns the digest by which root accepts it.
fn propose(host: &Host) -> String {
    host.write("tools/proposal.toml", &format!("{POLICY}[servers.shell]\nallow = [\"run\"]\n"));
    let proposal = host.path("tools/proposal.toml").display().to_string();
    let proposed = CommandOutput::run(&mut host.lockhouse_as(PERSON, &["policy", "propose", &proposal]), b"");
    digest(&proposed)
}

/// Opens the page of a person, whose link lasts for the whole test.
async fn page(host: &Host, person: u32) -> Page {
    Page::spawn(host.shell_as(person, "exec lockhouse page --no-open --link-seconds 3600")).await
}

//! What the agent of a person attempts with a shell, in the account of that person. Each attempt is tried on a host that nobody
//! manages, where it succeeds, and on one whose engine belongs to the system, where it does not; there also by another person.

/// Python that calls the C library. `c(NUMBER, ...)` is a system call, and fails the script if that fails.
macro_rules! python {
    ($code:literal) => {
        concat!(
            "python3 - \"$ENGINE\" \"$SERVER\" <<'END'\n\
             import ctypes, os, sys\n\
             libc = ctypes.CDLL(None, use_errno=True)\n\
             engine, server = int(sys.argv[1]), int(sys.argv[2] or 0)\n\
             def c(number, *arguments):\n\
             \x20   result = libc.syscall(number, *arguments)\n\
             \x20   if result == -1:\n\
             \x20       sys.exit(os.strerror(ctypes.get_errno()))\n\
             \x20   return result\n",
            $code,
            "\nEND"
        )
    };
}

mod engine_process;
mod files;
mod other_account;
mod policy;
mod sockets;
mod two_people;

use lockhouse_tests::{CommandOutput, Session, Table, ensure};

use super::host::{Host, OTHER_PERSON, PERSON, can_manage, refuses_to_all};

/// The policy of the person: calls of `add` are allowed, those of `echo` ask somebody, and `env`, which returns the secret of
/// the server, is denied.
const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"add\"]\nask = [\"echo\"]\n";
/// The beginning of each script: `secret` runs a program that returns the secret of the server, if the policy lets it.
const PRELUDE: &str = "
SERVER=$(pgrep -P \"$ENGINE\" fixture-server | head -n 1)
secret() { python3 \"$TOOLS/client.py\" 'import fixture; fixture.env()' \"$@\" 2>/dev/null | grep -q SECRET-CANARY; }
run() { python3 \"$TOOLS/client.py\" \"$@\" 2>/dev/null; }
";

/// An attempt: its name, and a script whose exit status is 0 if it succeeds.
type Attempt = (&'static str, &'static str);

/// A host with an AI client that is connected.
struct Target {
    host: Host,
    client: Session,
}

impl Target {
    async fn new(is_managed: bool) -> Self {
        let host = if is_managed { Host::managed(POLICY).await } else { Host::unmanaged(POLICY) };
        let client = host.client().await;
        assert_eq!(
            client.run_code("python", "from fixture import add\nadd(a=40, b=2)['sum']").await["value"],
            42
        );
        Self { host, client }
    }

    /// Runs a script in an account. Returns whether it succeeded, with what was seen.
    async fn attempt(&self, account: u32, script: &str) -> (bool, CommandOutput) {
        let engine = self.host.engine().unwrap_or_else(|| self.client.pid());
        let script = format!("ENGINE={engine}\n{PRELUDE}\n{script}");
        let mut command = self.host.shell_as(account, &script);
        let output =
            tokio::task::spawn_blocking(move || CommandOutput::run(&mut command, b"")).await.unwrap();
        (output.status == Some(0), output)
    }

    /// Whether the engine still does what it did before.
    async fn is_intact(&mut self) -> bool {
        self.host.engine_runs() && self.client.run_code("python", "1+1").await["value"] == 2
    }
}

/// Tries attempts of one kind on both hosts, in turns: each on an unmanaged host of its own, all on the same managed one.
async fn try_all(kind: &'static str, attempts: &[Attempt]) {
    if !can_manage() {
        return;
    }
    println!("{kind}: {} attempts of a person's agent", attempts.len());
    let mut table = Table::new(kind);
    let mut managed = Target::new(true).await;
    for (name, script) in attempts.iter().filter(|(_, script)| !refuses_to_all(script)) {
        let unmanaged = Target::new(false).await;
        let (succeeds, output) = unmanaged.attempt(PERSON, script).await;
        table.row(format!("{name}: control"), ensure(succeeds, output));
        for (account, who) in [(PERSON, ""), (OTHER_PERSON, ", by another person")] {
            let (succeeds, output) = managed.attempt(account, script).await;
            table.row(format!("{name}{who}"), ensure(!succeeds, output));
        }
        table.row(
            format!("{name}: the engine is intact"),
            ensure(managed.is_intact().await, managed.host.engine_log()),
        );
    }
    table.finish();
}

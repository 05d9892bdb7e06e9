//! Tests of `[roles]`: what each person may do over HTTP, the socket for people, the command line and the page.

mod approvals;
mod matrix;

use std::path::PathBuf;
use std::process::Command;

use lockhouse_tests::{Daemon, Lockhouse, OTHER_ACCOUNT, permit_all_accounts};
use serde_json::Value;

use crate::access::token;

/// The first user id of the people. None of these accounts has a name, a process or a file.
const FIRST_ACCOUNT: u32 = 61_510;

/// A person, who has a token for HTTP and the page, and an account of this host for the socket and the command line.
struct Person {
    name: &'static str,
    /// What the person may do, as in `may` of the policy.
    may: &'static [&'static str],
    account: u32,
    token: String,
}

impl Person {
    fn may(&self, one_of: &[&str]) -> bool {
        one_of.iter().any(|kind| self.may.contains(kind))
    }
}

/// A service with roles, and the people who have them.
struct Service {
    lockhouse: Lockhouse,
    people: Vec<Person>,
}

impl Service {
    /// Returns a service for these people. `policy` follows the roles in the policy.
    fn new(people: &[(&'static str, &'static [&'static str])], policy: &str, config: &str) -> Self {
        let mut text = "version = 1\n".to_owned();
        for (at, (name, may)) in people.iter().enumerate() {
            let account = FIRST_ACCOUNT + u32::try_from(at).expect("few people");
            let kinds: Vec<&&str> = may.iter().filter(|kind| **kind != "break_glass").collect();
            if !may.is_empty() {
                text +=
                    &format!("[roles.{name}]\nmembers = [\"{name}\", \"user:{account}\"]\nmay = {kinds:?}\n");
            }
            if may.contains(&"break_glass") {
                text += "break_glass = true\n";
            }
        }
        let lockhouse = Lockhouse::new().server("fixture", &[]).policy(&(text + policy));
        let operators = lockhouse.path("operators");
        let lockhouse = lockhouse.config(&format!(
            "[service]\noperators = \"{}\"\n[page]\nlisten = \"127.0.0.1:0\"\n{config}",
            operators.display()
        ));
        let people = people.iter().enumerate();
        let people = people.map(|(at, (name, may))| Person {
            name,
            may,
            account: FIRST_ACCOUNT + u32::try_from(at).expect("few people"),
            token: token(&lockhouse, &[name]),
        });
        Self { people: people.collect(), lockhouse }
    }

    async fn daemon(&self) -> Daemon {
        let daemon = self.lockhouse.daemon().await;
        permit_all_accounts(&self.socket());
        daemon
    }

    /// Returns the socket for people of other accounts.
    fn socket(&self) -> PathBuf {
        let operators = std::fs::read_dir(self.lockhouse.path("operators")).expect("a directory");
        let mut sockets = operators.map(|entry| entry.expect("a file").path());
        sockets.next().expect("a socket")
    }

    fn person(&self, name: &str) -> &Person {
        self.people.iter().find(|person| person.name == name).expect("a person")
    }

    /// Returns a command of a person, with the account that the person has on this host.
    fn command(&self, person: &Person, arguments: &[&str]) -> Command {
        let account = person.account.to_string();
        let mut command = Command::new("setpriv");
        let account = [format!("--reuid={account}"), format!("--regid={account}")];
        command.args(account).args(["--clear-groups", "--"]).arg(self.lockhouse.program()).args(arguments);
        command.env_clear().env("LOCKHOUSE_OPERATORS", self.lockhouse.path("operators"));
        command.env("HOME", "/nonexistent").env("PATH", "/usr/bin:/bin").current_dir("/");
        command
    }
}

/// Whether the tests can act as other accounts.
fn can_change_account() -> bool {
    nix::unistd::geteuid().is_root() && !OTHER_ACCOUNT.is_empty()
}

/// Returns the items of a list in JSON.
fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

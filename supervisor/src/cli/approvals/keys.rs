//! The keys with which people prove that they are there: permits the registration of one, lists and removes them.

use std::process::ExitCode;

use lockhouse_messages::{EnrolmentCode, KeyListing, OperatorRequest, OperatorResponse};
use nix::unistd::{Uid, geteuid};

use crate::cli::{UNAVAILABLE, USAGE, control_client, table, terminal};

/// The variable in which sudo names the person who runs this command as root.
const SUDO_VARIABLE: &str = "SUDO_UID";

/// About the keys of a person's engine.
#[derive(Debug, clap::Subcommand)]
pub(in crate::cli) enum Command {
    /// Print a code with which a person can register one key on the page within 5 minutes (root)
    Enroll(Person),
    /// List the registered keys (root)
    Keys(Person),
    /// Remove a registered key (root)
    RemoveKey {
        /// The key, as `keys` lists it
        key: String,
        #[command(flatten)]
        person: Person,
    },
}

/// Whose engine a command is about.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(in crate::cli) struct Person {
    /// The user id of the person whose engine it is. Without it: the account that runs sudo, else root itself
    #[arg(long, value_name = "UID")]
    person: Option<u32>,
}

impl Person {
    fn uid(self) -> Uid {
        let by_sudo = || std::env::var(SUDO_VARIABLE).ok()?.parse().ok();
        self.person.or_else(by_sudo).map_or_else(geteuid, Uid::from_raw)
    }
}

/// Runs a command about keys.
pub(super) async fn run(command: Command) -> ExitCode {
    let (request, person) = match command {
        Command::Enroll(person) => (OperatorRequest::BeginEnrolment, person),
        Command::Keys(person) => (OperatorRequest::ListKeys, person),
        Command::RemoveKey { key, person } => (OperatorRequest::RemoveKey(key), person),
    };
    if !geteuid().is_root() {
        return fail("this command needs root: use sudo", USAGE);
    }
    let person = person.uid();
    match control_client::request_engine_of(person, &request).await {
        Some(OperatorResponse::Enrolment { code, seconds }) => print_code(&code, seconds),
        Some(OperatorResponse::Keys(keys)) => print_keys(&keys),
        Some(OperatorResponse::KeyRemoved(key)) => println!("{}: removed", terminal::sanitize(&key)),
        Some(OperatorResponse::Refused { reason }) => return fail(&reason, UNAVAILABLE),
        _ => {
            let reason =
                format!("no engine of user {person} answers: start it, or an AI client that uses it");
            return fail(&reason, UNAVAILABLE);
        }
    }
    ExitCode::SUCCESS
}

fn fail(reason: &str, status: u8) -> ExitCode {
    eprintln!("lockhouse: {}", terminal::sanitize(reason));
    ExitCode::from(status)
}

fn print_code(EnrolmentCode(code): &EnrolmentCode, seconds: u64) {
    println!("{code}");
    eprintln!(
        "Within {} minutes, the person enters this code on their page (`lockhouse page`, Approvals, “Register a key”) and \
         touches the key. Give it to nobody else, and to no program: whoever has it registers a key that approves calls.",
        seconds / 60
    );
}

fn print_keys(keys: &[KeyListing]) {
    if keys.is_empty() {
        println!("No key is registered.");
        return;
    }
    let row = |key: &KeyListing| {
        let cells = [&key.credential, &key.aaguid, &key.counter.to_string(), &key.enrolled];
        cells.map(|cell| terminal::sanitize(cell)).to_vec()
    };
    let rows: Vec<Vec<String>> = keys.iter().map(row).collect();
    println!("{}", table::render(&["key", "model", "signatures", "registered"], &rows));
}

//! The check of who approves calls: a person with a proof that they are there, or root, and never the agent alone.

use std::io;
use std::path::Path;

use lockhouse_config::RequiredParts;
use lockhouse_messages::Presence;

use crate::cli::approvals::password::{POLKIT_ACTION, is_in_path};
use crate::cli::doctor::checklist::Outcome;

/// The rule of sudo, where an administrator copies it: `packaging/sudoers`.
const SUDO_RULE: &str = "/etc/sudoers.d/lockhouse";

/// What of a way to ask for a password is on this host: the program, and the file that permits it to run `lockhouse approve`.
struct Asker {
    program: &'static str,
    has_program: bool,
    file: &'static str,
    has_file: io::Result<bool>,
}

impl Asker {
    fn of_this_host(program: &'static str, file: &'static str) -> Self {
        Self { program, has_program: is_in_path(program), file, has_file: Path::new(file).try_exists() }
    }

    /// Returns what is missing, in words. `None` if it can ask.
    fn missing(&self) -> Option<String> {
        let Self { program, file, .. } = self;
        match &self.has_file {
            _ if !self.has_program => Some(format!("there is no {program}")),
            Ok(true) => None,
            Ok(false) => Some(format!("{program} has no {file}")),
            Err(error) => Some(format!("{file} cannot be looked at as this account ({error})")),
        }
    }
}

/// Without a proof of presence, root alone approves on a host with engines of the system. That is as safe, so it passes, with
/// advice: some hosts have operators who answer, and some policies ask nobody. Where people have engines of their own it fails,
/// since every process of the account approves, and so does the agent.
pub(super) fn outcome(required: &RequiredParts) -> Outcome {
    match required.presence {
        Presence::Key => Outcome::Pass("presence = \"key\"".to_owned()),
        Presence::Password => {
            password(&[Asker::of_this_host("pkexec", POLKIT_ACTION), Asker::of_this_host("sudo", SUDO_RULE)])
        }
        Presence::None if required.is_service => {
            Outcome::Pass("this account is that of a service, which has no person".to_owned())
        }
        Presence::None => Outcome::require(
            required.has_system_engine,
            "root alone approves, with `sudo lockhouse approvals`; presence = \"key\" or \"password\" lets people approve",
            "every process of the account does",
            "add engine = \"system\" to the requirements, and presence = \"key\" or \"password\" to their [approvals]",
        ),
    }
}

fn password(askers: &[Asker]) -> Outcome {
    let missing: Vec<String> = askers.iter().filter_map(Asker::missing).collect();
    match askers.iter().find(|asker| asker.missing().is_none()) {
        Some(asker) => Outcome::Pass(format!("presence = \"password\", for which {} asks", asker.program)),
        None => Outcome::Fail {
            found: format!("nothing asks for a password: {}", missing.join(", ")),
            fix: "install pkexec, or copy /usr/share/lockhouse/sudoers/lockhouse to /etc/sudoers.d, and run this command as root",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(has_program: bool, has_file: io::Result<bool>) -> Asker {
        Asker { program: "sudo", has_program, file: SUDO_RULE, has_file }
    }

    fn unreadable() -> io::Result<bool> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    #[test]
    fn a_program_asks_only_with_the_file_that_permits_it() {
        for (asker, expected) in [
            (asker(true, Ok(true)), None),
            (asker(false, Ok(true)), Some("there is no sudo")),
            (asker(true, Ok(false)), Some("sudo has no /etc/sudoers.d/lockhouse")),
            (
                asker(true, unreadable()),
                Some("/etc/sudoers.d/lockhouse cannot be looked at as this account (permission denied)"),
            ),
        ] {
            assert_eq!(asker.missing().as_deref(), expected);
        }
    }

    #[test]
    fn one_program_that_asks_is_enough() {
        let passes = |askers: &[Asker]| matches!(password(askers), Outcome::Pass(_));
        assert!(passes(&[asker(false, Ok(false)), asker(true, Ok(true))]));
        assert!(passes(&[asker(true, Ok(true)), asker(true, unreadable())]));
        assert!(!passes(&[asker(true, Ok(false)), asker(false, Ok(true))]));
        assert!(!passes(&[asker(true, unreadable())]));
    }

    #[test]
    fn without_presence_it_depends_on_whose_the_engine_is() {
        let none = RequiredParts::default();
        let passes = |required: RequiredParts| matches!(outcome(&required), Outcome::Pass(_));
        assert!(!passes(none));
        assert!(passes(RequiredParts { has_system_engine: true, ..none }));
        assert!(passes(RequiredParts { is_service: true, ..none }));
        assert!(passes(RequiredParts { presence: Presence::Key, ..none }));
    }
}

//! A managed host on which the attempts are made.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse};
use nix::unistd::geteuid;

use super::{Attempt, Effect};
use crate::requirements::{ALLOW, managed, require, server};

/// The account of the user. It has no name and no other process.
const ACCOUNT: u32 = 61_540;

/// A managed host that is stopped, on which a user has an account.
pub(super) struct Host {
    lockhouse: Lockhouse,
}

impl Host {
    /// Creates the host.
    pub(super) fn new() -> Self {
        // Programs of bubblewrap have a `/tmp` of their own.
        let lockhouse = Lockhouse::outside_tmp().config(&server("fixture")).policy(ALLOW);
        require(&lockhouse, "stop = \"incident 7\"\n");
        lockhouse.file("var/lockhouse-managed", "");
        lockhouse.file("own-etc/lockhouse/requirements.toml", "");
        for name in ["empty", "jail"] {
            std::fs::create_dir(lockhouse.path(name)).unwrap();
        }
        std::fs::set_permissions(lockhouse.path(""), PermissionsExt::from_mode(0o755)).unwrap();
        // The standard library of Python may have links to them.
        let copied = Command::new("sh")
            .args(["-c", "cp -r /etc/python3* \"$1\" && cp -r /etc/python3* \"$2\"", "sh"])
            .arg(lockhouse.path("etc"))
            .arg(lockhouse.path("own-etc"))
            .output()
            .unwrap();
        println!("the settings of Python are copied: {}", copied.status.success());
        Self { lockhouse }
    }

    /// Runs `lockhouse config check` as an attempt says. Fails with the reason if this host does not permit the attempt, or
    /// lacks a program for it.
    pub(super) fn run(&self, attempt: &Attempt) -> Result<(Effect, CommandOutput), String> {
        let steps =
            attempt.steps.replace("ROOT", self.lockhouse.path("").to_str().unwrap().trim_end_matches('/'));
        let python = std::fs::read_dir(self.lockhouse.path("own-etc")).unwrap().filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let bind = format!("--ro-bind {}/{name} /etc/{name}", self.lockhouse.path("own-etc").display());
            name.starts_with("python").then_some(bind)
        });
        let steps = steps.replace("PYTHON", &python.collect::<Vec<_>>().join(" "));
        let program = (attempt.program)(&self.lockhouse);
        let program = program.unwrap_or_else(|| self.lockhouse.program().to_owned());
        let run = |arguments: &[&OsStr]| {
            let mut command = match attempt.is_root || !geteuid().is_root() {
                true => Command::new("sh"),
                false => {
                    let mut command = Command::new("setpriv");
                    let id = ACCOUNT.to_string();
                    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "sh"]);
                    command
                }
            };
            command.args(["-c", &steps, "sh"]).args(arguments);
            let variables = self.lockhouse.command(&[]);
            command.envs(variables.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.env("PRELOADED", self.lockhouse.path("hides.so"));
            CommandOutput::run(&mut managed(&self.lockhouse, &command), b"")
        };
        let possible = run(&["true".as_ref()]);
        if possible.status != Some(0) {
            return Err(possible.stderr);
        }
        let output = run(&[program.as_os_str(), "config".as_ref(), "check".as_ref()]);
        let effect = match &output {
            output if output.stdout.contains("requirements.toml has stopped Lockhouse") => Effect::Holds,
            output if output.stderr.contains("this host was managed") => Effect::Refused,
            output if output.stdout.contains("1 server can be used") => Effect::Lifted,
            output => panic!("{}: {output:?}", attempt.what),
        };
        Ok((effect, output))
    }
}

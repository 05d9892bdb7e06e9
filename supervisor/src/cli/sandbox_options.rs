//! The options about the sandbox of commands that add servers. A new server that is a process has a sandbox, unless a person
//! gives a reason for none.

use lockhouse_config::{NoSandboxReason, SandboxChoice};
use lockhouse_upstream::ConfinementProfile;

use super::confirmation::{NoAnswer, ask_no_yes, ask_valid};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct SandboxOptions {
    /// Run new servers that are processes in a sandbox of this profile, without a question [default: default]
    #[arg(long, value_name = "PROFILE", value_parser = ConfinementProfile::NAMES)]
    sandbox: Option<String>,
    /// Run them with all rights of the account. The configuration keeps the reason
    #[arg(long, value_name = "REASON", value_parser = NoSandboxReason::parse, conflicts_with = "sandbox")]
    no_sandbox: Option<NoSandboxReason>,
}

impl SandboxOptions {
    /// Returns the name of the option that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        match self {
            Self { no_sandbox: Some(_), .. } => Some("--no-sandbox"),
            Self { sandbox: Some(_), .. } => Some("--sandbox"),
            _ => None,
        }
    }

    /// Returns the sandbox without a question: that of the options, or the profile `default`.
    pub(super) fn choice(&self) -> SandboxChoice {
        match &self.no_sandbox {
            Some(reason) => SandboxChoice::Without(reason.clone()),
            None => SandboxChoice::Profile { profile: ConfinementProfile::Default, user_namespaces: false },
        }
    }

    /// Returns the sandbox after the question, which is only asked if no option answers it. A no needs a reason.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub(super) fn ask(&self, question: &str) -> Result<SandboxChoice, NoAnswer> {
        if self.given().is_some() || ask_no_yes(question)? {
            return Ok(self.choice());
        }
        let reason = ask_valid("Why not? The configuration keeps the reason:", NoSandboxReason::parse)?;
        Ok(SandboxChoice::Without(reason))
    }
}

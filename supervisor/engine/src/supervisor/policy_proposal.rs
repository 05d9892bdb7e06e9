//! The policy that a person proposes for the engine of the system. What it does not permit is denied at once. What it permits
//! beyond the approved policy takes effect when it is accepted: by root, or by the person with a proof that they are there.

use std::io::{self, ErrorKind};

use data_encoding::HEXLOWER;
use lockhouse_approvals::{ApprovalSubject, PresenceError};
use lockhouse_audit::{AuditError, ChangeTarget, Channel, Edit, LocalUser};
use lockhouse_base::files;
use lockhouse_base::text_files::{ReadError, read_source};
use lockhouse_messages::{KeyChallenge, PolicyProposal, PresenceProof, ProposedChange, ReloadReport};
use lockhouse_policies::{Change, Diagnostics, Policy, PolicyValue, Source, diff};
use sha2::{Digest, Sha256};

use super::{ProposalFiles, ReloadUnavailable, Supervisor};

/// Maximum size of a proposed policy in bytes.
/// Bound: configuration and policy.
const PROPOSAL_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of differences to the approved policy that are shown.
/// Bound: configuration and policy.
const CHANGES_MAX: usize = 1_000;
/// The first part of what is hashed for the digest of a proposal, so that no hash for another purpose is one.
const LABEL: &[u8] = b"lockhouse proposal 1\0";

/// Why a proposal was not taken, shown or accepted.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    #[error("only the engine of the system takes a policy as a proposal; edit the policy file itself")]
    NotOfSystem,
    #[error("the proposed policy has more than {} KiB", PROPOSAL_BYTES_MAX / 1024)]
    TooLong,
    #[error("{0}")]
    Invalid(#[from] Diagnostics),
    #[error("the policy of the engine cannot be read: {0}")]
    Unreadable(#[from] ReadError),
    #[error("the policy of the engine cannot be written: {0}")]
    Unwritable(#[from] io::Error),
    #[error(
        "there is no proposal with this digest: it, or the approved policy, was changed, or it was taken back"
    )]
    Changed,
    #[error("the policy stays as it is: {0}")]
    NotProven(#[from] PresenceError),
    #[error("the policy stays as it is, because the audit log cannot record the change: {0}")]
    Unrecorded(#[from] AuditError),
    #[error("{0}")]
    NotReloaded(String),
}

impl From<ReloadUnavailable> for ProposalError {
    fn from(error: ReloadUnavailable) -> Self {
        Self::NotReloaded(error.to_string())
    }
}

impl Supervisor {
    /// Restricts the policy by a proposal of the person, or takes it back. Returns how it differs from the approved policy.
    ///
    /// # Errors
    /// The text is no valid policy, or the previous policy stays in force.
    pub async fn propose_policy(
        &self,
        text: Option<String>,
        by: Option<LocalUser>,
    ) -> Result<PolicyProposal, ProposalError> {
        let files = self.proposal_files()?;
        match text {
            Some(text) if text.len() > PROPOSAL_BYTES_MAX => return Err(ProposalError::TooLong),
            Some(text) => {
                parse(&text)?;
                files::replace_durably(&files.proposed, text.as_bytes())?;
            }
            None => files::remove_if_present(&files.proposed)?,
        }
        self.reload_policy(by).await?;
        self.policy_proposal()
    }

    /// Returns how the proposal of the person differs from the approved policy.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn policy_proposal(&self) -> Result<PolicyProposal, ProposalError> {
        let presence = self.approvers().presence().level();
        let Some(proposal) = Proposal::read(self.proposal_files()?)? else {
            return Ok(PolicyProposal { digest: None, changes: Vec::new(), left_out: 0, presence });
        };
        let digest = Some(proposal.digest());
        let approved = proposal.approved.map_or_else(|| Ok(Policy::empty()), Policy::parse)?;
        let mut changes: Vec<ProposedChange> =
            diff(&approved, &parse(&proposal.text)?).into_iter().map(shown).collect();
        changes.sort_by_key(|change| !change.widens);
        let left_out = changes.len().saturating_sub(CHANGES_MAX);
        changes.truncate(CHANGES_MAX);
        Ok(PolicyProposal { digest, changes, left_out, presence })
    }

    /// Returns what a key must sign to accept the proposal with this digest. `port` is that of the page which asks the key.
    ///
    /// # Errors
    /// The proposal is another one meanwhile, or no key is registered.
    pub fn challenge_proposal(&self, expected: &str, port: u16) -> Result<KeyChallenge, ProposalError> {
        self.proposed_text(expected)?;
        Ok(self.approvers().presence().challenge(subject(expected), port)?)
    }

    /// Makes the proposal the approved policy, if `proof` is what the requirements ask of the person, or root accepts it.
    /// `expected` is the digest of the difference that was shown.
    ///
    /// # Errors
    /// The proposal is another one meanwhile, the proof is not valid, or the previous policy stays in force.
    pub async fn accept_proposal(
        &self,
        expected: &str,
        proof: Option<&PresenceProof>,
        by: Option<LocalUser>,
    ) -> Result<ReloadReport, ProposalError> {
        let (files, text) = (self.proposal_files()?, self.proposed_text(expected)?);
        let proven = self.approvers().presence().verify_acceptance(&subject(expected), proof, by)?;
        let path = files.approved.first().ok_or(ProposalError::NotOfSystem)?;
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let by = proven.person(by.unwrap_or_else(LocalUser::current));
        let edit = Edit {
            target: ChangeTarget::Policy,
            path,
            action: "accept the proposed policy",
            through: Channel::of_operator(by),
            text: Some(&text),
            presence: Some(&proven),
        };
        let pending = self.gate().audit().begin_change(edit, by)?;
        pending.finish(files::replace_durably(path, text.as_bytes()))?;
        files::remove_if_present(&files.proposed)?;
        self.reload_policy(Some(by)).await
    }

    /// Returns the text of the proposal with this digest.
    fn proposed_text(&self, expected: &str) -> Result<String, ProposalError> {
        let proposal = Proposal::read(self.proposal_files()?)?;
        let proposal = proposal.filter(|proposal| proposal.digest() == expected);
        proposal.map(|proposal| proposal.text).ok_or(ProposalError::Changed)
    }

    fn proposal_files(&self) -> Result<&ProposalFiles, ProposalError> {
        self.settings.proposal.as_ref().ok_or(ProposalError::NotOfSystem)
    }

    async fn reload_policy(&self, by: Option<LocalUser>) -> Result<ReloadReport, ProposalError> {
        let report = self.request_reload(by).await?;
        match &report.error {
            Some(error) => Err(ProposalError::NotReloaded(error.clone())),
            None => Ok(report),
        }
    }
}

/// The text of a proposal, with the approved policy.
struct Proposal {
    text: String,
    /// `None` if there is no approved policy yet.
    approved: Option<Source>,
}

impl Proposal {
    /// Reads the proposal. Returns `None` if there is none.
    fn read(files: &ProposalFiles) -> Result<Option<Self>, ProposalError> {
        let text = match read_source(&files.proposed) {
            Ok(source) => source.text,
            Err(ReadError::Unreadable { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let approved = files.approved.iter().find(|path| path.exists());
        let approved = approved.map(|path| read_source(path)).transpose()?;
        Ok(Some(Self { text, approved }))
    }

    /// Returns the digest that an acceptance must repeat. It is that of both policies: what a person accepts is a difference.
    fn digest(&self) -> String {
        let approved = self.approved.as_ref().map(|approved| approved.text.as_str());
        let approved = Sha256::digest(approved.unwrap_or_default());
        let hash = Sha256::new().chain_update(LABEL).chain_update(approved).chain_update(&self.text);
        HEXLOWER.encode(&hash.finalize())
    }
}

fn parse(text: &str) -> Result<Policy, Diagnostics> {
    Policy::parse(Source { path: "the proposed policy".to_owned(), text: text.to_owned() })
}

fn subject(digest: &str) -> ApprovalSubject {
    ApprovalSubject::Policy { digest: digest.to_owned() }
}

fn shown(change: Change) -> ProposedChange {
    let value = |value: Option<PolicyValue>| value.map(|value| value.what);
    let widens = change.may_widen();
    let Change { table, subject, old, new } = change;
    ProposedChange { table, entry: subject, approved: value(old), proposed: value(new), widens }
}

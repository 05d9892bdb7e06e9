//! The tools of a server of the system's engine that nobody has accepted: shows them, and accepts them for root, or for the person
//! with a proof that they are there.

use std::sync::Arc;

use lockhouse_approvals::{ApprovalSubject, PresenceError};
use lockhouse_audit::{AuditError, LocalUser};
use lockhouse_catalog::{Catalogue, ToolChange};
use lockhouse_messages::{
    ChangedDefinition, DefinitionChange, DefinitionReview, KeyChallenge, PresenceProof,
};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ChangedTool, Pins, PinsError, ToolReview};

use super::Supervisor;

/// Maximum size in bytes of the definitions of a review. Larger changes cannot be accepted here.
/// Bound: tools and searches.
const REVIEW_BYTES_MAX: usize = 512 * 1024;

/// Why definitions were not shown or accepted.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    #[error(
        "only the engine of the system shows and accepts tools of its servers; use `lockhouse server` here"
    )]
    NotOfSystem,
    #[error("the engine has no server of this name")]
    UnknownServer,
    #[error("{0}")]
    Unavailable(String),
    #[error(
        "the changed definitions have more than {} KiB, which nobody can review: limit the tools of the server with the key `tools` \
         of the configuration",
        REVIEW_BYTES_MAX / 1024
    )]
    TooLong,
    #[error("nothing was accepted: the tools are others than those that were shown")]
    Changed,
    #[error("nothing was accepted: {0}")]
    NotProven(#[from] PresenceError),
    #[error("nothing was accepted, because the audit log cannot record it: {0}")]
    Unrecorded(#[from] AuditError),
    #[error("{0}")]
    Unwritable(#[from] PinsError),
}

/// The present tools of a server, and the accepted ones.
struct OfferedTools {
    server: ServerName,
    catalogue: Arc<Catalogue>,
    pins: Pins,
    review: ToolReview,
}

impl Supervisor {
    /// Connects to a server, and returns its tools whose definitions nobody has accepted.
    ///
    /// # Errors
    /// The server is not available, or its definitions are too long.
    pub async fn review_definitions(&self, server: &str) -> Result<DefinitionReview, DefinitionError> {
        let OfferedTools { server, review, .. } = self.offered_tools(server).await?;
        let ToolReview { changes, removed, unreadable, digest } = review;
        let changes: Vec<ChangedDefinition> = changes.into_iter().map(shown).collect();
        let length = |change: &ChangedDefinition| {
            change.after.len() + change.before.as_ref().map_or(0, |(_, before)| before.len())
        };
        if changes.iter().map(length).sum::<usize>() > REVIEW_BYTES_MAX {
            return Err(DefinitionError::TooLong);
        }
        let unreadable = unreadable.map(|error| error.to_string());
        let presence = self.approvers().presence().level();
        Ok(DefinitionReview { server: server.to_string(), digest, changes, removed, unreadable, presence })
    }

    /// Returns what a key must sign to accept the definitions with this digest. `port` is that of the page which asks the key.
    ///
    /// # Errors
    /// The tools are others than those that were shown, or no key is registered.
    pub async fn challenge_definitions(
        &self,
        server: &str,
        expected: &str,
        port: u16,
    ) -> Result<KeyChallenge, DefinitionError> {
        let offered = self.offered_tools(server).await?.with_digest(expected)?;
        Ok(self.approvers().presence().challenge(offered.subject(), port)?)
    }

    /// Accepts all definitions of a server, if `proof` is what the requirements ask of the person, or root accepts them.
    /// `expected` is the digest of those that were shown. Returns the number of tools whose acceptance was added or changed.
    ///
    /// # Errors
    /// The tools are others than those that were shown, the proof is not valid, or they cannot be recorded or stored.
    pub async fn accept_definitions(
        &self,
        server: &str,
        expected: &str,
        proof: Option<&PresenceProof>,
        by: Option<LocalUser>,
    ) -> Result<usize, DefinitionError> {
        let offered = self.offered_tools(server).await?.with_digest(expected)?;
        let proven = self.approvers().presence().verify_acceptance(&offered.subject(), proof, by)?;
        let by = by.unwrap_or_else(LocalUser::current);
        let OfferedTools { server, catalogue, pins, review } = offered;
        let tools: Vec<String> = catalogue.tools.iter().map(|tool| tool.name.to_string()).collect();
        self.gate().audit().definitions_accepted(&server, &tools, &review.digest, Some(&proven), by)?;
        Ok(pins.accept(&catalogue, &[])?)
    }

    async fn offered_tools(&self, server: &str) -> Result<OfferedTools, DefinitionError> {
        self.settings.proposal.as_ref().ok_or(DefinitionError::NotOfSystem)?;
        let server = ServerName::new(server).map_err(|_| DefinitionError::UnknownServer)?;
        let gate = self.gate();
        let upstreams = gate.upstreams();
        let (Some(connection), Some(pins)) = (upstreams.get(&server), upstreams.pins(&server)) else {
            return Err(DefinitionError::UnknownServer);
        };
        let connected = connection.connected_server().await;
        let connected = connected.map_err(|failure| DefinitionError::Unavailable(failure.message))?;
        let catalogue = connected.catalogue.clone();
        let review = pins.review(&server, &catalogue, &[]);
        Ok(OfferedTools { server, catalogue, pins, review })
    }
}

impl OfferedTools {
    fn with_digest(self, expected: &str) -> Result<Self, DefinitionError> {
        if self.review.digest == expected { Ok(self) } else { Err(DefinitionError::Changed) }
    }

    fn subject(&self) -> ApprovalSubject {
        let (server, digest) = (self.server.to_string(), self.review.digest.clone());
        ApprovalSubject::Definitions { server, digest }
    }
}

fn shown(change: ChangedTool) -> ChangedDefinition {
    let ChangedTool { tool, kind, before, after } = change;
    let kind = match kind {
        ToolChange::Definition => DefinitionChange::Changed,
        ToolChange::New => DefinitionChange::New,
        ToolChange::NotComparable => DefinitionChange::NotComparable,
    };
    ChangedDefinition { tool: tool.to_string(), kind, before, after }
}

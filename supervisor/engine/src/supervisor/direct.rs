//! Calls that an AI client makes itself, of servers that it has directly: each is an execution of its own.

use std::sync::Arc;
use std::time::Instant;

use lockhouse_gate::{Asked, Entries, Gate, Requester};
use lockhouse_policies::Listing;
use lockhouse_protocol::{Failure, FailureCode, ServerName};
use lockhouse_upstream::ai_client::{AiClient, Line, OpenQuestions};
use lockhouse_upstream::{Caller, Failed, Wire};
use tokio_util::sync::CancellationToken;

use super::Supervisor;

/// What becomes of a call.
#[derive(Debug)]
pub enum Landed {
    /// A result, as its server wrote it.
    Result(Vec<u8>),
    /// The server's own words for a call that failed.
    Failed(Failed),
    /// The call was not made, or has no answer.
    None(Failure),
}

impl Supervisor {
    /// Makes a call on behalf of an AI client, on the way of every call.
    pub async fn call_directly(
        &self,
        line: Line,
        wire: Wire,
        asked: Asked,
        arguments: Vec<u8>,
        cancelled: &CancellationToken,
    ) -> Landed {
        let (gate, wire) = (self.gate(), Arc::new(wire));
        let from = self.direct_requester(&gate, line, Some(wire.clone()));
        let begun = Instant::now();
        let reply = tokio::select! {
            reply = gate.directly(&from, &asked, arguments) => reply,
            () = over(&from, cancelled) => {
                gate.let_go(&from, &asked, begun.elapsed());
                Err(ended())
            }
        };
        match reply {
            Ok(result) => Landed::Result(result),
            Err(failure) => wire.take_failed().map_or(Landed::None(failure), Landed::Failed),
        }
    }

    /// What a server lists of resources or prompts, as far as the client may know of it.
    pub async fn list_directly(&self, line: Line, server: &ServerName, listing: Listing) -> Option<Entries> {
        let gate = self.gate();
        let from = self.direct_requester(&gate, line, None);
        gate.listed_directly(&from, server, listing).await
    }

    fn direct_requester(&self, gate: &Gate, line: Line, wire: Option<Arc<Wire>>) -> Requester {
        let (execution, client, questions) = (line.execution, line.client.clone(), OpenQuestions::default());
        let principal = line.principal.clone();
        let patience = self.settings.limits.question;
        let ai_client = AiClient::new(line, gate.audit(), patience, questions.clone());
        let caller = Caller { execution, client, ai_client: Some(ai_client), questions, wire };
        let scope = gate.direct_scope(&principal);
        Requester::new(caller, None, principal, scope, "".into(), self.approvers.clone(), gate.audit())
    }
}

/// When nobody may have the answer any more. A client that cancels its call leaves the question about it, and one whose token
/// is revoked does not.
async fn over(from: &Requester, cancelled: &CancellationToken) {
    tokio::select! {
        () = cancelled.cancelled() => {}
        () = from.principal.revoked() => from.approvals.cancel(),
    }
}

fn ended() -> Failure {
    let message = "the AI client cancelled the call".to_owned();
    Failure { code: FailureCode::UpstreamUnavailable, message, server: None, tool: None, retryable: false }
}

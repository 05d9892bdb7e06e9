//! One call on its way: what it is, on whose behalf it is made, and how long the gate itself has taken for it.

use std::time::{Duration, Instant};

use lockhouse_audit::Subject;
use lockhouse_catalog::{Catalogue, Tool};
use lockhouse_policies::{Call, Denial, Effect, Item};
use lockhouse_protocol::{CallId, Failure, FailureCode, ServerName};

use crate::asked::Asked;
use crate::denials::denied;
use crate::failures::failure;
use crate::{Gate, Requester};

/// What all steps of one call know.
pub(super) struct Attempt<'a> {
    pub(super) gate: &'a Gate,
    pub(super) from: &'a Requester,
    pub(super) asked: &'a Asked,
    id: CallId,
    began: Instant,
    /// For its server.
    waited: Duration,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(gate: &'a Gate, from: &'a Requester, id: CallId, asked: &'a Asked) -> Self {
        Self { gate, from, asked, id, began: Instant::now(), waited: Duration::ZERO }
    }

    pub(super) fn server(&self) -> &'a ServerName {
        &self.asked.server
    }

    pub(super) fn item(&self) -> &'a Item {
        &self.asked.item
    }

    /// As the log names it.
    pub(super) fn subject(&self) -> Subject<'a> {
        self.asked.subject(self.from, self.id)
    }

    /// The call without its arguments.
    pub(super) fn bare_call(&self) -> Call {
        Call::new(self.server(), self.item().clone()).by(self.from.caller.client.clone())
    }

    /// The tool that is called, if it is a tool and the catalogue has it.
    pub(super) fn tool_in<'c>(&self, catalogue: &'c Catalogue) -> Option<&'c Tool> {
        match self.item() {
            Item::Tool(tool) => catalogue.tool(tool),
            Item::Resource(_) | Item::Prompt(_) | Item::List(_) => None,
        }
    }

    /// Waits for the server: that time is not the gate's.
    pub(super) async fn wait<T>(&mut self, server: impl Future<Output = T>) -> T {
        let since = Instant::now();
        let result = server.await;
        self.waited += since.elapsed();
        result
    }

    /// How long the gate itself has taken so far.
    pub(super) fn own_time(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.waited)
    }

    /// The policy's denial, with its record.
    pub(super) fn deny(&self, denial: &Denial) -> Failure {
        let reason = denial.to_string();
        self.gate.note_denial(self.subject(), Effect::Deny, &reason, denial.place.as_ref());
        denied(denial)
    }

    /// What was decided before does not hold any more, with its record.
    pub(super) fn outdated(&self, reason: &str) -> Failure {
        self.gate.note_denial(self.subject(), Effect::Deny, reason, None);
        Failure { retryable: true, ..failure(FailureCode::Denied, reason.into()) }
    }

    /// A tool that no person has accepted as it is waits for a person, where that is wanted.
    pub(super) fn refuse_changed(&self, tool: &Tool) -> Result<(), Failure> {
        let Some(reason) = self.gate.withheld(self.from, self.server(), tool) else { return Ok(()) };
        self.gate.note_denial(self.subject(), Effect::Deny, &reason, None);
        Err(failure(FailureCode::Denied, reason))
    }
}

//! The decision about one call: by whom it is made, what stands before it, and that each refusal is in the log.

use std::sync::Arc;

use lockhouse_audit::Subject;
use lockhouse_base::telemetry;
use lockhouse_catalog::{Tool, ToolChange};
use lockhouse_policies::{
    Call, ClientName, Decision, Denial, Effect, Item, Links, OnChange, PermittedCall, Place, Policy,
};
use lockhouse_protocol::{Failure, FailureCode, ServerName};
use lockhouse_upstream::Connection;

use super::destination::{Destination, is_skills};
use super::{Approval, Gate, Requester, failure, links};

impl Gate {
    /// What no arguments could make permitted is refused before anything else is told of it.
    pub(super) fn refuse_hopeless(
        &self,
        from: &Requester,
        subject: Subject<'_>,
        destination: &Destination<'_>,
    ) -> Result<(), Failure> {
        let Subject { server, item, .. } = subject;
        if let Some(left_out) = self.left_out(from, server, item) {
            self.note_denial(subject, Effect::Deny, &left_out.message, None);
            return Err(left_out);
        }
        let policy = self.policy.now();
        if matches!(item, Item::List(_)) || policy.permits_item(server, item, from.client()) {
            return Ok(());
        }
        if let Item::Tool(tool) = item
            && let Some(slip) = self.misnamed(from, server, tool, destination.known())
        {
            return Err(slip);
        }
        match policy.decide(Call::new(server, item.clone()).by(from.caller.client.clone())) {
            Decision::Deny(denial) => Err(self.refused(subject, &denial)),
            Decision::Allow(_) | Decision::Ask(_) => Ok(()),
        }
    }

    /// What is asked for and lies outside of what the execution was started with.
    pub(super) fn left_out(&self, from: &Requester, server: &ServerName, item: &Item) -> Option<Failure> {
        from.scope.left_out().filter(|_| !from.scope.has(server, item))
    }

    /// A list of which nothing may be known is not asked for.
    pub(super) fn lists_nothing(&self, from: &Requester, server: &ServerName, item: &Item) -> bool {
        let permitted = || self.policy.now().permits_item(server, item, from.client());
        matches!(item, Item::List(_)) && !(from.scope.has(server, item) && permitted())
    }

    /// The decision, by the policy or by the person to whom it leaves it.
    pub(super) async fn permitted_call(
        &self,
        from: &Requester,
        subject: Subject<'_>,
        mut call: Call,
        tool: Option<&Tool>,
    ) -> Result<(Permitted, Option<Approval>), Unpermitted> {
        let policy = self.policy.now();
        call.links = links::resolved(policy.paths(&call), &from.usage.turn).await;
        let definition = call.definition.clone();
        let links = call.links.clone();
        let by = |call, approved| Permitted { call, by: policy.clone(), definition, links, approved };
        match policy.decide(call) {
            Decision::Allow(permitted) => {
                telemetry::decided("allow");
                Ok((by(permitted, false), None))
            }
            Decision::Deny(denial) => Err(Unpermitted::Denied(self.refused(subject, &denial))),
            Decision::Ask(pending) => {
                telemetry::decided("ask");
                let asked = from.approvals.ask((subject.call, subject.id), pending, subject.line, tool).await;
                let (permitted, approval) = asked.map_err(|refused| match refused.nobody {
                    true => Unpermitted::NobodyToAsk(refused.failure),
                    false => Unpermitted::Declined(refused.failure),
                })?;
                Ok((by(permitted, true), Some(approval)))
            }
        }
    }

    /// A call that is not permitted, with its record if it has none yet.
    pub(super) fn noted(&self, subject: Subject<'_>, unpermitted: Unpermitted) -> Failure {
        match unpermitted {
            Unpermitted::Denied(denied) => denied,
            Unpermitted::Declined(declined) | Unpermitted::NobodyToAsk(declined) => {
                self.note_denial(subject, Effect::Ask, &declined.message, None);
                declined
            }
        }
    }

    /// What nobody could be asked about is kept as a draft: the record of that, without which it is not kept.
    pub(super) fn note_draft(&self, subject: Subject<'_>) -> Result<(), Failure> {
        let reason = "a person must approve it, and there is nobody to ask: it is kept as a draft";
        self.audit.denial(subject, Effect::Ask, reason, None).map_err(|error| {
            tracing::error!("{error}");
            failure(FailureCode::Denied, format!("the skill was not kept: {error}"))
        })
    }

    /// While a person was asked or the server was busy, another policy may have come into force, and a link may lead
    /// elsewhere.
    pub(super) async fn still_permitted(
        &self,
        from: &Requester,
        subject: Subject<'_>,
        permitted: Permitted,
    ) -> Result<PermittedCall, Failure> {
        let policy = self.policy.now();
        if Arc::ptr_eq(&policy, &permitted.by) && permitted.links.is_empty() {
            return Ok(permitted.call);
        }
        let mut again = Call::new(subject.server, subject.item.clone())
            .with_arguments(permitted.call.arguments().clone())
            .by(from.caller.client.clone());
        again.definition = permitted.definition;
        again.links = links::resolved(policy.paths(&again), &from.usage.turn).await;
        let leads_elsewhere = !permitted.links.is_empty() && again.links != permitted.links;
        match policy.decide(again) {
            Decision::Deny(denial) => Err(self.refused(subject, &denial)),
            Decision::Ask(_) if !permitted.approved => {
                Err(self.outdated(subject, "by now the policy leaves this call to a person; call again"))
            }
            // What a person has read was said of another place.
            _ if permitted.approved && leads_elsewhere => Err(self.outdated(
                subject,
                "a path in its arguments leads elsewhere than when it was approved; call again",
            )),
            Decision::Ask(_) | Decision::Allow(_) => Ok(permitted.call),
        }
    }

    /// A tool that is not the one any more that was decided about.
    pub(super) fn refuse_another(
        &self,
        subject: Subject<'_>,
        decided: Option<&Tool>,
        now: Option<&Tool>,
    ) -> Result<(), Failure> {
        if decided.map(|tool| &tool.fingerprint) == now.map(|tool| &tool.fingerprint) {
            return Ok(());
        }
        Err(self.outdated(subject, "the tool has changed since this call was decided; call again"))
    }

    /// What was decided before does not hold any more, with its record.
    fn outdated(&self, subject: Subject<'_>, reason: &str) -> Failure {
        self.note_denial(subject, Effect::Deny, reason, None);
        Failure { retryable: true, ..failure(FailureCode::Denied, reason.into()) }
    }

    /// A denial, with its record.
    fn refused(&self, subject: Subject<'_>, denial: &Denial) -> Failure {
        self.note_denial(subject, Effect::Deny, &denial.to_string(), denial.place.as_ref());
        denied(denial)
    }

    pub(super) fn note_denial(
        &self,
        subject: Subject<'_>,
        decision: Effect,
        reason: &str,
        rule: Option<&Place>,
    ) {
        if decision == Effect::Deny {
            telemetry::decided("deny");
        }
        if let Err(error) = self.audit.denial(subject, decision, reason, rule) {
            tracing::error!("{error}");
        }
    }

    /// A tool that no person has accepted as it is waits for a person, where that is wanted.
    pub(super) fn refuse_changed(
        &self,
        from: &Requester,
        subject: Subject<'_>,
        tool: &Tool,
    ) -> Result<(), Failure> {
        let Some(reason) = self.withheld(from, subject.server, tool) else { return Ok(()) };
        self.note_denial(subject, Effect::Deny, &reason, None);
        Err(failure(FailureCode::Denied, reason))
    }

    /// Why a permitted tool may not be used or known of, if no person has accepted it as it is and that matters.
    pub(super) fn withheld(&self, from: &Requester, server: &ServerName, tool: &Tool) -> Option<String> {
        let on_change = self.on_change(server, from.client());
        if on_change == OnChange::Warn {
            return None;
        }
        let differs = match tool.change? {
            ToolChange::Definition => "has changed since its definition was accepted",
            ToolChange::New => "is new: it was not among the tools of this server that were accepted",
            ToolChange::NotComparable => {
                "cannot be compared with what was accepted: the pinned definitions cannot be read or written"
            }
        };
        let (tool, on_change) = (&tool.name, on_change.as_str());
        Some(format!(
            "{server}/{tool} {differs}, and on_change is \"{on_change}\" for this server; a person looks at it with \
             `lockhouse server diff {server}`, which prints the `lockhouse server accept` command that accepts it"
        ))
    }

    /// What becomes of a server's tools that no person has accepted as they are: what the policy says, or else the server's
    /// configuration.
    pub(super) fn on_change(&self, server: &ServerName, client: Option<&ClientName>) -> OnChange {
        let configured = || self.upstreams.get(server).map(|connection| connection.on_change);
        self.policy.now().on_change(server, client).or_else(configured).unwrap_or_default()
    }

    /// Where a call to that server goes.
    pub(super) fn destination(
        &self,
        from: &Requester,
        server: &ServerName,
    ) -> Result<Destination<'_>, Failure> {
        if is_skills(server) {
            return self.skills(from).map(Destination::Skills);
        }
        self.connection(from, server).map(Destination::Upstream)
    }

    /// To a server that the execution may know of, or of which it is told that it was left out.
    pub(super) fn connection(&self, from: &Requester, server: &ServerName) -> Result<&Connection, Failure> {
        let known = self.upstreams.get(server).filter(|_| from.scope.may_know_of(server));
        known.ok_or_else(|| {
            let names: Vec<&str> = from.scope.servers().iter().take(50).map(ServerName::as_str).collect();
            let told = if names.is_empty() {
                "none is configured".into()
            } else {
                format!("there are: {}", names.join(", "))
            };
            failure(FailureCode::UnknownTool, format!("there is no server {server}; {told}"))
        })
    }
}

/// Why a call is not permitted.
#[derive(Debug)]
pub(super) enum Unpermitted {
    /// By the policy, and that is in the log.
    Denied(Failure),
    /// A person was asked, or could not be asked again.
    Declined(Failure),
    /// It is a person's to decide, and there is none.
    NobodyToAsk(Failure),
}

/// A permitted call, and by what it became one.
#[derive(Debug)]
pub(super) struct Permitted {
    pub(super) call: PermittedCall,
    by: Arc<Policy>,
    definition: Option<String>,
    /// Where paths led.
    links: Links,
    /// By a person.
    approved: bool,
}

pub(super) fn denied(denial: &Denial) -> Failure {
    let hint = if denial.hint.is_empty() { String::new() } else { format!("; {}", denial.hint) };
    failure(FailureCode::Denied, format!("{denial}{hint}"))
}

//! The one way from a worker's request to an upstream server, and the one caller of the policy's decision.
//!
//! Calls are here, and what else goes upstream; questions about servers and tools are in [`lookups`].

mod approvals;
mod arguments;
mod asked;
mod limits;
mod listed;
mod lookups;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lockhouse_policies::{
    Call, ClientName, Decision, Denial, Effect, Item, OnChange, PermittedCall, Place, Policy,
};
use lockhouse_protocol::{CallId, Failure, FailureCode, Reply, Request, ServerName};
use serde_json::{Map, Value};

pub(crate) use approvals::{
    Approval, ApprovalSettings, Approvals, Approvers, Ask, Decision as PersonsDecision, Desk, FromPerson,
    FromSupervisor, PersonsAnswer, Seat, Through, Watcher,
};
pub(crate) use asked::{Asked, CallRecord};
pub(crate) use lookups::{in_a_word, standing};

pub(crate) use arguments::nearest;
pub(crate) use limits::Usage;

use arguments::Given;
use limits::Limiter;

use crate::audit::{Audit, Subject};
use crate::catalog::{Catalogue, Tool};
use crate::upstream::{Caller, Connection, Upstreams};

/// Characters of a failure's message, which may repeat an upstream server's words.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// Policy, audit log and upstream servers, together.
#[derive(Debug)]
pub(crate) struct Gate {
    policy: Policy,
    audit: Arc<Audit>,
    upstreams: Upstreams,
    limiter: Limiter,
    /// Bytes that a reply may have.
    reply_bytes_max: usize,
    /// Answers to `ListTools`, which depend on a server's tools, the client and the policy alone: made once for each.
    briefs: Mutex<HashMap<(ServerName, Option<ClientName>), Briefs>>,
}

/// An answer, and what it was made of.
#[derive(Debug)]
struct Briefs {
    of: Arc<Catalogue>,
    json: Arc<[u8]>,
}

/// On whose behalf a request is answered.
#[derive(Clone, Debug)]
pub(crate) struct Requester {
    pub(crate) caller: Caller,
    /// The servers that this execution may know of.
    pub(crate) servers: Arc<Vec<ServerName>>,
    pub(crate) usage: Arc<Usage>,
    pub(crate) approvals: Arc<Approvals>,
}

impl Requester {
    /// Its calls that need a person are put to these `approvers`.
    pub(crate) fn new(
        caller: Caller,
        servers: Vec<ServerName>,
        code: Arc<str>,
        approvers: Arc<Approvers>,
        audit: Arc<Audit>,
    ) -> Self {
        let approvals = Approvals::new(caller.clone(), code, approvers, audit);
        Self { caller, servers: Arc::new(servers), usage: Arc::default(), approvals: Arc::new(approvals) }
    }

    /// The AI client, by its own word.
    fn client(&self) -> Option<&ClientName> {
        self.caller.client.as_ref()
    }
}

impl Gate {
    pub(crate) fn new(
        policy: Policy,
        audit: Arc<Audit>,
        upstreams: Upstreams,
        reply_bytes_max: usize,
    ) -> Self {
        let limiter = Limiter::default();
        Self { policy, audit, upstreams, limiter, reply_bytes_max, briefs: Mutex::default() }
    }

    /// The same for another policy and other servers, with the same log.
    pub(crate) fn succeeded_by(&self, policy: Policy, upstreams: Upstreams) -> Self {
        Self::new(policy, self.audit.clone(), upstreams, self.reply_bytes_max)
    }

    pub(crate) fn audit(&self) -> Arc<Audit> {
        self.audit.clone()
    }

    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// The servers of which the policy speaks at all, as far as they are configured; `narrowed` can only take away.
    pub(crate) fn servers(&self, narrowed: Option<&[ServerName]>) -> Vec<ServerName> {
        let known = self.upstreams.iter().map(|(name, _)| name);
        known.filter(|name| narrowed.is_none_or(|names| names.contains(name))).cloned().collect()
    }

    /// Answers one request of a worker. A record comes back for what goes upstream alone.
    pub(crate) async fn answer(
        &self,
        from: &Requester,
        call: CallId,
        request: Request,
    ) -> (Reply, Option<CallRecord>) {
        if let Some(asked) = Asked::of(&request) {
            let (reply, record) = self.call(from, call, &asked, Given::of(request)).await;
            return (self.bounded(reply), Some(record));
        }
        let reply = match request {
            Request::ListTools { server } => self.list_tools(from, &server).await,
            Request::Describe { server, tool } => self.describe(from, &server, &tool).await,
            Request::Search { query, limit } => {
                let found = self.search(&from.servers, from.client(), &query, limit as usize, false).await;
                Ok(Value::Array(found).to_string().into_bytes())
            }
            _ => self.list_servers(from),
        };
        (self.bounded(reply), None)
    }

    fn bounded(&self, reply: Reply) -> Reply {
        match reply {
            Err(failure) => Err(Failure { message: cut(&failure.message), ..failure }),
            Ok(json) if json.len() > self.reply_bytes_max => Err(failure(
                FailureCode::ResultTooLarge,
                format!(
                    "the result has {} bytes, the limit is {}; ask for less at a time",
                    json.len(),
                    self.reply_bytes_max
                ),
            )),
            reply => reply,
        }
    }

    async fn call(&self, from: &Requester, call: CallId, asked: &Asked, given: Given) -> (Reply, CallRecord) {
        let started = Instant::now();
        let mut changes = false;
        let reply = match self.try_call(from, call, asked, given, &mut changes).await {
            Err(failure) => Err(self.explained(from, call, asked, failure).await),
            reply => reply,
        };
        let outcome = reply.as_ref().map_or_else(|failure| failure.code.as_str(), |_| "ok");
        let bytes = reply.as_ref().map_or(0, Vec::len);
        let took = started.elapsed();
        if !matches!(outcome, "denied" | "approval_declined")
            && let Err(error) = self.audit.outcome(asked.subject(from, call), outcome, took, bytes)
        {
            tracing::error!("{error}");
        }
        (reply, CallRecord::new(asked, outcome, changes, took, bytes))
    }

    /// A call whose execution ended before its answer came.
    pub(crate) fn abandoned(
        &self,
        from: &Requester,
        call: CallId,
        asked: &Asked,
        took: Duration,
    ) -> CallRecord {
        // What waits for a person was not made.
        if from.approvals.is_waiting(call) {
            return CallRecord::new(asked, FailureCode::ApprovalDeclined.as_str(), false, took, 0);
        }
        if let Err(error) = self.audit.outcome(asked.subject(from, call), "unknown", took, 0) {
            tracing::error!("{error}");
        }
        let may_change = matches!(asked.item, Item::Tool(_));
        CallRecord::new(asked, "unknown", may_change, took, 0)
    }

    /// The way of every call: what is known of it is decided about, and only then does it go out.
    async fn try_call(
        &self,
        from: &Requester,
        call: CallId,
        asked: &Asked,
        given: Given,
        changes: &mut bool,
    ) -> Reply {
        let Asked { server, item, .. } = asked;
        let failed = |failure| about(failure, server, item);
        let connection = self.connection(from, server).map_err(failed)?;
        if matches!(item, Item::List(_)) && !self.policy.permits_item(server, item, from.client()) {
            return Ok(listed::nothing());
        }
        let subject = asked.subject(from, call);
        self.refuse_hopeless(from, subject, connection).map_err(failed)?;
        let offer = connection.offer().await.map_err(failed)?;
        let mut known = None;
        let (arguments, may_change) = match item {
            Item::Tool(tool) => {
                known = offer.catalogue.tool(tool);
                let definition =
                    known.ok_or_else(|| failed(self.unknown_tool(from, server, tool, &offer.catalogue)))?;
                self.refuse_changed(from, subject, definition).map_err(failed)?;
                let arguments = arguments::named(definition, &given.arguments).map_err(failed)?;
                (arguments, !definition.read_only)
            }
            Item::Prompt(prompt) => (arguments::of_prompt(prompt, &given.arguments).map_err(failed)?, false),
            Item::Resource(_) | Item::List(_) => (Map::new(), false),
        };
        connection.offers(&offer, item).map_err(failed)?;
        let mut wanted =
            Call::new(server, item.clone()).with_arguments(arguments).by(from.caller.client.clone());
        wanted.definition = known.map(|tool| tool.fingerprint.clone());
        let (permitted, approval) =
            self.permitted_call(from, subject, wanted, known).await.map_err(failed)?;
        let limits = self.policy.limits(&permitted, from.client());
        let admitted = self.limiter.admit(&from.usage, &permitted, &limits).map_err(failed)?;
        let turn = connection.slot().await.map_err(failed)?;
        self.audit.call(subject, &permitted, approval.map(Approval::as_str)).map_err(|error| {
            tracing::error!("{error}");
            failed(failure(FailureCode::Denied, format!("the call was not made: {error}")))
        })?;
        *changes = may_change;
        let timeout = [given.timeout, admitted.timeout].into_iter().flatten().min();
        let reply = connection.call(&offer, turn, permitted, timeout, &from.caller).await?;
        self.limiter.received(&from.usage, &limits, reply.len()).map_err(failed)?;
        match item {
            Item::List(listing) => {
                let list = listed::permitted(&self.policy, from.client(), server, *listing, &reply);
                list.map_err(failed)
            }
            _ => Ok(reply),
        }
    }

    /// What no arguments could make permitted is refused before anything else is told of it.
    fn refuse_hopeless(
        &self,
        from: &Requester,
        subject: Subject<'_>,
        connection: &Connection,
    ) -> Result<(), Failure> {
        let Subject { server, item, .. } = subject;
        if matches!(item, Item::List(_)) || self.policy.permits_item(server, item, from.client()) {
            return Ok(());
        }
        if let Item::Tool(tool) = item
            && let Some(slip) = self.misnamed(from, server, tool, connection)
        {
            return Err(slip);
        }
        match self.policy.decide(Call::new(server, item.clone()).by(from.caller.client.clone())) {
            Decision::Deny(denial) => Err(self.refused(subject, &denial)),
            Decision::Allow(_) | Decision::Ask(_) => Ok(()),
        }
    }

    /// The decision, by the policy or by the person to whom it leaves it.
    async fn permitted_call(
        &self,
        from: &Requester,
        subject: Subject<'_>,
        call: Call,
        tool: Option<&Tool>,
    ) -> Result<(PermittedCall, Option<Approval>), Failure> {
        match self.policy.decide(call) {
            Decision::Allow(permitted) => Ok((permitted, None)),
            Decision::Deny(denial) => Err(self.refused(subject, &denial)),
            Decision::Ask(pending) => {
                let asked = from.approvals.ask((subject.call, subject.id), pending, subject.line, tool).await;
                asked.map(|(permitted, approval)| (permitted, Some(approval))).inspect_err(|declined| {
                    self.note_denial(subject, Effect::Ask, &declined.message, None);
                })
            }
        }
    }

    /// A denial, with its record.
    fn refused(&self, subject: Subject<'_>, denial: &Denial) -> Failure {
        self.note_denial(subject, Effect::Deny, &denial.to_string(), denial.place.as_ref());
        denied(denial)
    }

    fn note_denial(&self, subject: Subject<'_>, decision: Effect, reason: &str, rule: Option<&Place>) {
        if let Err(error) = self.audit.denial(subject, decision, reason, rule) {
            tracing::error!("{error}");
        }
    }

    /// A tool that is not what a person permitted waits for a person, where the policy says so.
    fn refuse_changed(&self, from: &Requester, subject: Subject<'_>, tool: &Tool) -> Result<(), Failure> {
        let server = subject.server;
        if !self.withholds(server, tool, from.client()) {
            return Ok(());
        }
        let reason = format!(
            "the definition of {server}/{} has changed since it was permitted, and the policy says on_change = \"{}\"; \
             a person looks at it with `lockhouse server diff {server}` and accepts it with `lockhouse server accept {server}`",
            tool.name,
            self.policy.on_change(server, from.client()).as_str(),
        );
        self.note_denial(subject, Effect::Deny, &reason, None);
        Err(failure(FailureCode::Denied, reason))
    }

    /// Whether a permitted tool may not be used, because it changed.
    fn withholds(&self, server: &ServerName, tool: &Tool, client: Option<&ClientName>) -> bool {
        tool.changed && self.policy.on_change(server, client) != OnChange::Warn
    }

    fn connection(&self, from: &Requester, server: &ServerName) -> Result<&Connection, Failure> {
        let known = self.upstreams.get(server).filter(|_| from.servers.contains(server));
        known.ok_or_else(|| {
            let names: Vec<&str> = from.servers.iter().take(50).map(ServerName::as_str).collect();
            let told = if names.is_empty() {
                "none is configured".into()
            } else {
                format!("there are: {}", names.join(", "))
            };
            failure(FailureCode::UnknownTool, format!("there is no server {server}; {told}"))
        })
    }
}

fn cut(message: &str) -> String {
    message.chars().take(MESSAGE_CHARS_MAX).collect()
}

fn denied(denial: &Denial) -> Failure {
    let hint = if denial.hint.is_empty() { String::new() } else { format!("; {}", denial.hint) };
    failure(FailureCode::Denied, format!("{denial}{hint}"))
}

/// The failure with the names of what it is about.
fn about(failure: Failure, server: &ServerName, item: &Item) -> Failure {
    let named = !matches!(item, Item::List(_));
    Failure { server: Some(server.to_string()), tool: named.then(|| item.to_string()), ..failure }
}

fn failure(code: FailureCode, message: String) -> Failure {
    Failure { code, message, server: None, tool: None, retryable: false }
}

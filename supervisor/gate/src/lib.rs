//! The one way from a worker's request to an upstream server, and the one caller of the policy's decision.
//!
//! Calls are here, and what else goes upstream; questions about servers and tools are in [`lookups`].
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

mod approvals;
mod arguments;
mod asked;
#[cfg(test)]
mod cost;
mod decision;
mod destination;
mod direct;
mod force;
mod limits;
mod links;
mod listed;
mod lookups;
pub mod results;
mod schema;
mod scope;
mod search;
mod skill_requests;
pub mod skills;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_audit::Audit;
use lockhouse_base::language::Language;
use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry::{self, Stage};
use lockhouse_catalog::{Catalogue, Changes, Lesson};
use lockhouse_policies::{Call, ClientName, Effect, Item, Policy, visible_text};
use lockhouse_protocol::{CallId, Failure, FailureCode, Reply, Request, ServerName};
use lockhouse_upstream::{Caller, Upstreams};
use serde_json::json;

pub use approvals::{
    Approval, ApprovalSettings, Approvals, Approvers, Ask, Decision as PersonsDecision, FromPerson,
    FromSupervisor, PersonsAnswer, PolicyFile, Seat, Through, Watcher,
};
pub use asked::{Asked, CallRecord};
pub use direct::Entries;
pub use links::followed;
pub use lookups::{in_a_word, standing};

pub use limits::Usage;
pub use scope::{Scope, no_grant};
pub use search::Search;

use arguments::Given;
use asked::Made;
use decision::Unpermitted;
use force::Force;
use limits::Limiter;
use schema::Schemas;

use crate::results::Results;
use crate::skills::Skills;

/// Characters of a failure's message, which may repeat an upstream server's words.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// Policy, audit log and upstream servers, together.
#[derive(Debug)]
pub struct Gate {
    policy: Force,
    audit: Arc<Audit>,
    upstreams: Upstreams,
    /// None where they are turned off.
    skills: Option<Arc<Skills>>,
    limiter: Limiter,
    schemas: Arc<Schemas>,
    results: Arc<Results>,
    /// Bytes that a reply may have.
    reply_bytes_max: usize,
    /// Answers to `ListTools`, which depend on a server's tools, the client, the language and the policy alone: made once for
    /// each.
    briefs: Mutex<HashMap<(ServerName, Option<ClientName>, Option<Language>), Briefs>>,
}

/// An answer, and what it was made of.
#[derive(Debug)]
struct Briefs {
    of: Arc<Catalogue>,
    by: Arc<Policy>,
    json: Arc<[u8]>,
}

/// On whose behalf a request is answered.
#[derive(Clone, Debug)]
pub struct Requester {
    pub caller: Caller,
    /// Of the program: signatures are shown in it. None where there is no program.
    pub language: Option<Language>,
    /// Whose results and skills it may read.
    pub principal: Principal,
    /// What this execution may know of.
    pub scope: Arc<Scope>,
    pub usage: Arc<Usage>,
    pub approvals: Arc<Approvals>,
}

impl Requester {
    /// Its calls that need a person are put to these `approvers`.
    pub fn new(
        caller: Caller,
        language: Option<Language>,
        principal: Principal,
        scope: Scope,
        code: Arc<str>,
        approvers: Arc<Approvers>,
        audit: Arc<Audit>,
    ) -> Self {
        let approvals = Approvals::new(caller.clone(), principal.owner(), code, approvers, audit);
        Self {
            caller,
            language,
            principal,
            scope: Arc::new(scope),
            usage: Arc::default(),
            approvals: Arc::new(approvals),
        }
    }

    /// The AI client, as it has proven, or by its own word.
    fn client(&self) -> Option<&ClientName> {
        self.caller.client.as_ref()
    }
}

impl Gate {
    pub fn new(
        policy: Policy,
        audit: Arc<Audit>,
        upstreams: Upstreams,
        skills: Option<Arc<Skills>>,
        results: Arc<Results>,
        reply_bytes_max: usize,
    ) -> Self {
        let (policy, limiter, schemas) = (Force::of(policy), Limiter::default(), Arc::default());
        Self {
            policy,
            audit,
            upstreams,
            skills,
            limiter,
            schemas,
            results,
            reply_bytes_max,
            briefs: Mutex::default(),
        }
    }

    /// The same for another policy and other servers, with the same log and what is counted already. From now on the new
    /// policy is heard here too, besides our own.
    pub fn succeeded_by(&self, policy: Policy, upstreams: Upstreams) -> Self {
        Self {
            policy: self.policy.succeeded_by(policy),
            audit: self.audit.clone(),
            upstreams,
            skills: self.skills.clone(),
            limiter: self.limiter.clone(),
            schemas: self.schemas.clone(),
            results: self.results.clone(),
            reply_bytes_max: self.reply_bytes_max,
            briefs: Mutex::default(),
        }
    }

    pub fn audit(&self) -> Arc<Audit> {
        self.audit.clone()
    }

    /// The hash of the policy that came into force with this; none without a policy.
    pub fn policy_digest(&self) -> Option<&str> {
        self.policy.digest()
    }

    /// The policy that is in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.now()
    }

    pub fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// What a client may know of, whatever the policy permits besides.
    pub fn granted(&self, principal: &Principal) -> Scope {
        let all = Scope::all(self.servers());
        match principal.only() {
            Some(only) => all.granted(only),
            None => all,
        }
    }

    /// Answers one request of a worker, for which that is `asked` of a server. A record comes back for what goes upstream alone.
    pub async fn answer(
        &self,
        from: &Requester,
        call: CallId,
        asked: Option<Asked>,
        request: Request,
    ) -> (Reply, Option<CallRecord>) {
        if let Some(asked) = asked {
            let asked = self.meant(from, asked);
            let (reply, record) = self.call(from, call, &asked, Given::of(request)).await;
            return (self.bounded(reply), Some(record));
        }
        let reply = match request {
            Request::ListTools { server } => self.list_tools(from, &server).await,
            Request::Describe { server, tool } => self.describe(from, call, &server, &tool).await,
            Request::LoadResult { handle } => match self.results.get(from.principal.owner(), &handle) {
                Ok(json) => Ok(json.as_bytes().to_vec()),
                Err(not_kept) => Err(failure(FailureCode::NotFound, not_kept.to_string())),
            },
            Request::LoadSkill { name } => self.load_skill(from, &name).await,
            Request::SearchSkills { query, limit } => self.search_skills(from, query, limit).await,
            Request::Search { query, limit, detail } => {
                let search = Search { query: &query, limit, detail, language: from.language };
                let found = self.search(&from.scope, from.client(), search).await;
                Ok(json!({"tools": found.tools, "missing": found.missing}).to_string().into_bytes())
            }
            _ => self.list_servers(from),
        };
        (self.bounded(reply), None)
    }

    /// The same of the tool that is meant, where its name was written in another form. What is not permitted is found by its
    /// own name alone.
    fn meant(&self, from: &Requester, asked: Asked) -> Asked {
        match &asked.item {
            Item::Tool(tool) => match self.tool_meant(from, &asked.server, tool) {
                Some(meant) => asked.about(Item::Tool(meant)),
                None => asked,
            },
            _ => asked,
        }
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
        let lesson = from.caller.wire.is_none().then(|| self.lesson(asked, &given)).flatten();
        let reply = match self.try_call(from, call, asked, given).await {
            // Who has the server directly reads its own words.
            Err(failure) if from.caller.wire.is_none() => {
                Err(self.explained(from, call, asked, failure).await)
            }
            reply => reply,
        };
        let is_draft = asked.made() == Some(Made::Draft);
        let outcome = reply
            .as_ref()
            .map_or_else(|failure| failure.code.as_str(), |_| if is_draft { "draft" } else { "ok" });
        let bytes = reply.as_ref().map_or(0, Vec::len);
        let took = started.elapsed();
        let known = self.upstreams.get(&asked.server).is_some() || destination::is_skills(&asked.server);
        telemetry::called(known.then_some(asked.server.as_str()), outcome);
        // What was decided against has its record already.
        if !matches!(outcome, "denied" | "approval_declined" | "rate_limited")
            && let Err(error) = self.audit.outcome(asked.subject(from, call), outcome, took, bytes)
        {
            tracing::error!("{error}");
        }
        if let (Some(lesson), Ok(json)) = (lesson, &reply) {
            lesson.learn(json);
        }
        (reply, CallRecord::new(asked, outcome, took, bytes))
    }

    /// Whether to learn from the result of this call what the tool answers.
    fn lesson(&self, asked: &Asked, given: &Given) -> Option<Lesson> {
        let Item::Tool(tool) = &asked.item else { return None };
        let connection = self.upstreams.get(&asked.server)?;
        connection.shapes.lesson(connection.known()?.tool(tool)?, &given.arguments)
    }

    /// A call whose execution ended before its answer came. Whether one that was sent took effect is not known; one that was not
    /// sent has changed nothing.
    pub fn abandoned(&self, from: &Requester, call: CallId, asked: &Asked, took: Duration) -> CallRecord {
        // What waits for a person was not made.
        if from.approvals.is_waiting(call) {
            return CallRecord::new(asked, FailureCode::ApprovalDeclined.as_str(), took, 0);
        }
        let outcome = if asked.made().is_some() { "unknown" } else { "not_sent" };
        if let Err(error) = self.audit.outcome(asked.subject(from, call), outcome, took, 0) {
            tracing::error!("{error}");
        }
        CallRecord::new(asked, outcome, took, 0)
    }

    /// The way of every call: what is known of it is decided about, and only then does it go out.
    ///
    /// In this order, so that nothing is told of what is not permitted, nobody is asked about what cannot be sent, and
    /// nothing is counted, recorded or sent that is refused.
    async fn try_call(&self, from: &Requester, call: CallId, asked: &Asked, given: Given) -> Reply {
        let Asked { server, item, .. } = asked;
        let (began, mut waited) = (Instant::now(), Duration::ZERO);
        let failed = |failure| about(failure, server, item);
        let destination = self.destination(from, server).map_err(failed)?;
        if self.lists_nothing(from, server, item) {
            return Ok(listed::nothing());
        }
        let subject = asked.subject(from, call);
        self.refuse_hopeless(from, subject, &destination).map_err(failed)?;
        let offering = Instant::now();
        let offered = destination.offer().await.map_err(failed)?;
        waited += offering.elapsed();
        let mut wanted = Call::new(server, item.clone()).by(from.caller.client.clone());
        let (mut known, mut changes) = (None, Changes::Nothing);
        let language = from.language.unwrap_or(Language::Python);
        match item {
            Item::Tool(tool) => {
                known = offered.catalogue().tool(tool);
                let definition = known
                    .ok_or_else(|| failed(self.unknown_tool(from, server, tool, offered.catalogue())))?;
                self.refuse_changed(from, subject, definition).map_err(failed)?;
                // An AI client writes the names that it has read, and its servers judge the rest.
                let named = match from.caller.wire {
                    None => arguments::named(definition, &given.arguments, language),
                    Some(_) => arguments::as_written(&given.arguments),
                };
                let named = named.map_err(failed)?;
                let (bytes, turn) = (given.arguments.len(), &from.usage.turn);
                let fitting = self.schemas.fitting(server, definition, named, bytes, turn, language).await;
                wanted =
                    wanted.with_arguments(fitting.map_err(failed)?).defined(definition.fingerprint.clone());
                changes = definition.changes;
            }
            Item::Prompt(prompt) => {
                let named = arguments::of_prompt(prompt, &given.arguments).map_err(failed)?;
                wanted = wanted.with_arguments(named);
            }
            Item::Resource(_) | Item::List(_) => {}
        }
        offered.offers(item, &wanted.arguments).map_err(failed)?;
        // A skill that nobody can be asked about is kept until somebody can.
        let draft = offered.drafts().map(|skills| (skills, wanted.arguments.clone()));
        let (permitted, approval) = match self.permitted_call(from, subject, wanted, known).await {
            Ok(decided) => decided,
            Err(Unpermitted::NobodyToAsk(_)) if let Some((skills, arguments)) = draft => {
                self.note_draft(subject).map_err(failed)?;
                asked.note(Made::Draft);
                return destination::draft(skills, &arguments).await.map_err(failed);
            }
            Err(unpermitted) => return Err(failed(self.noted(subject, unpermitted))),
        };
        let limits = self.policy.limits(&permitted.call, from.client());
        let admitted = self.limiter.admit(&from.usage, &permitted.call, &limits).map_err(|refused| {
            telemetry::limited_by_policy();
            self.note_denial(subject, Effect::Deny, &refused.failure.message, Some(&refused.place));
            failed(refused.failure)
        })?;
        let queued = Instant::now();
        let ready = destination.turn().await.map_err(failed)?;
        waited += queued.elapsed();
        let now = match item {
            Item::Tool(tool) => ready.catalogue().tool(tool),
            _ => None,
        };
        self.refuse_another(subject, known, now).map_err(failed)?;
        let permitted = self.still_permitted(from, subject, permitted).await.map_err(failed)?;
        // The policy may say something else of tools that have changed than before the wait.
        if let Some(definition) = now {
            self.refuse_changed(from, subject, definition).map_err(failed)?;
        }
        // What a person takes is not the gate's.
        if approval.is_none() {
            telemetry::took(Stage::Gate, began.elapsed().saturating_sub(waited));
        }
        // An AI client's own call is its whole execution.
        let policy = from.caller.wire.as_ref().and_then(|_| self.policy_digest());
        self.audit.call(subject, &permitted, approval.map(Approval::as_str), policy).map_err(|error| {
            tracing::error!("{error}");
            failed(failure(FailureCode::Denied, format!("the call was not made: {error}")))
        })?;
        asked.note(Made::Sent(changes));
        let timeout = [given.timeout, admitted.timeout].into_iter().flatten().min();
        let reply = ready.call(permitted, timeout, &from.caller).await?;
        self.limiter.received(&from.usage, &limits, reply.len()).map_err(failed)?;
        match item {
            Item::List(listing) => {
                let list = listed::permitted(&self.policy.now(), from.client(), server, *listing, &reply);
                list.map_err(failed)
            }
            _ => Ok(reply),
        }
    }
}

fn cut(message: &str) -> String {
    let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
    visible_text(&message).into_owned()
}

/// The failure with the names of what it is about.
fn about(failure: Failure, server: &ServerName, item: &Item) -> Failure {
    let named = !matches!(item, Item::List(_));
    Failure { server: Some(server.to_string()), tool: named.then(|| item.to_string()), ..failure }
}

fn failure(code: FailureCode, message: String) -> Failure {
    Failure { code, message, server: None, tool: None, retryable: false }
}

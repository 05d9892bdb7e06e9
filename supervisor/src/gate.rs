//! The one way from a worker's request to an upstream server, and the one caller of the policy's decision.

mod arguments;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_policies::{Decision, PermittedCall, Policy};
use lockhouse_protocol::{CallId, ExecutionId, Failure, FailureCode, Reply, Request, ServerName, ToolName};
use serde_json::{Value, json};

use crate::audit::{Audit, Subject};
use crate::catalog::{self, Tool};
use crate::upstream::{Connection, Offer, State, Upstreams};

/// How long a search waits for servers that are starting.
const SEARCH_PATIENCE: Duration = Duration::from_secs(2);
/// Characters of a failure's message, which may repeat an upstream server's words.
const MESSAGE_CHARS_MAX: usize = 4_000;
/// Tools that one search gives at most.
const FOUND_MAX: usize = 50;

/// Policy, audit log and upstream servers, together.
#[derive(Debug)]
pub(crate) struct Gate {
    policy: Policy,
    audit: Audit,
    upstreams: Upstreams,
    /// Bytes that a reply may have.
    reply_bytes_max: usize,
}

/// On whose behalf a request is answered.
#[derive(Clone, Debug)]
pub(crate) struct Requester {
    pub(crate) execution: ExecutionId,
    /// The servers that this execution may know of.
    pub(crate) servers: Arc<Vec<ServerName>>,
}

/// What became of one tool call, for the answer.
#[derive(Clone, Debug)]
pub(crate) struct CallRecord {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) outcome: &'static str,
    /// Whether it may have changed something.
    pub(crate) changes: bool,
    pub(crate) ms: f64,
    pub(crate) bytes: usize,
}

impl Gate {
    pub(crate) fn new(policy: Policy, audit: Audit, upstreams: Upstreams, reply_bytes_max: usize) -> Self {
        Self { policy, audit, upstreams, reply_bytes_max }
    }

    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// The servers of which the policy speaks at all, as far as they are configured; `narrowed` can only take away.
    pub(crate) fn servers(&self, narrowed: Option<&[ServerName]>) -> Vec<ServerName> {
        let known = self.upstreams.iter().map(|(name, _)| name);
        known.filter(|name| narrowed.is_none_or(|names| names.contains(name))).cloned().collect()
    }

    /// Answers one request of a worker. A record comes back for tool calls alone.
    pub(crate) async fn answer(
        &self,
        from: &Requester,
        call: CallId,
        request: Request,
    ) -> (Reply, Option<CallRecord>) {
        match request {
            Request::Call { server, tool, arguments } => {
                let (reply, record) = self.call(from, call, &server, &tool, &arguments).await;
                (self.bounded(reply), Some(record))
            }
            Request::ListServers => (self.bounded(self.list_servers(from)), None),
            Request::ListTools { server } => (self.bounded(self.list_tools(from, &server).await), None),
            Request::Describe { server, tool } => {
                (self.bounded(self.describe(from, &server, &tool).await), None)
            }
            Request::Search { query, limit } => {
                let found = self.search(&from.servers, &query, limit as usize, false).await;
                (self.bounded(Ok(Value::Array(found).to_string().into_bytes())), None)
            }
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

    async fn call(
        &self,
        from: &Requester,
        call: CallId,
        server: &ServerName,
        tool: &ToolName,
        arguments: &[u8],
    ) -> (Reply, CallRecord) {
        let started = Instant::now();
        let mut changes = false;
        let reply = self.try_call(from, call, server, tool, arguments, &mut changes).await;
        let outcome = reply.as_ref().map_or_else(|failure| failure.code.as_str(), |_| "ok");
        let bytes = reply.as_ref().map_or(0, Vec::len);
        let took = started.elapsed();
        let record = CallRecord {
            server: server.to_string(),
            tool: tool.to_string(),
            outcome,
            changes,
            ms: took.as_micros() as f64 / 1000.0,
            bytes,
        };
        let subject = Subject { execution: from.execution, call, server, tool };
        if outcome != "denied"
            && let Err(error) = self.audit.outcome(subject, outcome, took, bytes)
        {
            tracing::error!("{error}");
        }
        (reply, record)
    }

    /// A call whose execution ended before its answer came.
    pub(crate) fn abandoned(
        &self,
        from: &Requester,
        call: CallId,
        server: &ServerName,
        tool: &ToolName,
        took: Duration,
    ) -> CallRecord {
        let subject = Subject { execution: from.execution, call, server, tool };
        if let Err(error) = self.audit.outcome(subject, "unknown", took, 0) {
            tracing::error!("{error}");
        }
        CallRecord {
            server: server.to_string(),
            tool: tool.to_string(),
            outcome: "unknown",
            changes: true,
            ms: took.as_micros() as f64 / 1000.0,
            bytes: 0,
        }
    }

    async fn try_call(
        &self,
        from: &Requester,
        call: CallId,
        server: &ServerName,
        tool: &ToolName,
        arguments: &[u8],
        changes: &mut bool,
    ) -> Reply {
        let failed = |failure: Failure| Failure {
            server: Some(server.to_string()),
            tool: Some(tool.to_string()),
            ..failure
        };
        let connection = self.connection(from, server).map_err(failed)?;
        let subject = Subject { execution: from.execution, call, server, tool };
        let permitted = self.decide(subject, connection).map_err(failed)?;
        let offer = connection.offer().await.map_err(failed)?;
        let definition = offer.tool(tool).ok_or_else(|| failed(self.unknown_tool(server, tool, &offer)))?;
        let may_change = !definition.read_only;
        let argument_bytes = arguments.len();
        let arguments = arguments::named(definition, arguments).map_err(failed)?;
        self.audit.call(subject, permitted.rule(), argument_bytes).map_err(|error| {
            tracing::error!("{error}");
            failed(failure(FailureCode::Denied, format!("the call was not made: {error}")))
        })?;
        *changes = may_change;
        connection.call(&offer, permitted, arguments).await
    }

    /// The decision, with its record when it is no.
    fn decide(&self, subject: Subject<'_>, connection: &Connection) -> Result<PermittedCall, Failure> {
        match self.policy.decide(subject.server, subject.tool) {
            Decision::Allow(permitted) => Ok(permitted),
            Decision::Deny(denial) => {
                let reason = denial.to_string();
                if let Err(error) = self.audit.denial(subject, &reason) {
                    tracing::error!("{error}");
                }
                let message = match denial.hint.is_empty() {
                    true => reason,
                    false => format!("{reason}; {}", denial.hint),
                };
                Err(self
                    .misnamed(subject.server, subject.tool, connection)
                    .unwrap_or(failure(FailureCode::Denied, message)))
            }
        }
    }

    /// A name that the server does not have is a slip, and no matter for whoever writes the policy.
    fn misnamed(&self, server: &ServerName, tool: &ToolName, connection: &Connection) -> Option<Failure> {
        let State::Connected(offer) = connection.state() else { return None };
        offer.tool(tool).is_none().then(|| self.unknown_tool(server, tool, &offer))
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

    fn unknown_tool(&self, server: &ServerName, tool: &ToolName, offer: &Offer) -> Failure {
        let permitted: Vec<&str> = self.permitted(server, offer).map(|other| other.name.as_str()).collect();
        let meant = match arguments::nearest(tool.as_str(), permitted.iter().copied()) {
            Some(name) => format!("did you mean {name}?"),
            None => format!("permitted are: {}", permitted[..permitted.len().min(30)].join(", ")),
        };
        failure(FailureCode::UnknownTool, format!("server {server} has no tool {tool}; {meant}"))
    }

    /// Every tool of every connected server, and whether the policy permits it. For people, never for code.
    pub(crate) fn every_tool(&self) -> Vec<(&ServerName, Tool, bool)> {
        let mut tools = Vec::new();
        for (server, connection) in self.upstreams.iter() {
            let State::Connected(offer) = connection.state() else { continue };
            let row = |tool: &Tool| (server, tool.clone(), self.policy.permits(server, &tool.name));
            tools.extend(offer.tools.iter().map(row));
        }
        tools
    }

    /// Servers that cannot be used now, each with its reason.
    pub(crate) fn unavailable(&self, servers: &[ServerName]) -> Vec<String> {
        let told = |name: &ServerName| match self.upstreams.get(name)?.state() {
            State::Connected(_) => None,
            State::Connecting => Some(format!("{name}: still connecting")),
            State::Failed(reason) => Some(format!("{name}: {}", cut(&reason))),
        };
        servers.iter().filter_map(told).collect()
    }

    fn list_servers(&self, from: &Requester) -> Reply {
        let row = |name: &ServerName| {
            let (state, tools, error) = match self.upstreams.get(name).map(Connection::state) {
                Some(State::Connected(offer)) => ("connected", self.permitted(name, &offer).count(), None),
                Some(State::Failed(reason)) => ("failed", 0, Some(reason)),
                _ => ("connecting", 0, None),
            };
            let mut row = json!({"name": name.as_str(), "state": state, "tools": tools});
            if let Some(error) = error {
                row["error"] = cut(&error).into();
            }
            row
        };
        Ok(from.servers.iter().map(row).collect::<Value>().to_string().into_bytes())
    }

    async fn list_tools(&self, from: &Requester, server: &ServerName) -> Reply {
        let offer = self.connection(from, server)?.offer().await?;
        let briefs =
            || self.permitted(server, &offer).map(Tool::brief).collect::<Value>().to_string().into_bytes();
        Ok(offer.briefs.get_or_init(briefs).clone())
    }

    async fn describe(&self, from: &Requester, server: &ServerName, tool: &ToolName) -> Reply {
        let named = |failure: Failure| Failure {
            server: Some(server.to_string()),
            tool: Some(tool.to_string()),
            ..failure
        };
        let connection = self.connection(from, server).map_err(named)?;
        // Whether a denied tool exists is none of the code's business.
        if let Some(denial) = self.denial(server, tool) {
            return Err(named(self.misnamed(server, tool, connection).unwrap_or(denial)));
        }
        let offer = connection.offer().await?;
        let definition = offer.tool(tool).ok_or_else(|| named(self.unknown_tool(server, tool, &offer)))?;
        Ok(definition.full(server.as_str()).to_string().into_bytes())
    }

    /// Why describing a tool is refused: the same words as for a call, but no call was asked for, so no record.
    fn denial(&self, server: &ServerName, tool: &ToolName) -> Option<Failure> {
        match self.policy.decide(server, tool) {
            Decision::Allow(_) => None,
            Decision::Deny(denial) => {
                Some(failure(FailureCode::Denied, format!("{denial}; {}", denial.hint)))
            }
        }
    }

    /// Permitted tools that match, best first, of servers that are connected or become so in time.
    pub(crate) async fn search(
        &self,
        servers: &[ServerName],
        query: &str,
        limit: usize,
        full: bool,
    ) -> Vec<Value> {
        let connections = servers.iter().filter_map(|name| Some((name, self.upstreams.get(name)?)));
        let offers = futures_util::future::join_all(connections.map(async |(name, connection)| {
            let offer = tokio::time::timeout(SEARCH_PATIENCE, connection.offer());
            Some((name, offer.await.ok()?.ok()?))
        }));
        let offers: Vec<_> = offers.await.into_iter().flatten().collect();
        let tools: Vec<(&str, &Tool)> = offers
            .iter()
            .flat_map(|(name, offer)| self.permitted(name, offer).map(move |tool| (name.as_str(), tool)))
            .collect();
        let ranked = catalog::rank(query, &tools).await.into_iter().take(limit.clamp(1, FOUND_MAX));
        let show = |(server, tool): (&str, &Tool)| if full { tool.full(server) } else { tool.found(server) };
        ranked.map(|index| show(tools[index])).collect()
    }

    fn permitted<'a>(&'a self, server: &'a ServerName, offer: &'a Offer) -> impl Iterator<Item = &'a Tool> {
        offer.tools.iter().filter(move |tool| self.policy.permits(server, &tool.name))
    }
}

fn cut(message: &str) -> String {
    message.chars().take(MESSAGE_CHARS_MAX).collect()
}

fn failure(code: FailureCode, message: String) -> Failure {
    Failure { code, message, server: None, tool: None, retryable: false }
}

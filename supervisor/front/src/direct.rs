//! Servers that an AI client has directly: their tools, resources and prompts among its own, as their servers wrote them, on the
//! same way through the gate as the calls of code.

mod changes;
mod errors;
mod flight;
mod lists;
mod names;
pub(super) mod raw;

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use lockhouse_base::principal::Principal;
use lockhouse_catalog::Catalogue;
use lockhouse_engine::supervisor::Landed;
use lockhouse_gate::Asked;
use lockhouse_policies::{Item, Listing};
use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};
use lockhouse_upstream::ai_client::{Followed, Line};
use lockhouse_upstream::{Failed, Verb, Wire};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputResponses,
    JsonObject, MetaObject, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference,
    ServerCapabilities,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tracing::Instrument;

pub(super) use changes::Connected;
use errors::{invalid, protocol_error, told};
use flight::{Answered, Flight, Held, SEVERITIES};
pub(super) use lists::List;
use lists::{prompt_names, with_members};
use names::Names;

use super::{Front, ask, beginning, calls_again, client};

/// Of a resource that its server calls fresh for no time of its own.
const READ_TTL_MS: u64 = 0;

/// What the front keeps of servers that AI clients have directly.
#[derive(Clone, Default)]
pub(super) struct Direct {
    held: Held,
    /// The names of tools, and of which tools.
    named: Arc<Mutex<Option<(Vec<Arc<Catalogue>>, Arc<Names>)>>>,
    pub(super) connected: Connected,
    /// The least severe lines of logs that the client wants, by number.
    least: Arc<AtomicU8>,
}

/// What is asked of a server.
struct Request {
    server: ServerName,
    item: Item,
    verb: Verb,
    arguments: JsonObject,
    responses: Option<InputResponses>,
    state: Option<String>,
}

impl Direct {
    /// The same for another connection.
    pub(super) fn anew(&self) -> Self {
        Self { held: self.held.clone(), named: self.named.clone(), ..Self::default() }
    }

    fn tool_names(&self, direct: &[(&ServerName, &str, Arc<Catalogue>)]) -> Arc<Names> {
        let of: Vec<Arc<Catalogue>> = direct.iter().map(|(.., catalogue)| catalogue.clone()).collect();
        let same = |known: &[Arc<Catalogue>]| {
            known.len() == of.len() && known.iter().zip(&of).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        let mut named = self.named.lock();
        if let Some((known, names)) = &*named
            && same(known)
        {
            return names.clone();
        }
        let things = direct.iter().flat_map(|(server, prefix, catalogue)| {
            catalogue.tools.iter().map(move |tool| (*server, *prefix, tool.name.as_str()))
        });
        let names = Arc::new(Names::of(things));
        if !names.refused.is_empty() {
            tracing::warn!(
                "tools that AI clients do not get, since another has their name: {}; give one of the servers another prefix",
                names.refused.join(", ")
            );
        }
        *named = Some((of, names.clone()));
        names
    }
}

/// What clients are told that there is besides, where they have a server directly.
#[expect(deprecated)]
pub(super) fn add_capabilities(capabilities: &mut ServerCapabilities) {
    let listed = ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_list_changed()
        .enable_resources_subscribe()
        .enable_prompts()
        .enable_prompts_list_changed()
        .enable_completions()
        .enable_logging()
        .build();
    let extensions = capabilities.extensions.take();
    *capabilities = listed;
    capabilities.extensions = extensions;
}

impl Front {
    /// Whether AI clients have any server directly.
    pub(super) fn has_direct(&self) -> bool {
        self.supervisor.gate().direct().next().is_some()
    }

    /// What a client that asks wants to hear of logs.
    pub(super) fn set_least(&self, level: &str) {
        let number = SEVERITIES.iter().position(|severity| *severity == level).unwrap_or_default();
        self.direct.least.store(u8::try_from(number).unwrap_or_default(), Ordering::Relaxed);
    }

    /// Calls a tool by the name that the client has for it; none if there is none of that name.
    pub(super) async fn call_directly(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        let mut names = self.tool_names(false).await;
        if names.thing(&request.name).is_none() {
            names = self.tool_names(true).await;
        }
        let Some((server, tool)) = names.thing(&request.name) else { return Ok(None) };
        let tool = ToolName::new(tool.as_str()).map_err(|error| invalid(&error.to_string()))?;
        let request = Request {
            server: server.clone(),
            item: Item::Tool(tool),
            verb: Verb::Usual,
            arguments: request.arguments.unwrap_or_default(),
            responses: request.input_responses,
            state: request.request_state,
        };
        let packed = |meta| {
            let mut result = CallToolResult::success(Vec::new());
            result.meta = Some(meta);
            result
        };
        Ok(Some(match self.answered(request, context).await? {
            Answered::Asked(asked) => asked.into(),
            Answered::Landed(Landed::Result(raw)) => packed(complete(&raw, context, false)).into(),
            Answered::Landed(Landed::Failed(Failed::Result(raw))) => {
                packed(complete(raw.as_bytes(), context, false)).into()
            }
            Answered::Landed(Landed::Failed(Failed::Error(error))) | Answered::Error(error) => {
                return Err(error);
            }
            Answered::Landed(Landed::None(failure)) => {
                CallToolResult::error(vec![ContentBlock::text(told(&failure))]).into()
            }
        }))
    }

    pub(super) async fn read_directly(
        &self,
        request: ReadResourceRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let server = self.server_of(&request.uri, context).await?;
        let item = resource(&request.uri)?;
        let request = Request {
            server,
            item,
            verb: Verb::Usual,
            arguments: JsonObject::new(),
            responses: request.input_responses,
            state: request.request_state,
        };
        Ok(match self.passed(request, context, true).await? {
            Ok(meta) => {
                let mut result = ReadResourceResult::new(Vec::new());
                result.meta = Some(meta);
                result.into()
            }
            Err(asked) => asked.into(),
        })
    }

    pub(super) async fn prompt_directly(
        &self,
        request: GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (server, prompt) = self.prompt(&request.name, context).await?;
        let request = Request {
            server,
            item: Item::Prompt(prompt),
            verb: Verb::Usual,
            arguments: request.arguments.unwrap_or_default(),
            responses: request.input_responses,
            state: request.request_state,
        };
        Ok(match self.passed(request, context, false).await? {
            Ok(meta) => {
                let mut result = GetPromptResult::new(Vec::new());
                result.meta = Some(meta);
                result.into()
            }
            Err(asked) => asked.into(),
        })
    }

    pub(super) async fn complete_directly(
        &self,
        mut request: CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        request.meta = None;
        let (server, item) = match &mut request.r#ref {
            Reference::Prompt(reference) => {
                let (server, prompt) = self.prompt(&reference.name, context).await?;
                reference.name = prompt.to_string();
                (server, Item::Prompt(prompt))
            }
            Reference::Resource(reference) => {
                let server = self.server_of(&reference.uri, context).await?;
                (server, resource(&reference.uri)?)
            }
            _ => return Err(invalid("there is nothing of that kind to complete")),
        };
        let verb = Verb::Complete(Box::new(request));
        let request =
            Request { server, item, verb, arguments: JsonObject::new(), responses: None, state: None };
        let mut result = CompleteResult::default();
        result.meta = self.passed(request, context, false).await?.ok();
        Ok(result)
    }

    /// What is no tool: the metadata of a result that passes as it is, or the question of a call that waits.
    async fn passed(
        &self,
        request: Request,
        context: &RequestContext<RoleServer>,
        is_cached: bool,
    ) -> Result<Result<MetaObject, rmcp::model::InputRequiredResult>, ErrorData> {
        match self.answered(request, context).await? {
            Answered::Asked(asked) => Ok(Err(asked)),
            Answered::Landed(Landed::Result(raw)) => Ok(Ok(complete(&raw, context, is_cached))),
            Answered::Landed(Landed::Failed(Failed::Result(raw))) => {
                Ok(Ok(complete(raw.as_bytes(), context, is_cached)))
            }
            Answered::Landed(Landed::Failed(Failed::Error(error))) | Answered::Error(error) => Err(error),
            Answered::Landed(Landed::None(failure)) => Err(protocol_error(&failure)),
        }
    }

    /// Makes a call, or goes on with one that waits for its client.
    async fn answered(
        &self,
        request: Request,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answered, ErrorData> {
        let principal = self.principal(context)?;
        let Request { server, item, verb, arguments, responses, state } = request;
        let call = json!([server.as_str(), item.kind(), item.as_str(), arguments]);
        let flight = match state {
            Some(state) if flight::is_ours(&state) => {
                let responses = responses.unwrap_or_default();
                self.direct.held.resume(&principal, &state, &call, responses).map_err(invalid)?
            }
            state => {
                let wire = Wire::new(verb, calls_again(context), responses, state);
                let arguments = Value::Object(arguments).to_string().into_bytes();
                self.start_call(&principal, wire, Asked::new(server, item), arguments, context)
            }
        };
        let logs = self.wants_logs(context);
        Ok(flight.follow(&principal, &self.direct.held, &call, context, logs).await)
    }

    fn start_call(
        &self,
        principal: &Principal,
        wire: Wire,
        asked: Asked,
        arguments: Vec<u8>,
        context: &RequestContext<RoleServer>,
    ) -> Flight {
        let (line, followed) = self.line(principal, context);
        let token = self.closing.child_token();
        let cancelling = token.clone().drop_guard();
        let supervisor = self.supervisor.clone();
        let calling = async move { supervisor.call_directly(line, wire, asked, arguments, &token).await };
        let landed = tokio::spawn(calling.in_current_span());
        Flight { landed, messages: followed.messages, _cancelling: cancelling }
    }

    /// The way to this client during one call.
    fn line(&self, principal: &Principal, context: &RequestContext<RoleServer>) -> (Line, Followed) {
        let capabilities = context.client_capabilities();
        let has = |of: fn(&rmcp::model::ClientCapabilities) -> bool| capabilities.as_ref().is_some_and(of);
        let (sampling, roots) = (has(|can| can.sampling.is_some()), has(|can| can.roots.is_some()));
        let mut abilities = ask::abilities(capabilities);
        (abilities.sampling, abilities.roots) = (sampling, roots && calls_again(context));
        Line::new(client(principal, context), principal.clone(), abilities)
    }

    /// In the newest era each request would ask for them; that is deprecated, and none gets any.
    fn wants_logs(&self, context: &RequestContext<RoleServer>) -> Option<u8> {
        (!calls_again(context)).then(|| self.direct.least.load(Ordering::Relaxed))
    }

    /// The server whose prompt it is, and what it calls it.
    async fn prompt(
        &self,
        name: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(ServerName, PromptName), ErrorData> {
        let gate = self.supervisor.gate();
        let is_clipped = name
            .rsplit_once('_')
            .is_some_and(|(_, end)| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let mut candidates = gate.direct().filter_map(|(server, _, prefix)| match prefix {
            "" => Some((server.clone(), name.to_owned())),
            prefix => Some((server.clone(), name.strip_prefix(prefix)?.strip_prefix("__")?.to_owned())),
        });
        let (first, second) = (candidates.next(), candidates.next());
        let found = match (first, second) {
            (Some(one), None) if !is_clipped => Some(one),
            _ => {
                let principal = self.principal(context)?;
                let listed = self.listed(&principal, context, Listing::Prompts).await;
                prompt_names(&listed).thing(name).cloned()
            }
        };
        let unknown = || invalid(&format!("unknown prompt {:?}", beginning(name)));
        let (server, prompt) = found.ok_or_else(unknown)?;
        Ok((server, PromptName::new(prompt).map_err(|error| invalid(&error.to_string()))?))
    }

    /// The server whose resource it is: the only one there is; or the first that lists it, or a template that makes it.
    async fn server_of(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ServerName, ErrorData> {
        let principal = self.principal(context)?;
        let direct: Vec<ServerName> =
            self.supervisor.gate().direct().map(|(server, ..)| server.clone()).collect();
        if let [one] = direct.as_slice() {
            return Ok(one.clone());
        }
        let listed = self.resources(&principal, context, false).await;
        if let Some((server, ..)) = listed.into_iter().find(|(.., of)| of == uri) {
            return Ok(server);
        }
        let templates = self.resources(&principal, context, true).await;
        let made = templates.into_iter().find(|(.., template)| template == uri || makes(template, uri));
        made.map(|(server, ..)| server).ok_or_else(|| {
            let told = format!("no server lists the resource {:?}", beginning(uri));
            ErrorData::resource_not_found(told, Some(json!({"uri": beginning(uri)})))
        })
    }
}

/// Whether a URI template can make this URI, as far as its plain parts say: they come in their order.
fn makes(template: &str, uri: &str) -> bool {
    let mut parts = template.split(['{', '}']).step_by(2);
    let Some(mut rest) = parts.next().and_then(|first| uri.strip_prefix(first)) else { return false };
    let mut last = "";
    for part in parts {
        last = part;
        match rest.find(part) {
            Some(start) => rest = &rest[start + part.len()..],
            None => return false,
        }
    }
    template.contains('{') && (last.is_empty() || uri.ends_with(last))
}

/// A result for this client: as it is, but for what its era wants besides.
fn complete(raw: &[u8], context: &RequestContext<RoleServer>, is_cached: bool) -> MetaObject {
    #[derive(Default, serde::Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Outline {
        result_type: Option<Value>,
        ttl_ms: Option<Value>,
        cache_scope: Option<Value>,
    }
    let text = String::from_utf8_lossy(raw);
    if !calls_again(context) {
        return raw::packed(&text);
    }
    let outline: Outline = serde_json::from_str(&text).unwrap_or_default();
    let mut members = JsonObject::new();
    let is_complete = outline.result_type.as_ref().is_none_or(|kind| kind == "complete");
    if outline.result_type.is_none() {
        members.insert("resultType".into(), "complete".into());
    }
    if is_cached && is_complete {
        if outline.ttl_ms.is_none() {
            members.insert("ttlMs".into(), READ_TTL_MS.into());
        }
        if outline.cache_scope.is_none() {
            members.insert("cacheScope".into(), "private".into());
        }
    }
    raw::packed(&with_members(&text, &members))
}

fn resource(uri: &str) -> Result<Item, ErrorData> {
    ResourceUri::new(uri).map(Item::Resource).map_err(|error| invalid(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_makes_what_has_its_plain_parts() {
        for (template, uri, expected) in [
            ("test://t/{id}/data", "test://t/123/data", true),
            ("test://t/{id}/data", "test://t/123/date", false),
            ("test://t/{id}/data", "x://t/123/data", false),
            ("file:///{+path}", "file:///a/b", true),
            ("{scheme}://a", "x://a", true),
            ("test://t", "test://t/1", false),
        ] {
            assert_eq!(makes(template, uri), expected, "{template} {uri}");
        }
    }
}

//! Resolves the names and URIs in direct requests of AI clients to an upstream server and one of its tools, prompts
//! or resources.

use std::time::Duration;

use lockhouse_base::principal::Principal;
use lockhouse_messages::{DirectTarget, JsonRpcError};
use lockhouse_policies::CallTarget;
use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};
use rmcp::model::{CompleteRequestParams, ErrorData, Reference};
use serde_json::{Value, json};

use super::DirectServers;
use super::listings::{CALL_WAIT, prompt_names};
use crate::supervisor::Supervisor;

/// Maximum characters of an unknown name or URI that an error message repeats.
const NAME_CHARS_MAX: usize = 80;

/// Why the name or URI in a direct request of an AI client cannot be resolved.
pub(crate) enum LookupError {
    /// No tool that AI clients can call directly has the requested name.
    UnknownTool,
    Invalid(JsonRpcError),
}

impl From<ErrorData> for LookupError {
    fn from(error: ErrorData) -> Self {
        Self::Invalid(json_rpc_error(error))
    }
}

impl DirectServers {
    /// Returns the upstream server and the tool, prompt or resource that an AI client means by a name or URI.
    pub(crate) async fn resolve(
        &self,
        supervisor: &Supervisor,
        client: &Principal,
        target: &DirectTarget,
    ) -> Result<(ServerName, CallTarget), LookupError> {
        match target {
            DirectTarget::Tool(name) => self.resolve_tool(supervisor, name).await,
            DirectTarget::Prompt(name) => Ok(self.resolve_prompt(supervisor, client, name).await?),
            DirectTarget::Resource(uri) => Ok(self.resolve_resource(supervisor, client, uri).await?),
        }
    }

    async fn resolve_tool(
        &self,
        supervisor: &Supervisor,
        name: &str,
    ) -> Result<(ServerName, CallTarget), LookupError> {
        let mut names = self.tool_names(supervisor, Duration::ZERO).await;
        if names.resolve(name).is_none() {
            names = self.tool_names(supervisor, CALL_WAIT).await;
        }
        let (server, tool) = names.resolve(name).ok_or(LookupError::UnknownTool)?;
        let tool = ToolName::new(tool.as_str()).map_err(|error| invalid(&error.to_string()))?;
        Ok((server.clone(), CallTarget::Tool(tool)))
    }

    async fn resolve_prompt(
        &self,
        supervisor: &Supervisor,
        client: &Principal,
        name: &str,
    ) -> Result<(ServerName, CallTarget), ErrorData> {
        let gate = supervisor.gate();
        let is_clipped = name
            .rsplit_once('_')
            .is_some_and(|(_, end)| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let mut candidates = gate.direct_servers().filter_map(|(server, _, prefix)| match prefix {
            "" => Some((server.clone(), name.to_owned())),
            prefix => Some((server.clone(), name.strip_prefix(prefix)?.strip_prefix("__")?.to_owned())),
        });
        let (first, second) = (candidates.next(), candidates.next());
        let resolved = match (first, second) {
            (Some(one), None) if !is_clipped => Some(one),
            _ => {
                let listed = self.list_prompts(supervisor, client).await;
                prompt_names(supervisor, &listed).resolve(name).cloned()
            }
        };
        let unknown = || invalid(&format!("unknown prompt {:?}", truncate(name)));
        let (server, prompt) = resolved.ok_or_else(unknown)?;
        let prompt = PromptName::new(prompt).map_err(|error| invalid(&error.to_string()))?;
        Ok((server, CallTarget::Prompt(prompt)))
    }

    /// Resolves a resource URI to an upstream server. If only one server has `direct` access, returns this server. If
    /// several have it, returns the first that lists the URI, or else the first that lists a URI template that matches
    /// the URI.
    async fn resolve_resource(
        &self,
        supervisor: &Supervisor,
        client: &Principal,
        uri: &str,
    ) -> Result<(ServerName, CallTarget), ErrorData> {
        let server = self.server_of(supervisor, client, uri).await?;
        let uri = ResourceUri::new(uri).map_err(|error| invalid(&error.to_string()))?;
        Ok((server, CallTarget::Resource(uri)))
    }

    async fn server_of(
        &self,
        supervisor: &Supervisor,
        client: &Principal,
        uri: &str,
    ) -> Result<ServerName, ErrorData> {
        let direct: Vec<ServerName> =
            supervisor.gate().direct_servers().map(|(server, ..)| server.clone()).collect();
        if let [one] = direct.as_slice() {
            return Ok(one.clone());
        }
        let listed = self.list_resources(supervisor, client, false).await;
        if let Some((server, ..)) = listed.into_iter().find(|(.., of)| of == uri) {
            return Ok(server);
        }
        let templates = self.list_resources(supervisor, client, true).await;
        let matching =
            templates.into_iter().find(|(.., template)| template == uri || matches_template(template, uri));
        matching.map(|(server, ..)| server).ok_or_else(|| {
            let message = format!("no server lists the resource {:?}", truncate(uri));
            ErrorData::resource_not_found(message, Some(json!({"uri": truncate(uri)})))
        })
    }
}

/// Reads the parameters of a completion request. If it is about a prompt, replaces the exposed name of the prompt by the
/// upstream server's own name, which `item` contains.
///
/// # Errors
/// The parameters are not those of `completion/complete`.
pub(crate) fn completion_request(
    parameters: Value,
    item: &CallTarget,
) -> Result<CompleteRequestParams, JsonRpcError> {
    let request: Result<CompleteRequestParams, _> = serde_json::from_value(parameters);
    let mut request = request.map_err(|error| json_rpc_error(invalid(&error.to_string())))?;
    if let (Reference::Prompt(reference), CallTarget::Prompt(prompt)) = (&mut request.r#ref, item) {
        reference.name = prompt.to_string();
    }
    Ok(request)
}

/// Converts an error of the MCP library to the message about it.
pub(crate) fn json_rpc_error(error: ErrorData) -> JsonRpcError {
    JsonRpcError { code: error.code.0, message: error.message.into_owned(), data: error.data }
}

fn invalid(message: &str) -> ErrorData {
    ErrorData::invalid_params(message.to_owned(), None)
}

fn truncate(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// Whether a URI template may produce this URI: the literal parts of the template occur in the URI in the same order.
fn matches_template(template: &str, uri: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_matches_uris_with_its_literal_parts() {
        for (template, uri, expected) in [
            ("test://t/{id}/data", "test://t/123/data", true),
            ("test://t/{id}/data", "test://t/123/date", false),
            ("test://t/{id}/data", "x://t/123/data", false),
            ("file:///{+path}", "file:///a/b", true),
            ("{scheme}://a", "x://a", true),
            ("test://t", "test://t/1", false),
        ] {
            assert_eq!(matches_template(template, uri), expected, "{template} {uri}");
        }
    }
}

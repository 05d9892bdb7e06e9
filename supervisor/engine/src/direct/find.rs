//! What the names stand for that AI clients use.

use lockhouse_messages::Target;
use lockhouse_policies::{Item, Listing};
use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};
use rmcp::model::{CompleteRequestParams, ErrorData, Reference};
use serde_json::json;

use super::lists::prompt_names;
use super::{Client, Direct};
use crate::supervisor::Supervisor;

/// Characters of a name that nobody knows, as an answer repeats them.
const NAME_CHARS_MAX: usize = 80;

/// Why a name stands for nothing.
pub(crate) enum Unknown {
    /// No tool has it.
    Tool,
    Other(ErrorData),
}

impl From<ErrorData> for Unknown {
    fn from(error: ErrorData) -> Self {
        Self::Other(error)
    }
}

impl Direct {
    /// The server that a client means, and what of it.
    pub(crate) async fn find(
        &self,
        supervisor: &Supervisor,
        client: &Client,
        target: &Target,
    ) -> Result<(ServerName, Item), Unknown> {
        match target {
            Target::Tool(name) => self.tool(supervisor, name).await,
            Target::Prompt(name) => Ok(self.prompt(supervisor, client, name).await?),
            Target::Resource(uri) => Ok(self.resource(supervisor, client, uri).await?),
        }
    }

    async fn tool(&self, supervisor: &Supervisor, name: &str) -> Result<(ServerName, Item), Unknown> {
        let mut names = self.tool_names(supervisor, false).await;
        if names.thing(name).is_none() {
            names = self.tool_names(supervisor, true).await;
        }
        let (server, tool) = names.thing(name).ok_or(Unknown::Tool)?;
        let tool = ToolName::new(tool.as_str()).map_err(|error| invalid(&error.to_string()))?;
        Ok((server.clone(), Item::Tool(tool)))
    }

    async fn prompt(
        &self,
        supervisor: &Supervisor,
        client: &Client,
        name: &str,
    ) -> Result<(ServerName, Item), ErrorData> {
        let gate = supervisor.gate();
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
                let listed = self.listed(supervisor, client, Listing::Prompts).await;
                prompt_names(&listed).thing(name).cloned()
            }
        };
        let unknown = || invalid(&format!("unknown prompt {:?}", beginning(name)));
        let (server, prompt) = found.ok_or_else(unknown)?;
        let prompt = PromptName::new(prompt).map_err(|error| invalid(&error.to_string()))?;
        Ok((server, Item::Prompt(prompt)))
    }

    /// A resource, and its server: the only one there is; or the first that lists it, or a template that makes it.
    async fn resource(
        &self,
        supervisor: &Supervisor,
        client: &Client,
        uri: &str,
    ) -> Result<(ServerName, Item), ErrorData> {
        let server = self.server_of(supervisor, client, uri).await?;
        let uri = ResourceUri::new(uri).map_err(|error| invalid(&error.to_string()))?;
        Ok((server, Item::Resource(uri)))
    }

    async fn server_of(
        &self,
        supervisor: &Supervisor,
        client: &Client,
        uri: &str,
    ) -> Result<ServerName, ErrorData> {
        let direct: Vec<ServerName> = supervisor.gate().direct().map(|(server, ..)| server.clone()).collect();
        if let [one] = direct.as_slice() {
            return Ok(one.clone());
        }
        let listed = self.resources(supervisor, client, false).await;
        if let Some((server, ..)) = listed.into_iter().find(|(.., of)| of == uri) {
            return Ok(server);
        }
        let templates = self.resources(supervisor, client, true).await;
        let made = templates.into_iter().find(|(.., template)| template == uri || makes(template, uri));
        made.map(|(server, ..)| server).ok_or_else(|| {
            let told = format!("no server lists the resource {:?}", beginning(uri));
            ErrorData::resource_not_found(told, Some(json!({"uri": beginning(uri)})))
        })
    }
}

/// Puts the name of a prompt that its server knows into a request about it.
pub(crate) fn name_as_the_server_does(request: &mut CompleteRequestParams, item: &Item) {
    if let (Reference::Prompt(reference), Item::Prompt(prompt)) = (&mut request.r#ref, item) {
        reference.name = prompt.to_string();
    }
}

fn invalid(message: &str) -> ErrorData {
    ErrorData::invalid_params(message.to_owned(), None)
}

fn beginning(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
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

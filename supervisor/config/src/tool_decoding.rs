//! Applies the key `decode` of the configuration table `[tools]` to all servers, also to those from the files
//! of other AI clients. The key says when text results that are JSON are decoded to values.

use std::collections::BTreeMap;

use lockhouse_policies::most_similar_name;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, TextDecoding};

/// Sets in `servers` when text results that are JSON are decoded to values. The keys of `configured` have the form
/// `SERVER` or `SERVER.TOOL`. Logs a warning for a key whose server does not exist.
pub(super) fn apply(
    servers: &mut BTreeMap<ServerName, ServerDefinition>,
    configured: &BTreeMap<String, TextDecoding>,
) {
    for (name, decoding) in configured {
        let (server, tool) =
            name.split_once('.').map_or((name.as_str(), None), |(server, tool)| (server, Some(tool)));
        let found = servers.iter_mut().find(|(name, _)| name.as_str() == server);
        match (found, tool) {
            (Some((_, definition)), None) => definition.decode.default = *decoding,
            (Some((_, definition)), Some(tool)) => definition.decode.tools.push((tool.to_owned(), *decoding)),
            (None, _) => {
                let near = most_similar_name(server, servers.keys().map(ServerName::as_str));
                let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                tracing::warn!("tools.decode: there is no server {server:?}{near}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_upstream::{Endpoint, ServerCommand, ServerLimits};

    use super::*;

    #[test]
    fn servers_and_tools_are_found_by_name() {
        let definition = || {
            let endpoint = Endpoint::Stdio(ServerCommand::default());
            ServerDefinition::new(endpoint, ServerLimits::default(), String::new())
        };
        let names = ["files", "github"].map(|name| ServerName::new(name).expect("a name"));
        let mut servers: BTreeMap<_, _> = names.into_iter().map(|name| (name, definition())).collect();
        let configured = [
            ("files", TextDecoding::Text),
            ("files.read_*", TextDecoding::Json),
            ("files.read_all", TextDecoding::List),
            ("nowhere", TextDecoding::Text),
        ];
        apply(&mut servers, &configured.map(|(name, decoding)| (name.to_owned(), decoding)).into());
        let decoding = |server: &str, tool: &str| {
            let found = servers.iter().find(|(name, _)| name.as_str() == server).expect("a server");
            found.1.decode.for_tool(tool)
        };
        assert_eq!(decoding("files", "write"), TextDecoding::Text);
        assert_eq!(decoding("files", "read_one"), TextDecoding::Json);
        assert_eq!(decoding("files", "read_all"), TextDecoding::List);
        assert_eq!(decoding("github", "read_one"), TextDecoding::Auto);
    }
}

//! The OAuth scopes that calls of tools need.

use lockhouse_policies::CallTarget;

use super::tool_pattern::names_tool;

/// The scopes that calls of tools need, by the name of the tool, or the beginning of names and `*`. Each text has scopes that are
/// separated by spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ToolScopes(pub Vec<(String, String)>);

impl ToolScopes {
    /// Returns the scopes of a token for a call, in their order and separated by spaces: `always`, and those of the tool.
    pub(super) fn of(&self, always: &[String], item: &CallTarget) -> String {
        let of_tool = self.0.iter().filter(|(pattern, _)| match item {
            CallTarget::Tool(tool) => names_tool(pattern, tool.as_str()),
            CallTarget::Resource(_) | CallTarget::Prompt(_) | CallTarget::List(_) => false,
        });
        let of_tool = of_tool.flat_map(|(_, scopes)| scopes.split_ascii_whitespace());
        let mut scopes: Vec<&str> = always.iter().map(String::as_str).chain(of_tool).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::ToolName;

    use super::*;

    #[test]
    fn a_call_needs_the_scopes_of_all_patterns_that_match_its_tool() {
        let text = |(pattern, scopes): (&str, &str)| (pattern.to_owned(), scopes.to_owned());
        let scopes = ToolScopes(
            [("look_*", "read"), ("look_deep", "read audit"), ("add", "write read")].map(text).into(),
        );
        let tool = |name: &str| CallTarget::Tool(ToolName::new(name).expect("a name"));
        let always = ["base".to_owned()];
        for (item, expected) in [
            (tool("look_up"), "base read"),
            (tool("look_deep"), "audit base read"),
            (tool("add"), "base read write"),
            (tool("add_more"), "base"),
        ] {
            assert_eq!(scopes.of(&always, &item), expected, "{item}");
        }
        assert_eq!(scopes.of(&[], &tool("x")), "");
    }
}

//! Patterns for names of tools in the entry of a server.

/// Whether a pattern names a tool: by its name, or by the beginning of names and `*`.
pub(super) fn names_tool(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(stem) => tool.starts_with(stem),
        None => pattern == tool,
    }
}

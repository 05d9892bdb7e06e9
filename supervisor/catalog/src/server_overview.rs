//! Formats the overview of upstream servers in the description of the tool `run_code`: the servers' names and numbers
//! of tools, and the signatures of all their tools if these are short enough.

use super::token_estimate::estimated_tokens;

/// Maximum length of the list of server names and numbers of tools, in estimated tokens.
const NAMES_TOKENS_MAX: usize = 150;

/// An upstream server whose tools an AI client may use, for the overview in a tool description.
#[derive(Debug)]
pub struct ServerOverview<'a> {
    pub name: &'a str,
    pub state: OverviewState,
}

/// What is known about the tools of a server.
#[derive(Debug)]
pub enum OverviewState {
    /// The tools are known. The value is the number of tools that the AI client may use.
    Known(usize),
    /// The server is not connected yet, and its tools are not known.
    Connecting,
    /// The server is not available, and its tools are not known.
    Unavailable,
}

/// Returns the names of the servers, each with its number of tools, or with its state if its tools are not known, such
/// as `calendar 6, github (connecting)`. A list that is too long is cut, and then ends with the number of omitted
/// servers.
pub fn server_names(servers: &[ServerOverview<'_>]) -> String {
    let (mut text, mut tokens) = (String::new(), 0);
    for (position, server) in servers.iter().enumerate() {
        let entry = match server.state {
            OverviewState::Known(tools) => format!("{} {tools}", server.name),
            OverviewState::Connecting => format!("{} (connecting)", server.name),
            OverviewState::Unavailable => format!("{} (unavailable)", server.name),
        };
        tokens += estimated_tokens(&entry) + 1;
        if tokens > NAMES_TOKENS_MAX {
            text.push_str(&format!(" and {} more (list_servers())", servers.len() - position));
            break;
        }
        if position > 0 {
            text.push_str(", ");
        }
        text.push_str(&entry);
    }
    text
}

/// Returns one line for each server: its name, and the signatures of its tools. Returns `None` if there are no servers,
/// or if the lines exceed `tokens_max` estimated tokens. Each item of `servers` is the name of a server and the
/// signatures of its tools.
pub fn all_signatures(
    servers: impl Iterator<Item = (String, Vec<String>)>,
    tokens_max: usize,
) -> Option<String> {
    let (mut lines, mut tokens) = (Vec::new(), 0);
    for (server, signatures) in servers {
        let line = format!("{server}: {}", signatures.join("; "));
        tokens += estimated_tokens(&line) + 1;
        if tokens > tokens_max {
            return None;
        }
        lines.push(line);
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview(name: &str, state: OverviewState) -> ServerOverview<'_> {
        ServerOverview { name, state }
    }

    #[test]
    fn servers_are_listed_with_the_number_of_their_tools() {
        let servers = [
            overview("calendar", OverviewState::Known(6)),
            overview("github", OverviewState::Connecting),
            overview("mail", OverviewState::Unavailable),
        ];
        assert_eq!(server_names(&servers), "calendar 6, github (connecting), mail (unavailable)");
    }

    #[test]
    fn many_servers_are_cut() {
        let names: Vec<String> = (0..100).map(|number| format!("server_{number}")).collect();
        let servers: Vec<_> = names.iter().map(|name| overview(name, OverviewState::Known(1))).collect();
        let text = server_names(&servers);
        assert!(
            text.contains("server_0 1, server_1 1") && text.ends_with(" more (list_servers())"),
            "{text}"
        );
        assert!(estimated_tokens(&text) < NAMES_TOKENS_MAX + 20, "{text}");
    }

    #[test]
    fn signatures_are_listed_if_all_of_them_fit() {
        let servers = || {
            [("a", vec!["one(x: str)".to_owned(), "two()".to_owned()]), ("b", vec!["three()".to_owned()])]
                .into_iter()
                .map(|(name, tools)| (name.to_owned(), tools))
        };
        assert_eq!(all_signatures(servers(), 400).as_deref(), Some("a: one(x: str); two()\nb: three()"));
        assert_eq!(all_signatures(servers(), 10), None);
        assert_eq!(all_signatures(servers(), 0), None);
    }
}

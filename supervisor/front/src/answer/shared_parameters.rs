//! Shows optional parameters that all found tools of a server share, such as `context?: string`, once for the server.

use super::record_types::outside_quotes;
use std::collections::BTreeMap;

/// Minimum number of found tools of one server for which shared parameters are shown once.
const TOOLS_MIN: usize = 3;

/// Removes the optional parameters that all tools of a server share from their signatures, if there are at least
/// [`TOOLS_MIN`] tools. `servers` has the server of each signature. Returns a line for each server with such
/// parameters. In Python, only parameters at the end of all signatures are removed, because arguments can be passed by
/// position.
pub(super) fn extract(servers: &[&str], signatures: &mut [String]) -> Vec<String> {
    let mut by_server: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, server) in servers.iter().enumerate() {
        by_server.entry(server).or_default().push(index);
    }
    let mut lines = Vec::new();
    for (server, indexes) in by_server.into_iter().filter(|(_, indexes)| indexes.len() >= TOOLS_MIN) {
        let parsed: Option<Vec<Signature<'_>>> =
            indexes.iter().map(|index| Signature::parse(&signatures[*index])).collect();
        let Some(parsed) = parsed else { continue };
        let shared: Vec<String> = shared(&parsed).into_iter().map(str::to_owned).collect();
        if shared.is_empty() {
            continue;
        }
        let shortened: Vec<String> = parsed.iter().map(|signature| signature.without(&shared)).collect();
        for (index, signature) in indexes.into_iter().zip(shortened) {
            signatures[index] = signature;
        }
        lines.push(format!("Each of these tools of {server} also takes {}", shared.join(", ")));
    }
    lines
}

/// Returns the optional parameters that all signatures have, in the order of the first signature.
fn shared<'a>(signatures: &[Signature<'a>]) -> Vec<&'a str> {
    let Some((first, others)) = signatures.split_first() else { return Vec::new() };
    let is_shared = |parameter: &&str| others.iter().all(|other| other.parameters.contains(parameter));
    let optional = first.parameters.iter().copied().filter(|parameter| is_optional(parameter));
    let mut shared: Vec<&str> = optional.filter(is_shared).collect();
    loop {
        let before = shared.len();
        for signature in signatures.iter().filter(|signature| signature.is_positional) {
            let own = signature.parameters.iter().rposition(|parameter| !shared.contains(parameter));
            let last = &signature.parameters[own.map_or(0, |own| own + 1)..];
            shared.retain(|parameter| last.contains(parameter));
        }
        if shared.len() == before {
            return shared;
        }
    }
}

/// Whether a parameter such as `a?: string` or `a: str = ...` is optional.
fn is_optional(parameter: &str) -> bool {
    parameter.split(':').next().is_some_and(|name| name.ends_with('?')) || parameter.contains(" = ")
}

/// A signature in three parts.
struct Signature<'a> {
    /// The name of the tool, and the opening bracket.
    name: &'a str,
    parameters: Vec<&'a str>,
    /// The closing bracket, and the result type.
    result: &'a str,
    /// Whether arguments can be passed by position, as in Python.
    is_positional: bool,
}

impl<'a> Signature<'a> {
    /// Parses a signature of Python, `name(a: str, b: int = ...)`, or of TypeScript, `name({ a: string, b?: number })`.
    /// `None` if the text has another form.
    fn parse(text: &'a str) -> Option<Self> {
        let bracket = text.find('(')? + 1;
        let is_positional = !text[bracket..].starts_with("{ ");
        let start = if is_positional { bracket } else { bracket + 2 };
        let mut depth = 0_usize;
        let (mut parameters, mut begin) = (Vec::new(), start);
        for (at, c) in outside_quotes(&text[start..]).map(|(at, c)| (start + at, c)) {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' if depth == 0 => {
                    let end = text[..at].trim_end().len();
                    parameters.extend(Some(&text[begin..end.max(begin)]).filter(|last| !last.is_empty()));
                    let (name, result) = (&text[..start], &text[end..]);
                    return Some(Self { name, parameters, result, is_positional });
                }
                ')' | ']' | '}' => depth -= 1,
                ',' if depth == 0 => {
                    parameters.push(&text[begin..at]);
                    begin = at + 2;
                }
                _ => {}
            }
        }
        None
    }

    fn without(&self, shared: &[String]) -> String {
        let is_own = |parameter: &&&str| !shared.iter().any(|other| other == **parameter);
        let own: Vec<&str> = self.parameters.iter().filter(is_own).copied().collect();
        let name = if own.is_empty() { self.name.trim_end_matches("{ ") } else { self.name };
        let result = if own.is_empty() { self.result.trim_start_matches(" }") } else { self.result };
        format!("{name}{}{result}", own.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extracted(signatures: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut signatures: Vec<String> = signatures.iter().map(|text| (*text).to_owned()).collect();
        let servers = vec!["k8s"; signatures.len()];
        let lines = extract(&servers, &mut signatures);
        (signatures, lines)
    }

    #[test]
    fn shared_optional_parameters_are_shown_once() {
        let (signatures, lines) = extracted(&[
            "pods({ namespace: string, context?: string, wide?: boolean }): Promise<string>",
            "nodes({ context?: string }): Promise<string>",
            "logs({ pod: string, tail?: number, context?: string })",
        ]);
        assert_eq!(
            signatures,
            [
                "pods({ namespace: string, wide?: boolean }): Promise<string>",
                "nodes(): Promise<string>",
                "logs({ pod: string, tail?: number })"
            ]
        );
        assert_eq!(lines, ["Each of these tools of k8s also takes context?: string"]);
    }

    #[test]
    fn python_parameters_before_others_stay_where_they_are() {
        let shared = r#"scope: Literal["a, b)", "c"] = "c""#;
        let (signatures, lines) = extracted(&[
            &format!("a(x: str, {shared}) -> str"),
            &format!("b(x: dict[str, int], y: int = ..., {shared}) -> str"),
            &format!("c({shared}) -> str"),
        ]);
        assert_eq!(
            signatures,
            ["a(x: str) -> str", "b(x: dict[str, int], y: int = ...) -> str", "c() -> str"]
        );
        assert_eq!(lines, [format!("Each of these tools of k8s also takes {shared}")]);
        // The second parameter of `b` is not the second one of its call, if the shared one is removed.
        let before = ["a(z: int = ...)", "b(z: int = ..., y: int = ...)", "c(z: int = ...)"];
        let (signatures, lines) = extracted(&before);
        assert_eq!((signatures, lines), (before.map(str::to_owned).to_vec(), Vec::new()));
    }

    #[test]
    fn required_parameters_few_tools_and_names_alone_stay() {
        for before in [
            vec!["a(x: str)", "b(x: str)", "c(x: str)"],
            vec!["a(x: str = ...)", "b(x: str = ...)"],
            vec!["a", "b", "c"],
            vec!["a(x: str = ...)", "b", "c(x: str = ...)"],
        ] {
            let (signatures, lines) = extracted(&before);
            assert_eq!((signatures.iter().map(String::as_str).collect::<Vec<_>>(), lines.len()), (before, 0));
        }
    }
}

//! Parses placeholders in the syntax of each dialect (AI client's format). Text that is no placeholder in the dialect
//! is kept as it is.

use std::path::Path;

use super::SourceFile;
use crate::placeholders::{Placeholder, Template, TemplatePart};

/// The placeholder syntax of a dialect (AI client's format).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceholderSyntax {
    /// The syntax of Claude Desktop and Codex, which have no placeholders.
    None,
    /// The syntax of Claude Code: `${VAR}` and `${VAR:-default}`.
    Braces,
    /// The syntax of Gemini CLI and Qwen Code: `$VAR`, `${VAR}` and `${VAR:-default}`.
    Shell,
    /// The syntax of Cursor and VS Code: `${env:VAR}`, `${userHome}`, `${workspaceFolder}` and others. VS Code also has
    /// `${input:ID}`.
    Editor,
    /// The syntax of Windsurf: `${env:VAR}` and `${file:PATH}`.
    Windsurf,
    /// The syntax of OpenCode: `{env:VAR}` and `{file:PATH}`.
    OpenCode,
    /// The syntax of Continue: `${{ secrets.NAME }}` and `${{ inputs.NAME }}`. Lockhouse reads both from environment
    /// variables.
    Continue,
    /// The syntax of Lockhouse's own files: `${env:VAR}`, `${file:PATH}`, `${cred:NAME}` and `${keyring:SERVICE/USER}`.
    /// An unknown placeholder is an error.
    Own,
}

/// The error for a `${` in Lockhouse's own files that begins no known placeholder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownPlaceholder;

pub(crate) const PLACEHOLDER_FORMS: &str = "${env:NAME}, ${env:NAME:-DEFAULT}, ${file:/PATH}, ${cred:NAME}, ${keyring:SERVICE/USER}; for a plain ${ write $${";

impl PlaceholderSyntax {
    /// Parses a text into literal parts and placeholders. `file` is the servers file that contains the text.
    pub(crate) fn parse(self, text: &str, file: &SourceFile<'_>) -> Result<Template, UnknownPlaceholder> {
        let open = match self {
            Self::None => return Ok(Template::literal(text)),
            Self::OpenCode => "{",
            Self::Own => return parse_own(text, file),
            Self::Continue => return Ok(parse_continue(text)),
            _ => "${",
        };
        let mut template = Template::default();
        let mut rest = text;
        while let Some(start) = rest.find(if self == Self::Shell { "$" } else { open }) {
            template.push(TemplatePart::Text(rest[..start].into()));
            rest = &rest[start..];
            let found = match rest.strip_prefix(open).and_then(|after| after.split_once('}')) {
                Some((body, after)) => self.variable(body, file).map(|piece| (piece, after)),
                None if self == Self::Shell => bare_variable(&rest[1..]),
                None => None,
            };
            match found {
                Some((piece, after)) => {
                    template.push(piece);
                    rest = after;
                }
                // The character is literal text; a placeholder may begin after it.
                None => {
                    template.push(TemplatePart::Text(rest[..1].into()));
                    rest = &rest[1..];
                }
            }
        }
        template.push(TemplatePart::Text(rest.into()));
        Ok(template)
    }

    fn variable(self, body: &str, file: &SourceFile<'_>) -> Option<TemplatePart> {
        match self {
            Self::Braces | Self::Shell => variable_with_default(body),
            Self::Editor => editor_variable(body, file),
            Self::Windsurf | Self::OpenCode => match body.split_once(':')? {
                ("env", name) => Some(variable_placeholder(name, None)),
                ("file", path) => Some(file_placeholder(path, file)),
                _ => None,
            },
            Self::None | Self::Own | Self::Continue => None,
        }
    }
}

fn variable_placeholder(name: &str, default: Option<&str>) -> TemplatePart {
    let default = default.map(str::to_owned);
    TemplatePart::Placeholder(Placeholder::Environment { name: name.to_owned(), default })
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn variable_with_default(body: &str) -> Option<TemplatePart> {
    let (name, default) = body.split_once(":-").map_or((body, None), |(name, default)| (name, Some(default)));
    is_name(name).then(|| variable_placeholder(name, default))
}

/// Parses a placeholder `$VAR`. `after` is the text that follows the `$`. Returns the placeholder and the text after
/// it; `None` if no variable name follows the `$`.
fn bare_variable(after: &str) -> Option<(TemplatePart, &str)> {
    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
    is_name(&after[..end]).then(|| (variable_placeholder(&after[..end], None), &after[end..]))
}

/// Returns the placeholder for a file. A relative path is relative to the directory of the servers file.
fn file_placeholder(path: &str, file: &SourceFile<'_>) -> TemplatePart {
    let path = file.environment.expand_home(path);
    let directory = Path::new(file.path).parent().unwrap_or(Path::new(""));
    TemplatePart::Placeholder(Placeholder::File(directory.join(path)))
}

fn editor_variable(body: &str, file: &SourceFile<'_>) -> Option<TemplatePart> {
    let workspace = || file.workspace().display().to_string();
    let text = match body {
        "userHome" => file.environment.home.as_ref()?.display().to_string(),
        "workspaceFolder" | "workspaceRoot" | "cwd" => workspace(),
        "workspaceFolderBasename" => workspace().rsplit('/').next().unwrap_or_default().to_owned(),
        "pathSeparator" | "/" => "/".to_owned(),
        _ => return editor_placeholder(body, file),
    };
    Some(TemplatePart::Text(text))
}

fn editor_placeholder(body: &str, file: &SourceFile<'_>) -> Option<TemplatePart> {
    Some(match body.split_once(':')? {
        ("env", name) => variable_placeholder(name, None),
        ("input", id) => {
            let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
            let variable = format!("LOCKHOUSE_INPUT_{}", id.chars().map(letter).collect::<String>());
            let known = file.inputs.iter().find(|(known, _)| known == id);
            let description = known.and_then(|(_, description)| description.clone());
            TemplatePart::Placeholder(Placeholder::Input { variable, description })
        }
        ("command" | "config", _) => {
            TemplatePart::Placeholder(Placeholder::ClientOnly(format!("${{{body}}}")))
        }
        _ => return None,
    })
}

/// Parses placeholders in the syntax of Continue. Continue takes the values from the environment or from `.env` files;
/// Lockhouse takes them only from the environment.
fn parse_continue(text: &str) -> Template {
    let mut template = Template::default();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let found = after.split_once("}}").and_then(|(body, after)| {
            let (source, name) = body.trim().split_once('.')?;
            (matches!(source, "secrets" | "inputs") && is_name(name)).then_some((name, after))
        });
        template.push(TemplatePart::Text(before.into()));
        match found {
            Some((name, after)) => {
                template.push(variable_placeholder(name, None));
                rest = after;
            }
            None => {
                template.push(TemplatePart::Text("${{".into()));
                rest = after;
            }
        }
    }
    template.push(TemplatePart::Text(rest.into()));
    template
}

/// Parses placeholders in Lockhouse's own syntax, in which `$$` before a brace is an escaped `$`.
fn parse_own(text: &str, file: &SourceFile<'_>) -> Result<Template, UnknownPlaceholder> {
    let mut template = Template::default();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let before = rest[..start].trim_end_matches('$');
        let dollars = start - before.len() + 1;
        template.push(TemplatePart::Text(format!("{before}{}", "$".repeat(dollars / 2))));
        rest = &rest[start + 1..];
        if dollars.is_multiple_of(2) {
            continue;
        }
        let (body, after) = rest[1..].split_once('}').ok_or(UnknownPlaceholder)?;
        template.push(own_placeholder(body, file).ok_or(UnknownPlaceholder)?);
        rest = after;
    }
    template.push(TemplatePart::Text(rest.into()));
    Ok(template)
}

fn own_placeholder(body: &str, file: &SourceFile<'_>) -> Option<TemplatePart> {
    let plain = |name: &str| !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    match body.split_once(':')? {
        ("env", body) => variable_with_default(body),
        ("file", path) if !path.is_empty() => Some(file_placeholder(path, file)),
        ("cred", name) if plain(name) => {
            Some(TemplatePart::Placeholder(Placeholder::Credential(name.into())))
        }
        ("keyring", entry) => {
            let (service, user) =
                entry.split_once('/').filter(|(service, user)| !service.is_empty() && !user.is_empty())?;
            Some(TemplatePart::Placeholder(Placeholder::Keyring {
                service: service.into(),
                user: user.into(),
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placeholders::Environment;

    #[test]
    fn each_dialect_knows_its_own_variables_and_no_others() {
        let variables = [("A", "va")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let environment = Environment {
            variables,
            home: Some("/home/u".into()),
            directory: "/srv/app".into(),
            ..Environment::default()
        };
        let file = SourceFile { path: "/home/u/x.json", environment: &environment, inputs: Vec::new() };
        let text = "$A ${A} ${B:-b} ${env:A} {env:A} ${userHome} ${x y} $";
        for (syntax, resolved) in [
            (PlaceholderSyntax::None, "$A ${A} ${B:-b} ${env:A} {env:A} ${userHome} ${x y} $"),
            (PlaceholderSyntax::Windsurf, "$A ${A} ${B:-b} va {env:A} ${userHome} ${x y} $"),
            (PlaceholderSyntax::OpenCode, "$A ${A} ${B:-b} $va va ${userHome} ${x y} $"),
            (PlaceholderSyntax::Editor, "$A ${A} ${B:-b} va {env:A} /home/u ${x y} $"),
        ] {
            let template = syntax.parse(text, &file).expect("a template");
            assert_eq!(template.resolve(&environment).as_deref(), Ok(resolved), "{syntax:?}");
        }
        for (syntax, text, resolved) in [
            (PlaceholderSyntax::Braces, "$A ${A} ${B:-b} ${env:A}", "$A va b ${env:A}"),
            (PlaceholderSyntax::Shell, "$A/${A} ${B:-b} $1 $", "va/va b $1 $"),
            (PlaceholderSyntax::Editor, "${workspaceFolder}${/}${workspaceFolderBasename}", "/srv/app/app"),
            (
                PlaceholderSyntax::Continue,
                "${{ secrets.A }}/${{inputs.A}} ${{ x }} ${A} ${{",
                "va/va ${{ x }} ${A} ${{",
            ),
            (PlaceholderSyntax::Own, "a${env:A}b $${A} ${env:B:-}", "avab ${A} "),
            (PlaceholderSyntax::Own, "$$${env:A} $$$${A} $$ $", "$va $${A} $$ $"),
        ] {
            let template = syntax.parse(text, &file).expect("a template");
            assert_eq!(template.resolve(&environment).as_deref(), Ok(resolved), "{syntax:?}");
        }
        for text in ["${A}", "${env:}", "${env:A", "${cred:../x}", "${keyring:x}", "${file:}"] {
            assert_eq!(PlaceholderSyntax::Own.parse(text, &file), Err(UnknownPlaceholder), "{text}");
        }
    }

    #[test]
    fn what_is_written_in_our_own_syntax_reads_the_same() {
        let environment = Environment::default();
        let file = SourceFile { path: "/x/config.toml", environment: &environment, inputs: Vec::new() };
        for text in
            ["${env:A}-$${x}", "${env:A:-b}", "${file:/p}", "${cred:n}", "${keyring:s/u}", "plain $ {"]
        {
            let template = PlaceholderSyntax::Own.parse(text, &file).expect("a template");
            assert_eq!(template.to_own_syntax(), text);
        }
    }
}

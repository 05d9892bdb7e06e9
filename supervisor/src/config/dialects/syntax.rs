//! How each dialect writes a variable. What is no variable in a dialect is text there.

use std::path::Path;

use super::Place;
use crate::config::references::{Piece, Reference, Template};

/// One way of writing variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// Claude Desktop and Codex: everything is text.
    None,
    /// Claude Code: `${VAR}` and `${VAR:-default}`.
    Braces,
    /// Gemini CLI and Qwen: as Claude Code, and `$VAR`.
    Shell,
    /// Cursor, and VS Code, which also has `${input:ID}`.
    Editor,
    /// Windsurf: `${env:VAR}` and `${file:PATH}`.
    Windsurf,
    /// OpenCode: `{env:VAR}` and `{file:PATH}`.
    OpenCode,
    /// Lockhouse itself: an unknown reference is a fault.
    Own,
}

/// In our own files every `${` begins a reference, and one that is not known is a mistake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownReference;

pub(crate) const OWN_REFERENCES: &str = "${env:NAME}, ${env:NAME:-DEFAULT}, ${file:/PATH}, ${cred:NAME}, ${keyring:SERVICE/USER}; for a plain ${ write $${";

impl Syntax {
    /// Finds the variables of a text.
    pub(crate) fn template(self, text: &str, place: &Place<'_>) -> Result<Template, UnknownReference> {
        let open = match self {
            Self::None => return Ok(Template::literal(text)),
            Self::OpenCode => "{",
            Self::Own => return own(text, place),
            _ => "${",
        };
        let mut template = Template::default();
        let mut rest = text;
        while let Some(start) = rest.find(if self == Self::Shell { "$" } else { open }) {
            template.push(Piece::Text(rest[..start].into()));
            rest = &rest[start..];
            let found = match rest.strip_prefix(open).and_then(|after| after.split_once('}')) {
                Some((body, after)) => self.variable(body, place).map(|piece| (piece, after)),
                None if self == Self::Shell => bare(&rest[1..]),
                None => None,
            };
            match found {
                Some((piece, after)) => {
                    template.push(piece);
                    rest = after;
                }
                // One character of text; variables may begin after it.
                None => {
                    template.push(Piece::Text(rest[..1].into()));
                    rest = &rest[1..];
                }
            }
        }
        template.push(Piece::Text(rest.into()));
        Ok(template)
    }

    fn variable(self, body: &str, place: &Place<'_>) -> Option<Piece> {
        match self {
            Self::Braces | Self::Shell => with_default(body),
            Self::Editor => editor(body, place),
            Self::Windsurf | Self::OpenCode => match body.split_once(':')? {
                ("env", name) => Some(environment(name, None)),
                ("file", path) => Some(file(path, place)),
                _ => None,
            },
            Self::None | Self::Own => None,
        }
    }
}

fn environment(name: &str, default: Option<&str>) -> Piece {
    let default = default.map(str::to_owned);
    Piece::Reference(Reference::Environment { name: name.to_owned(), default })
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn with_default(body: &str) -> Option<Piece> {
    let (name, default) = body.split_once(":-").map_or((body, None), |(name, default)| (name, Some(default)));
    is_name(name).then(|| environment(name, default))
}

/// `$VAR`, from behind the `$`.
fn bare(after: &str) -> Option<(Piece, &str)> {
    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
    is_name(&after[..end]).then(|| (environment(&after[..end], None), &after[end..]))
}

/// Relative paths are relative to the file that has them.
fn file(path: &str, place: &Place<'_>) -> Piece {
    let path = place.surroundings.expand_home(path);
    let directory = Path::new(place.path).parent().unwrap_or(Path::new(""));
    Piece::Reference(Reference::File(directory.join(path)))
}

fn editor(body: &str, place: &Place<'_>) -> Option<Piece> {
    let workspace = || place.workspace().display().to_string();
    let text = match body {
        "userHome" => place.surroundings.home.as_ref()?.display().to_string(),
        "workspaceFolder" | "workspaceRoot" | "cwd" => workspace(),
        "workspaceFolderBasename" => workspace().rsplit('/').next().unwrap_or_default().to_owned(),
        "pathSeparator" | "/" => "/".to_owned(),
        _ => return editor_lookup(body, place),
    };
    Some(Piece::Text(text))
}

fn editor_lookup(body: &str, place: &Place<'_>) -> Option<Piece> {
    Some(match body.split_once(':')? {
        ("env", name) => environment(name, None),
        ("input", id) => {
            let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
            let variable = format!("LOCKHOUSE_INPUT_{}", id.chars().map(letter).collect::<String>());
            let known = place.inputs.iter().find(|(known, _)| known == id);
            let description = known.and_then(|(_, description)| description.clone());
            Piece::Reference(Reference::Input { variable, description })
        }
        ("command" | "config", _) => Piece::Reference(Reference::Foreign(format!("${{{body}}}"))),
        _ => return None,
    })
}

/// Two `$` before a brace are one that means itself.
fn own(text: &str, place: &Place<'_>) -> Result<Template, UnknownReference> {
    let mut template = Template::default();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let before = rest[..start].trim_end_matches('$');
        let dollars = start - before.len() + 1;
        template.push(Piece::Text(format!("{before}{}", "$".repeat(dollars / 2))));
        rest = &rest[start + 1..];
        if dollars.is_multiple_of(2) {
            continue;
        }
        let (body, after) = rest[1..].split_once('}').ok_or(UnknownReference)?;
        template.push(own_reference(body, place).ok_or(UnknownReference)?);
        rest = after;
    }
    template.push(Piece::Text(rest.into()));
    Ok(template)
}

fn own_reference(body: &str, place: &Place<'_>) -> Option<Piece> {
    let plain = |name: &str| !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    match body.split_once(':')? {
        ("env", body) => with_default(body),
        ("file", path) if !path.is_empty() => Some(file(path, place)),
        ("cred", name) if plain(name) => Some(Piece::Reference(Reference::Credential(name.into()))),
        ("keyring", entry) => {
            let (service, user) =
                entry.split_once('/').filter(|(service, user)| !service.is_empty() && !user.is_empty())?;
            Some(Piece::Reference(Reference::Keyring { service: service.into(), user: user.into() }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::references::Surroundings;

    #[test]
    fn each_dialect_knows_its_own_variables_and_no_others() {
        let environment = [("A", "va")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let surroundings =
            Surroundings { environment, home: Some("/home/u".into()), directory: "/srv/app".into() };
        let place = Place { path: "/home/u/x.json", surroundings: &surroundings, inputs: Vec::new() };
        let text = "$A ${A} ${B:-b} ${env:A} {env:A} ${userHome} ${x y} $";
        for (syntax, resolved) in [
            (Syntax::None, "$A ${A} ${B:-b} ${env:A} {env:A} ${userHome} ${x y} $"),
            (Syntax::Windsurf, "$A ${A} ${B:-b} va {env:A} ${userHome} ${x y} $"),
            (Syntax::OpenCode, "$A ${A} ${B:-b} $va va ${userHome} ${x y} $"),
            (Syntax::Editor, "$A ${A} ${B:-b} va {env:A} /home/u ${x y} $"),
        ] {
            let template = syntax.template(text, &place).expect("a template");
            assert_eq!(template.resolve(&surroundings).as_deref(), Ok(resolved), "{syntax:?}");
        }
        for (syntax, text, resolved) in [
            (Syntax::Braces, "$A ${A} ${B:-b} ${env:A}", "$A va b ${env:A}"),
            (Syntax::Shell, "$A/${A} ${B:-b} $1 $", "va/va b $1 $"),
            (Syntax::Editor, "${workspaceFolder}${/}${workspaceFolderBasename}", "/srv/app/app"),
            (Syntax::Own, "a${env:A}b $${A} ${env:B:-}", "avab ${A} "),
            (Syntax::Own, "$$${env:A} $$$${A} $$ $", "$va $${A} $$ $"),
        ] {
            let template = syntax.template(text, &place).expect("a template");
            assert_eq!(template.resolve(&surroundings).as_deref(), Ok(resolved), "{syntax:?}");
        }
        for text in ["${A}", "${env:}", "${env:A", "${cred:../x}", "${keyring:x}", "${file:}"] {
            assert_eq!(Syntax::Own.template(text, &place), Err(UnknownReference), "{text}");
        }
    }

    #[test]
    fn what_is_written_in_our_own_syntax_reads_the_same() {
        let surroundings = Surroundings::default();
        let place = Place { path: "/x/config.toml", surroundings: &surroundings, inputs: Vec::new() };
        for text in
            ["${env:A}-$${x}", "${env:A:-b}", "${file:/p}", "${cred:n}", "${keyring:s/u}", "plain $ {"]
        {
            let template = Syntax::Own.template(text, &place).expect("a template");
            assert_eq!(template.to_own_syntax(), text);
        }
    }
}

//! Tests of the names of types: a name that the glossary gives to one type is defined once, and a name that the glossary
//! excludes is not defined at all.

use std::collections::{BTreeMap, BTreeSet};

use lockhouse_tests::{Table, ensure, equal};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{ItemEnum, ItemStruct, ItemTrait, ItemType, ItemUnion, Macro};

use crate::layering::crates::CRATES;
use crate::layering::source::{Source, root, sources};

/// Words that several crates could use as the name of a type. The glossary must give each to one type, or exclude it.
const COMMON_WORDS: [&str; 9] =
    ["Answer", "Event", "Request", "Refusal", "Effect", "Exchange", "Shared", "Settings", "Limits"];

/// What the glossary says about the names of types.
#[derive(Debug, Default, PartialEq)]
struct TypeNames {
    /// The names in the column *where it appears*, before the words "in code": each belongs to one type.
    given: BTreeSet<String>,
    /// The names in the column *not used*: no type has one.
    excluded: BTreeSet<String>,
}

impl TypeNames {
    /// Parses the rows of the glossary, which have the columns *term*, *meaning*, *where it appears* and *not used*.
    fn parse(glossary: &str) -> Self {
        let mut names = Self::default();
        for row in glossary.lines().filter(|line| line.starts_with("| ")) {
            let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
            let [_, _, places, excluded] = cells[..] else { continue };
            for place in places.split(';').filter_map(|place| place.trim().strip_suffix("in code")) {
                names.given.extend(quoted_type_names(place));
            }
            names.excluded.extend(quoted_type_names(excluded));
        }
        names
    }
}

/// Returns the names of types among the words in backticks.
fn quoted_type_names(text: &str) -> impl Iterator<Item = String> {
    let is_type_name = |word: &&str| {
        word.starts_with(|first: char| first.is_ascii_uppercase())
            && word.chars().all(|letter| letter.is_ascii_alphanumeric())
            && word.contains(|letter: char| letter.is_ascii_lowercase())
    };
    text.split('`').skip(1).step_by(2).filter(is_type_name).map(str::to_owned)
}

/// The paths of the files in which each type is defined, once for each definition. Associated types are not counted.
#[derive(Debug, Default)]
struct Definitions {
    /// The path of the visited file.
    path: String,
    files: BTreeMap<String, Vec<String>>,
}

impl Definitions {
    fn of(sources: impl IntoIterator<Item = Source>) -> Self {
        let mut definitions = Self::default();
        for source in sources {
            definitions.path.clone_from(&source.path);
            definitions.visit_file(&source.tree);
        }
        definitions
    }

    /// Returns the files that define a type with this name.
    fn files(&self, name: &str) -> &[String] {
        self.files.get(name).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, name: &impl ToString) {
        self.files.entry(name.to_string()).or_default().push(self.path.clone());
    }

    /// Finds the definitions in the tokens of a macro, such as `table!`.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut is_definition = false;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if is_definition => {
                    self.add(&name);
                    is_definition = false;
                }
                TokenTree::Ident(word) => {
                    is_definition =
                        ["struct", "enum", "trait", "union"].iter().any(|keyword| word == keyword);
                }
                TokenTree::Group(group) => {
                    self.add_tokens(group.stream());
                    is_definition = false;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => is_definition = false,
            }
        }
    }
}

impl<'ast> Visit<'ast> for Definitions {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.add(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.add(&item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast ItemUnion) {
        self.add(&item.ident);
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        self.add(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.add(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.add_tokens(call.tokens.clone());
    }
}

#[test]
fn each_name_of_the_glossary_belongs_to_one_type() {
    let names = TypeNames::parse(&std::fs::read_to_string(root().join("docs/glossary.md")).unwrap());
    let definitions = Definitions::of(CRATES.iter().flat_map(|(_, folder, _)| sources(folder)));
    let mut table = Table::new("names of types");
    for name in &names.given {
        let files = definitions.files(name);
        table.row(format!("{name} is one type"), ensure(files.len() == 1, files));
    }
    for name in &names.excluded {
        let files = definitions.files(name);
        table.row(format!("{name} is no type"), ensure(files.is_empty(), files));
    }
    for word in COMMON_WORDS {
        let is_decided = names.given.contains(word) != names.excluded.contains(word);
        table.row(format!("the glossary decides about {word}"), ensure(is_decided, "no row, or two"));
    }
    table.finish();
}

/// Control: checks that every kind of definition is found, and that a second definition is.
#[test]
fn the_rules_see_each_definition() {
    let defining = [
        "struct Event;",
        "pub(crate) enum Event { A }",
        "union Event { a: u8 }",
        "trait Event {}",
        "type Event = u8;",
        "fn f() { struct Event; }",
        "mod inner { pub struct Event<'a>(&'a str); }",
        "table! { /// x\n pub(super) struct Event = \"event\" { a: u32 = 1; } }",
        "macro_rules! events { () => { pub enum Event { A } } }",
    ];
    let not_defining = [
        "use other::Event;",
        "enum Message { Event(u8) }",
        "impl Iterator for X { type Event = u8; }",
        "fn f() -> Event { Event::new() }",
        "// struct Event;",
        "const S: &str = \"struct Event;\";",
        "#[cfg(test)] mod tests { struct Event; }",
    ];
    let count = |texts: &[&str]| {
        Definitions::of(texts.iter().map(|text| Source::from_text(text))).files("Event").len()
    };
    let mut table = Table::new("definitions of types");
    for text in defining {
        table.row(format!("found: {text}"), equal(count(&[text]), 1));
    }
    for text in not_defining {
        table.row(format!("not found: {text}"), equal(count(&[text]), 0));
    }
    table.row("two files have two definitions", equal(count(&defining[..2]), 2));
    let glossary = "| term | meaning | where it appears | not used |\n|---|---|---|---|\n\
        | event | what happened | `[events]`; `Event` and `EventLog` in code; `docs/Event.md` | `Shared`; \"news\", `MCP` |\n";
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let expected = TypeNames { given: set(&["Event", "EventLog"]), excluded: set(&["Shared"]) };
    table.row("the columns of the glossary are read", equal(TypeNames::parse(glossary), expected));
    table.finish();
}

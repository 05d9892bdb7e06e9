//! Submitted TypeScript becomes one async function of plain JavaScript, and positions find their way back.

use std::fmt::Write as _;
use std::path::Path;

use oxc::allocator::{Allocator, ArenaBox, TakeIn};
use oxc::ast::ast::{Expression, Program, Statement};
use oxc::ast::builder::AstBuilder;
use oxc::codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc::diagnostics::{OxcDiagnostic, Severity};
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::SemanticBuilder;
use oxc::span::{SourceType, Span};
use oxc::transformer::{TransformOptions, Transformer};

use super::calls::Calls;
use super::marks::{self, AWAITING, RESERVED};
use super::modules::{self, IMPORT, MODULE};
use super::nesting;
use super::positions::{Mapping, Place, Positions};
use super::session_names::{self, DECLARE, SCOPE};

/// The engine's name for the generated code; user code sees `code.ts`.
pub(super) const GENERATED: &str = "lockhouse:code";
/// The same for the code of a skill, whose name follows.
pub(super) const GENERATED_SKILL: &str = "lockhouse:skills/";

/// What the transformer and the map of positions call the submitted code.
const FILE: &str = "code.ts";

/// `with` is for sloppy code; the program itself is not.
const STRICT: &str = "\"use strict\";";

/// A program that is ready to run.
pub(super) struct Translated {
    /// An expression: a function of the two lookups, and in a session of its scope and what makes names there. It gives the async function, and one that tells the byte of the
    /// submitted code at which the latest `await` starts.
    pub(super) javascript: String,
    /// From the generated code to the submitted one.
    pub(super) positions: Positions,
}

/// Why a program cannot run.
pub(super) struct SyntaxError {
    /// In words.
    pub(super) message: String,
    /// Where in the submitted code.
    pub(super) place: Option<Place>,
}

impl SyntaxError {
    fn at(source: &str, span: Span, message: impl Into<String>) -> Self {
        Self { message: message.into(), place: Some(Place::of(source, span.start as usize)) }
    }
}

/// Translates a program.
///
/// # Errors
/// The first thing that is wrong with it.
pub(super) fn translate(source: &str, in_session: bool) -> Result<Translated, SyntaxError> {
    translate_as(source, if in_session { Form::Session } else { Form::Program })
}

/// Translates a skill: a function of the two lookups, which gives an object of what it exports.
///
/// # Errors
/// The first thing that is wrong with it.
pub(super) fn translate_skill(source: &str) -> Result<Translated, SyntaxError> {
    translate_as(source, Form::Skill)
}

/// What the code is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Program,
    /// One of a session's.
    Session,
    /// A module.
    Skill,
}

impl Form {
    /// What stands before and behind the code. A skill gives what it has exported, which is written as `exported`.
    fn wrapping(self, exported: &str) -> (String, String) {
        match self {
            Self::Program => (
                format!("(({MODULE}, {IMPORT}, {AWAITING}) => [async () => {{\n"),
                format!("\n}}, () => {AWAITING}])"),
            ),
            Self::Session => (
                format!(
                    "(({MODULE}, {IMPORT}, {SCOPE}, {DECLARE}, {AWAITING}) => {{ with ({SCOPE}) return [async () => {{ {STRICT}\n"
                ),
                format!("\n}}, () => {AWAITING}] }})"),
            ),
            Self::Skill => (
                format!("(({MODULE}, {IMPORT}, {AWAITING}) => {{ {STRICT}\n"),
                format!("\nreturn {exported};\n}})"),
            ),
        }
    }
}

fn translate_as(source: &str, form: Form) -> Result<Translated, SyntaxError> {
    check_text(source)?;
    let allocator = Allocator::default();
    let kind = SourceType::ts().with_module(true);
    let options =
        ParseOptions { allow_return_outside_function: form != Form::Skill, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, source, kind).with_options(options).parse();
    refuse(source, &parsed.diagnostics)?;
    let mut program = parsed.program;
    let calls = Calls::of(&program);
    check_modules(source, &program, form)?;

    let builder = AstBuilder::new(&allocator);
    let exports = modules::Exports::of(&program);
    rewrite(source, &mut program, &builder, form)?;
    let exported = remove_types(source, &mut program, &allocator, form, &exports)?;
    // After the transformation, which has removed the imports that only types used.
    let (mut head, tail) = form.wrapping(&exported);
    let imports = modules::take_imports(&mut program, &mut head, form == Form::Session);
    if form == Form::Session {
        session_names::keep(&mut program, &builder);
    }
    let options = CodegenOptions {
        comments: CommentOptions::disabled(),
        source_map_path: Some(FILE.into()),
        ..CodegenOptions::default()
    };
    let generated = Codegen::new().with_options(options).build(&program);
    let mappings = generated.map.iter().flat_map(|map| {
        map.get_tokens().map(|token| Mapping {
            generated: (token.get_dst_line(), token.get_dst_col()),
            submitted: (token.get_src_line(), token.get_src_col()),
        })
    });
    let imports = imports.into_iter().map(|span| Place::of(source, span.start as usize)).collect();
    let positions = Positions::new(source, imports, calls, mappings);
    Ok(Translated { javascript: head + &generated.code + &tail, positions })
}

/// What is to be found before anything parses.
fn check_text(source: &str) -> Result<(), SyntaxError> {
    let wrong = |message: &str, at: usize| {
        Err(SyntaxError { message: message.to_owned(), place: Some(Place::of(source, at)) })
    };
    if let Some(at) = nesting::too_deep_at(source) {
        return wrong("the program is nested too deeply", at);
    }
    // It would be a template that an empty one makes.
    if source.trim_start().starts_with("```") {
        return wrong("a Markdown fence is no TypeScript", source.find('`').unwrap_or_default());
    }
    Ok(())
}

/// Imports and top-level `await` where they cannot stand.
fn check_modules(source: &str, program: &Program, form: Form) -> Result<(), SyntaxError> {
    if source.contains("import")
        && let Some(span) = modules::misplaced_import(program)
    {
        let words = "an import stands at the top of the program, and not within a function or block";
        return Err(SyntaxError::at(source, span, words));
    }
    if form == Form::Skill
        && let Some(span) = modules::awaits_at_the_top(program)
    {
        let words = "a skill cannot await outside of a function: it does nothing before it is called";
        return Err(SyntaxError::at(source, span, words));
    }
    Ok(())
}

/// Makes of a module what can stand in a function.
fn rewrite<'a>(
    source: &str,
    program: &mut Program<'a>,
    builder: &AstBuilder<'a>,
    form: Form,
) -> Result<(), SyntaxError> {
    modules::drop_exports(program, builder).map_err(|span| {
        SyntaxError::at(source, span, "a program cannot re-export from a module: import it and use it here")
    })?;
    marks::mark(program, builder).map_err(|span| {
        SyntaxError::at(source, span, format!("names that start with {RESERVED} are the sandbox's own"))
    })?;
    // A program without the word cannot hold the expression, and most do not.
    if source.contains("import") {
        modules::replace_dynamic_imports(program, builder);
    }
    if form != Form::Skill {
        return_last_expression(program, builder);
    }
    Ok(())
}

/// TypeScript becomes JavaScript. Gives the object of what is exported, as it is written.
fn remove_types<'a>(
    source: &str,
    program: &mut Program<'a>,
    allocator: &'a Allocator,
    form: Form,
    exports: &modules::Exports,
) -> Result<String, SyntaxError> {
    let semantic =
        SemanticBuilder::new_compiler().with_enum_eval(true).with_check_syntax_error(true).build(program);
    refuse(source, &semantic.diagnostics)?;
    let scoping = semantic.semantic.into_scoping();
    let exported = exports.written(&scoping);
    let mut options = TransformOptions::default();
    if form == Form::Session {
        // What this program imports may be for the next one.
        options.typescript.only_remove_type_imports = true;
    } else {
        modules::keep_unused_imports(program, &scoping);
    }
    let transformer = Transformer::new(allocator, Path::new(FILE), &options);
    refuse(source, &transformer.build_with_scoping(scoping, program).diagnostics)?;
    Ok(exported)
}

/// The first of several diagnostics is the one that helps; the rest often follow from it.
fn refuse(source: &str, diagnostics: &[OxcDiagnostic]) -> Result<(), SyntaxError> {
    let Some(first) = diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error) else {
        return Ok(());
    };
    let mut message = first.message.to_string();
    if let Some(help) = &first.help {
        let _ = write!(message, " ({help})");
    }
    let place = first.labels.first().map(|label| Place::of(source, label.offset() as usize));
    Err(SyntaxError { message, place })
}

/// The last expression is the result, unless a `return` comes first. Declarations that do nothing by themselves may
/// follow it.
fn return_last_expression<'a>(program: &mut Program<'a>, builder: &AstBuilder<'a>) {
    // `"text"` alone reads as a directive.
    if program.body.is_empty()
        && let Some(directive) = program.directives.pop()
    {
        let span = directive.span;
        let value = Expression::StringLiteral(ArenaBox::new_in(directive.expression, builder));
        program.body.push(Statement::new_return_statement(span, Some(value), builder));
        return;
    }
    let does_nothing = |statement: &&mut Statement| {
        matches!(
            statement,
            Statement::EmptyStatement(_)
                | Statement::FunctionDeclaration(_)
                | Statement::ImportDeclaration(_)
                | Statement::TSInterfaceDeclaration(_)
                | Statement::TSTypeAliasDeclaration(_)
        )
    };
    let Some(last) = program.body.iter_mut().rev().find(|statement| !does_nothing(statement)) else { return };
    if let Statement::ExpressionStatement(statement) = last {
        let span = statement.span;
        let value = statement.expression.take_in(builder);
        *last = Statement::new_return_statement(span, Some(value), builder);
    }
}

/// The JavaScript of a program, or what is wrong with it.
#[cfg(test)]
pub(super) fn translated(source: &str) -> String {
    translate(source, false)
        .map_or_else(|error| format!("SyntaxError: {}", error.message), |done| done.javascript)
}

/// The JavaScript of a session's program.
#[cfg(test)]
pub(super) fn translated_in_session(source: &str) -> String {
    translate(source, true)
        .map_or_else(|error| format!("SyntaxError: {}", error.message), |done| done.javascript)
}

#[cfg(test)]
mod tests {
    use super::super::positions::Place;
    use super::{SyntaxError, Translated, translate, translated};

    #[test]
    fn the_last_expression_is_returned() {
        for (source, expected) in [
            ("1 + 1", "return 1 + 1;"),
            ("'text'", "return \"text\";"),
            ("main(); function main() {}", "return main();"),
            ("f(); interface I {} type T = I;", "return f();"),
            ("export default x", "return x;"),
        ] {
            assert!(translated(source).contains(expected), "{source} became {}", translated(source));
        }
        for source in
            ["const x = 1", "namespace N { export const a = 1 }", "if (x) { y }", "f(); class C {}", ""]
        {
            assert!(
                !translated(source).contains("return x") && !translated(source).contains("return f"),
                "{source}"
            );
        }
    }

    #[test]
    fn syntax_errors_have_a_place() {
        let place = |source| translate(source, false).err().and_then(|SyntaxError { place, .. }| place);
        assert_eq!(place("let a = 1;\nlet b = ;"), Some(Place { line: 2, column: 9 }));
        assert_eq!(place("let a = 1;\nlet a = 2;").map(|place| place.line), Some(1));
        assert_eq!(place(&"(".repeat(100_000)).map(|place| place.line), Some(1));
    }

    #[test]
    fn positions_come_back() {
        let source =
            "import * as m from \"m\";\ninterface I {\n  a: number;\n}\n\n// é\nconst é = '😀'; m.f(é);\n";
        let Ok(Translated { javascript, positions }) = translate(source, false) else {
            panic!("it is valid")
        };
        let (before, _) = javascript.split_at(javascript.find("m.f").unwrap_or_default());
        let line = before.lines().count() as u32;
        let column = before.lines().last().map_or(0, |line| line.chars().count()) as u32 + 1;
        assert_eq!(positions.submitted(Place { line, column }), Some(Place { line: 7, column: 16 }));
        assert_eq!(positions.submitted(Place { line: 2, column: 5 }), Some(Place { line: 1, column: 1 }));
        assert_eq!(positions.submitted(Place { line: 1, column: 5 }), None);
    }
}

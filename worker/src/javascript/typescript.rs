//! Translates submitted TypeScript into an async JavaScript function, with a source map.

use std::fmt::Write as _;
use std::path::Path;

use oxc::allocator::Allocator;
use oxc::ast::ast::Program;
use oxc::ast::builder::AstBuilder;
use oxc::codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc::diagnostics::{OxcDiagnostic, Severity};
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::SemanticBuilder;
use oxc::span::{SourceType, Span};
use oxc::transformer::{TransformOptions, Transformer};

use super::call_positions::CallPositions;
use super::decorators;
use super::final_value;
use super::large_literals;
use super::modules::{self, IMPORT, MODULE};
use super::nesting_limit;
use super::planned_calls::{self, PlannedToolCall};
use super::position_markers::{self, AWAITING, RESERVED};
use super::session_variables::{self, DECLARE, SCOPE};
use super::source_map::{Mapping, Position, SourceMap};

/// File name of the generated code in QuickJS; tracebacks show `code.ts` instead.
pub(super) const GENERATED: &str = "lockhouse:code";
/// Prefix of the file name of a skill's generated code in QuickJS. The name of the skill follows it.
pub(super) const GENERATED_SKILL: &str = "lockhouse:skills/";

/// File name of the submitted code in the transformer and source map.
const FILE: &str = "code.ts";

/// Enables strict mode inside the generated function of a skill or of a program in a session. In a session, the code
/// around that function needs `with`, which strict mode forbids.
const STRICT: &str = "\"use strict\";";

/// A program or skill that was translated to JavaScript.
pub(super) struct Translation {
    /// JavaScript expression for a function. Its parameters are the functions for static and dynamic imports and, in a
    /// session, the session's scope and its declare function. For a program, it returns two functions: the program as
    /// an async function, and one that returns the byte offset of the most recent `await`. For a skill, it returns the
    /// exports.
    pub(super) javascript: String,
    /// Maps generated positions to the submitted code.
    pub(super) source_map: SourceMap,
    /// Undeclared names with two underscores that the program uses, such as `github__list_issues`. Each may be a
    /// tool, written as `SERVER__TOOL`.
    pub(super) flat_names: Vec<String>,
    /// Calls of tools that the program makes on every path.
    pub(super) planned_calls: Vec<PlannedToolCall>,
    /// Advice for the case that the program has no value, such as to end with an expression.
    pub(super) missing_value_advice: Option<String>,
}

/// Why a program or skill cannot be translated.
pub(super) struct SyntaxError {
    /// The message of the syntax error.
    pub(super) message: String,
    /// Position in the submitted code; `None` if the parser reports none.
    pub(super) position: Option<Position>,
}

impl SyntaxError {
    fn new(source: &str, span: Span, message: impl Into<String>) -> Self {
        Self { message: message.into(), position: Some(Position::from_byte(source, span.start as usize)) }
    }
}

/// Translates a program. With `in_session`, its top-level declarations become variables of the session.
///
/// # Errors
/// The first syntax error.
pub(super) fn translate(source: &str, in_session: bool) -> Result<Translation, SyntaxError> {
    translate_as(source, if in_session { CodeKind::Session } else { CodeKind::Program })
}

/// Translates a skill into a JavaScript function. Its parameters are the functions for static and dynamic
/// imports; it returns the skill's exports.
///
/// # Errors
/// The first syntax error.
pub(super) fn translate_skill(source: &str) -> Result<Translation, SyntaxError> {
    translate_as(source, CodeKind::Skill)
}

/// The kind of code that is translated to JavaScript.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CodeKind {
    Program,
    /// A program in a session.
    Session,
    /// A skill, which is a module.
    Skill,
}

impl CodeKind {
    /// Returns the JavaScript text before and the text after the translated code. `exported` is the object literal with
    /// the exports of a skill.
    fn wrapper(self, exported: &str) -> (String, String) {
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

fn translate_as(source: &str, kind_of_code: CodeKind) -> Result<Translation, SyntaxError> {
    check_text(source)?;
    let allocator = Allocator::default();
    let kind = SourceType::ts().with_module(true);
    let options = ParseOptions {
        allow_return_outside_function: kind_of_code != CodeKind::Skill,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(&allocator, source, kind).with_options(options).parse();
    check_diagnostics(source, &parsed.diagnostics)?;
    let mut program = parsed.program;
    program.hashbang = None; // It is valid at the start of a file only.
    let calls = CallPositions::collect(&program);
    let planned_calls = planned_calls::collect(source, &program);
    let missing_value_advice = final_value::advice(source, &program);
    check_modules(source, &program, kind_of_code)?;
    if let Some((span, message)) = large_literals::find(source, &program) {
        return Err(SyntaxError::new(source, span, message));
    }
    if let Some(span) = decorators::first(source, &program) {
        return Err(SyntaxError::new(source, span, decorators::ADVICE));
    }

    let builder = AstBuilder::new(&allocator);
    let exports = modules::Exports::collect(&program);
    rewrite(source, &mut program, &builder, kind_of_code)?;
    let (exported, flat_names) = remove_types(source, &mut program, &allocator, kind_of_code, &exports)?;
    // After the transformation, which removes imports that are used as types only.
    let (mut head, tail) = kind_of_code.wrapper(&exported);
    let imports = modules::take_imports(&mut program, &mut head, kind_of_code == CodeKind::Session);
    if kind_of_code == CodeKind::Session {
        session_variables::persist_declarations(&mut program, &builder);
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
    let imports = imports.into_iter().map(|span| Position::from_byte(source, span.start as usize)).collect();
    let source_map = SourceMap::new(source, imports, calls, mappings);
    Ok(Translation {
        javascript: head + &generated.code + &tail,
        source_map,
        flat_names,
        planned_calls,
        missing_value_advice,
    })
}

/// Rejects code that is nested too deeply or that still contains a Markdown fence, before it is parsed.
fn check_text(source: &str) -> Result<(), SyntaxError> {
    let wrong = |message: &str, at: usize| {
        Err(SyntaxError { message: message.to_owned(), position: Some(Position::from_byte(source, at)) })
    };
    if let Some(at) = nesting_limit::too_deep_at(source) {
        return wrong("the program is nested too deeply", at);
    }
    // A Markdown fence would parse as nested template literals. In a comment it is text.
    if let Some(at) = fence_at(source).filter(|_| !source.contains("/*")) {
        return wrong("only a Markdown fence around the whole program is accepted", at);
    }
    Ok(())
}

/// Returns the byte offset of the first line that begins with a Markdown fence, or `None`.
fn fence_at(source: &str) -> Option<usize> {
    let mut lines = source.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((*end - line.len(), line))
    });
    lines.find(|(_, line)| line.trim_start().starts_with("```")).map(|(start, _)| start)
}

/// Checks that imports are at the top level, and that a skill does not use `await` outside of functions.
fn check_modules(source: &str, program: &Program, kind_of_code: CodeKind) -> Result<(), SyntaxError> {
    if source.contains("import")
        && let Some(span) = modules::misplaced_import(program)
    {
        let words = "an import must be at the top of the program, not in a function or block";
        return Err(SyntaxError::new(source, span, words));
    }
    if kind_of_code == CodeKind::Skill
        && let Some(span) = modules::top_level_await(program)
    {
        let words = "a skill cannot await outside of a function: it does nothing before it is called";
        return Err(SyntaxError::new(source, span, words));
    }
    Ok(())
}

/// Rewrites the code so that it can be the body of a function: removes exports, replaces dynamic imports, inserts
/// position markers and, except in a skill, returns the last expression.
fn rewrite<'a>(
    source: &str,
    program: &mut Program<'a>,
    builder: &AstBuilder<'a>,
    kind_of_code: CodeKind,
) -> Result<(), SyntaxError> {
    let default_function = modules::drop_exports(program, builder).map_err(|span| {
        SyntaxError::new(source, span, "a program cannot re-export from a module: import it and use it here")
    })?;
    position_markers::insert_markers(program, builder).map_err(|span| {
        SyntaxError::new(
            source,
            span,
            format!("names that start with {RESERVED} are reserved for the sandbox"),
        )
    })?;
    // Most programs contain no import, which saves a traversal.
    if source.contains("import") {
        modules::replace_dynamic_imports(program, builder);
    }
    if kind_of_code != CodeKind::Skill {
        // In a session, a program may define a function for later ones.
        let default_function = default_function.filter(|_| kind_of_code == CodeKind::Program);
        final_value::return_last_expression(program, default_function.as_deref(), builder);
    }
    Ok(())
}

/// Removes TypeScript syntax. Returns an object literal with the exports, and the names for
/// [`Translation::flat_names`].
fn remove_types<'a>(
    source: &str,
    program: &mut Program<'a>,
    allocator: &'a Allocator,
    kind_of_code: CodeKind,
    exports: &modules::Exports,
) -> Result<(String, Vec<String>), SyntaxError> {
    let semantic =
        SemanticBuilder::new_compiler().with_enum_eval(true).with_check_syntax_error(true).build(program);
    check_diagnostics(source, &semantic.diagnostics)?;
    let scoping = semantic.semantic.into_scoping();
    let exported = exports.to_object_literal(&scoping);
    let unresolved = scoping.root_unresolved_references().keys().map(ToString::to_string);
    let flat_names = unresolved.filter(|name| name.contains("__")).collect();
    let mut options = TransformOptions::default();
    if kind_of_code == CodeKind::Session {
        // Later programs of the session may use imports that this program does not.
        options.typescript.only_remove_type_imports = true;
    } else {
        modules::keep_unused_imports(program, &scoping);
    }
    let transformer = Transformer::new(allocator, Path::new(FILE), &options);
    check_diagnostics(source, &transformer.build_with_scoping(scoping, program).diagnostics)?;
    Ok((exported, flat_names))
}

/// Fails with the first error of the diagnostics, because later errors often follow from the first.
fn check_diagnostics(source: &str, diagnostics: &[OxcDiagnostic]) -> Result<(), SyntaxError> {
    let Some(first) = diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error) else {
        return Ok(());
    };
    let mut message = first.message.to_string();
    if let Some(help) = &first.help {
        let _ = write!(message, " ({help})");
    }
    let position = first.labels.first().map(|label| Position::from_byte(source, label.offset() as usize));
    Err(SyntaxError { message, position })
}

/// Returns the JavaScript of a translated program, or its error as `SyntaxError: MESSAGE`. For tests.
#[cfg(test)]
pub(super) fn translated(source: &str) -> String {
    translate(source, false)
        .map_or_else(|error| format!("SyntaxError: {}", error.message), |done| done.javascript)
}

/// Returns the JavaScript of a translated program in a session, or its error as `SyntaxError: MESSAGE`. For tests.
#[cfg(test)]
pub(super) fn translated_in_session(source: &str) -> String {
    translate(source, true)
        .map_or_else(|error| format!("SyntaxError: {}", error.message), |done| done.javascript)
}

#[cfg(test)]
mod tests {
    use super::super::source_map::Position;
    use super::{SyntaxError, Translation, translate, translated};

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
        let position =
            |source| translate(source, false).err().and_then(|SyntaxError { position, .. }| position);
        assert_eq!(position("let a = 1;\nlet b = ;"), Some(Position { line: 2, column: 9 }));
        assert_eq!(position("let a = 1;\nlet a = 2;").map(|position| position.line), Some(1));
        assert_eq!(position(&"(".repeat(100_000)).map(|position| position.line), Some(1));
    }

    #[test]
    fn positions_come_back() {
        let source =
            "import * as m from \"m\";\ninterface I {\n  a: number;\n}\n\n// é\nconst é = '😀'; m.f(é);\n";
        let Ok(Translation { javascript, source_map, .. }) = translate(source, false) else {
            panic!("it is valid")
        };
        let (before, _) = javascript.split_at(javascript.find("m.f").unwrap_or_default());
        let line = before.lines().count() as u32;
        let column = before.lines().last().map_or(0, |line| line.chars().count()) as u32 + 1;
        assert_eq!(
            source_map.original_position(Position { line, column }),
            Some(Position { line: 7, column: 16 })
        );
        assert_eq!(
            source_map.original_position(Position { line: 2, column: 5 }),
            Some(Position { line: 1, column: 1 })
        );
        assert_eq!(source_map.original_position(Position { line: 1, column: 5 }), None);
    }
}

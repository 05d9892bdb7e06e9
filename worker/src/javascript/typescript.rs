//! Submitted TypeScript becomes one async function of plain JavaScript, and positions find their way back.

use std::fmt::Write as _;
use std::path::Path;

use oxc::allocator::{Allocator, ArenaBox, ArenaVec, TakeIn};
use oxc::ast::ast::{
    Argument, ExportDefaultDeclarationKind, Expression, ImportDeclaration, ImportDeclarationSpecifier,
    Program, Statement,
};
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{VisitMut, walk_mut};
use oxc::codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc::diagnostics::{OxcDiagnostic, Severity};
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::SemanticBuilder;
use oxc::span::{GetSpan, SourceType};
use oxc::transformer::{TransformOptions, Transformer};

use super::nesting;
use super::positions::{Mapping, Place, Positions};

/// The engine's name for the generated code; user code sees `code.ts`.
pub(super) const GENERATED: &str = "lockhouse:code";

/// What hoisted imports call: module name in, module out.
const MODULE: &str = "$lockhouse_module";

/// What `import()` becomes.
const IMPORT: &str = "$lockhouse_import";

/// A program that is ready to run.
pub(super) struct Translated {
    /// An expression: a function of the two lookups that gives the async function.
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

/// Translates a program.
///
/// # Errors
/// The first thing that is wrong with it.
pub(super) fn translate(source: &str) -> Result<Translated, SyntaxError> {
    if let Some(at) = nesting::too_deep_at(source) {
        return Err(SyntaxError {
            message: "the program is nested too deeply".to_owned(),
            place: Some(Place::of(source, at)),
        });
    }
    let allocator = Allocator::default();
    let kind = SourceType::ts().with_module(true);
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, source, kind).with_options(options).parse();
    refuse(source, &parsed.diagnostics)?;
    let mut program = parsed.program;

    let builder = AstBuilder::new(&allocator);
    // A program without the word cannot hold the expression, and most do not.
    if source.contains("import") {
        DynamicImports { builder: &builder }.visit_program(&mut program);
    }
    drop_exports(&mut program, &builder, source)?;
    return_last_expression(&mut program, &builder);

    let semantic =
        SemanticBuilder::new_compiler().with_enum_eval(true).with_check_syntax_error(true).build(&program);
    refuse(source, &semantic.diagnostics)?;
    let scoping = semantic.semantic.into_scoping();
    let path = Path::new("code.ts");
    let transformed = Transformer::new(&allocator, path, &TransformOptions::default())
        .build_with_scoping(scoping, &mut program);
    refuse(source, &transformed.diagnostics)?;

    // After the transformation, which has removed the imports that only types used.
    let mut head = format!("(({MODULE}, {IMPORT}) => async () => {{\n");
    let mut imports = Vec::new();
    program.body.retain(|statement| {
        let Statement::ImportDeclaration(import) = statement else { return true };
        lookup(import, &mut head);
        imports.push(Place::of(source, import.span.start as usize));
        false
    });
    let generated = Codegen::new()
        .with_options(CodegenOptions {
            comments: CommentOptions::disabled(),
            source_map_path: Some(path.to_owned()),
            ..CodegenOptions::default()
        })
        .build(&program);
    let positions = Positions::new(
        source,
        imports,
        generated.map.iter().flat_map(|map| {
            map.get_tokens().map(|token| Mapping {
                generated: (token.get_dst_line(), token.get_dst_col()),
                submitted: (token.get_src_line(), token.get_src_col()),
            })
        }),
    );
    let javascript = head + &generated.code + "\n})";
    Ok(Translated { javascript, positions })
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

/// `import()` becomes a call, so that it finds the modules that `import` finds.
struct DynamicImports<'b, 'a> {
    builder: &'b AstBuilder<'a>,
}

impl<'a> VisitMut<'a> for DynamicImports<'_, 'a> {
    fn visit_expression(&mut self, expression: &mut Expression<'a>) {
        walk_mut::walk_expression(self, expression);
        if let Expression::ImportExpression(import) = expression {
            let span = import.span;
            let source = import.source.take_in(self.builder);
            let callee = Expression::new_identifier(span, IMPORT, self.builder);
            let arguments = ArenaVec::from_array_in([Argument::from(source)], self.builder);
            *expression = Expression::new_call_expression(span, callee, None, arguments, false, self.builder);
        }
    }
}

/// Nothing can import from a program, so `export` says nothing: what it exports stays.
fn drop_exports<'a>(
    program: &mut Program<'a>,
    builder: &AstBuilder<'a>,
    source: &str,
) -> Result<(), SyntaxError> {
    for statement in &mut program.body {
        match statement {
            Statement::ExportDeclaration(export) => {
                *statement = Statement::from(export.declaration.take_in(builder));
            }
            Statement::ExportDefaultDeclaration(export) => {
                let span = export.span;
                *statement = match export.declaration.take_in(builder) {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) if function.id.is_some() => {
                        Statement::FunctionDeclaration(function)
                    }
                    ExportDefaultDeclarationKind::ClassDeclaration(class) if class.id.is_some() => {
                        Statement::ClassDeclaration(class)
                    }
                    // Without a name nothing can refer to it.
                    ExportDefaultDeclarationKind::FunctionDeclaration(_)
                    | ExportDefaultDeclarationKind::ClassDeclaration(_) => {
                        Statement::new_empty_statement(span, builder)
                    }
                    ExportDefaultDeclarationKind::TSInterfaceDeclaration(interface) => {
                        Statement::TSInterfaceDeclaration(interface)
                    }
                    other => Statement::new_expression_statement(span, other.into_expression(), builder),
                };
            }
            Statement::ExportNamedDeclaration(export) => {
                *statement = Statement::new_empty_statement(export.span, builder);
            }
            Statement::ExportFromDeclaration(_) | Statement::ExportAllDeclaration(_) => {
                return Err(SyntaxError {
                    message: "a program cannot re-export from a module: import it and use it here".to_owned(),
                    place: Some(Place::of(source, statement.span().start as usize)),
                });
            }
            _ => {}
        }
    }
    Ok(())
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

/// Writes one hoisted import as one line: lookups that run before everything else.
///
/// No destructuring: QuickJS does not know the position of what that reads.
fn lookup(import: &ImportDeclaration, head: &mut String) {
    let module = format!("{MODULE}({})", quoted(&import.source.value));
    let _ = write!(head, "{module};");
    for specifier in import.specifiers.iter().flatten() {
        let name = &specifier.local().name;
        let _ = match specifier {
            ImportDeclarationSpecifier::ImportSpecifier(one) if one.imported.name() != "default" => {
                write!(head, " const {name} = {module}[{}];", quoted(&one.imported.name()))
            }
            // A module's default is the module.
            _ => write!(head, " const {name} = {module};"),
        };
    }
    head.push('\n');
}

/// A JavaScript string literal: JSON is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::positions::Place;
    use super::{SyntaxError, Translated, translate};

    fn javascript(source: &str) -> String {
        translate(source)
            .map_or_else(|error| format!("SyntaxError: {}", error.message), |done| done.javascript)
    }

    #[test]
    fn the_last_expression_is_returned() {
        for (source, expected) in [
            ("1 + 1", "return 1 + 1;"),
            ("'text'", "return \"text\";"),
            ("main(); function main() {}", "return main();"),
            ("f(); interface I {} type T = I;", "return f();"),
            ("export default x", "return x;"),
        ] {
            assert!(javascript(source).contains(expected), "{source} became {}", javascript(source));
        }
        for source in
            ["const x = 1", "namespace N { export const a = 1 }", "if (x) { y }", "f(); class C {}", ""]
        {
            assert!(
                !javascript(source).contains("return x") && !javascript(source).contains("return f"),
                "{source}"
            );
        }
    }

    #[test]
    fn imports_become_lookups_before_everything_else() {
        let code = javascript(
            "f(a, g, d);\nimport { a, \"b-c\" as f, type T, Unused } from \"m\";\nimport * as g from \"m\";\n\
             import d from 'm';\nimport type { U } from 'n';\nimport 'o';\nawait import('p')",
        );
        let lookup = "$lockhouse_module(\"m\")";
        let expected = format!(
            "\n{lookup}; const a = {lookup}[\"a\"]; const f = {lookup}[\"b-c\"];\n{lookup}; const g = {lookup};\n\
             {lookup}; const d = {lookup};\n$lockhouse_module(\"o\");\nf(a, g, d);\n\
             return await $lockhouse_import(\"p\");"
        );
        assert!(code.contains(&expected), "{code}");
    }

    #[test]
    fn exports_stay_as_declarations() {
        let code = javascript(
            "export const a = 1; export { a }; export enum E { A } export type T = 1; export class C {}",
        );
        assert!(
            !code.contains("export") && code.contains("const a = 1") && code.contains("class C"),
            "{code}"
        );
        assert!(javascript("export * from 'x'").starts_with("SyntaxError: a program cannot re-export"));
    }

    #[test]
    fn syntax_errors_have_a_place() {
        let place = |source| translate(source).err().and_then(|SyntaxError { place, .. }| place);
        assert_eq!(place("let a = 1;\nlet b = ;"), Some(Place { line: 2, column: 9 }));
        assert_eq!(place("let a = 1;\nlet a = 2;").map(|place| place.line), Some(1));
        assert_eq!(place(&"(".repeat(100_000)).map(|place| place.line), Some(1));
    }

    #[test]
    fn positions_come_back() {
        let source =
            "import * as m from \"m\";\ninterface I {\n  a: number;\n}\n\n// é\nconst é = '😀'; m.f(é);\n";
        let Ok(Translated { javascript, positions }) = translate(source) else { panic!("it is valid") };
        let (before, _) = javascript.split_at(javascript.find("m.f").unwrap_or_default());
        let line = before.lines().count() as u32;
        let column = before.lines().last().map_or(0, |line| line.chars().count()) as u32 + 1;
        assert_eq!(positions.submitted(Place { line, column }), Some(Place { line: 7, column: 16 }));
        assert_eq!(positions.submitted(Place { line: 2, column: 5 }), Some(Place { line: 1, column: 1 }));
        assert_eq!(positions.submitted(Place { line: 1, column: 5 }), None);
    }
}

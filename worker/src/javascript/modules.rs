//! `import` and `export` in a program that is no module once it runs.

use std::fmt::Write as _;

use oxc::allocator::{ArenaVec, TakeIn};
use oxc::ast::ast::{
    Argument, ExportDefaultDeclarationKind, Expression, ImportDeclaration, ImportDeclarationSpecifier,
    Program, Statement,
};
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{Visit, VisitMut, walk_mut};
use oxc::semantic::Scoping;
use oxc::span::{GetSpan, Span};

/// What hoisted imports call: module name in, module out.
pub(super) const MODULE: &str = "$lockhouse_module";

/// What `import()` becomes.
pub(super) const IMPORT: &str = "$lockhouse_import";

/// The first import that does not stand at the top of the program.
pub(super) fn misplaced_import(program: &Program) -> Option<Span> {
    let mut imports = Imports(Vec::new());
    imports.visit_program(program);
    let is_at_the_top = |span: &Span| program.body.iter().any(|statement| statement.span() == *span);
    imports.0.into_iter().find(|span| !is_at_the_top(span))
}

struct Imports(Vec<Span>);

impl<'a> Visit<'a> for Imports {
    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        self.0.push(import.span);
    }
}

/// Turns each `import()` into a call, so that it finds the modules that `import` finds.
pub(super) fn replace_dynamic_imports<'a>(program: &mut Program<'a>, builder: &AstBuilder<'a>) {
    DynamicImports { builder }.visit_program(program);
}

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

/// Drops `export`. Nothing can import from a program, so it says nothing: what it exports stays.
///
/// # Errors
/// The place of an export that is also an import.
pub(super) fn drop_exports<'a>(program: &mut Program<'a>, builder: &AstBuilder<'a>) -> Result<(), Span> {
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
                return Err(statement.span());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Keeps imports of which nothing is used, as ones of no names: their modules may not exist, and programs should hear
/// that. Those of which only types are used are left to the transformer, which removes them.
pub(super) fn keep_unused_imports(program: &mut Program, scoping: &Scoping) {
    for statement in &mut program.body {
        let Statement::ImportDeclaration(import) = statement else { continue };
        let Some(specifiers) = &import.specifiers else { continue };
        if import.import_kind.is_type() {
            continue;
        }
        let mut values = specifiers.iter().filter(|specifier| !is_type(specifier)).peekable();
        let names_a_value = values.peek().is_some() || specifiers.is_empty();
        let is_unused = |specifier: &ImportDeclarationSpecifier| {
            specifier.local().symbol_id.get().is_some_and(|symbol| scoping.symbol_is_unused(symbol))
        };
        if names_a_value && values.all(is_unused) {
            import.specifiers = None;
        }
    }
}

fn is_type(specifier: &ImportDeclarationSpecifier) -> bool {
    matches!(specifier, ImportDeclarationSpecifier::ImportSpecifier(one) if one.import_kind.is_type())
}

/// Takes the imports out of a program and writes each as one line: lookups that run before everything else. Gives
/// their places.
pub(super) fn take_imports(program: &mut Program, head: &mut String) -> Vec<Span> {
    let mut imports = Vec::new();
    program.body.retain(|statement| {
        if let Statement::ImportDeclaration(import) = statement {
            lookup(import, head);
            imports.push(import.span);
        }
        // The transformer leaves `export {}` where it has removed the last import.
        !matches!(statement, Statement::ImportDeclaration(_) | Statement::ExportNamedDeclaration(_))
    });
    imports
}

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
    use super::super::typescript::translated;

    #[test]
    fn imports_become_lookups_before_everything_else() {
        let code = translated(
            "f(a, g, d);\nimport { a, \"b-c\" as f, type T, Unused } from \"m\";\nimport * as g from \"m\";\n\
             import d from 'm';\nimport type { U } from 'n';\nimport 'o';\nimport('p')",
        );
        let lookup = "$lockhouse_module(\"m\")";
        let expected = format!(
            "\n{lookup}; const a = {lookup}[\"a\"]; const f = {lookup}[\"b-c\"];\n{lookup}; const g = {lookup};\n\
             {lookup}; const d = {lookup};\n$lockhouse_module(\"o\");\nf(a, g, d);\n\
             return $lockhouse_import(\"p\");"
        );
        assert!(code.contains(&expected), "{code}");
    }

    #[test]
    fn unused_imports_are_looked_up_and_types_are_not() {
        for source in ["import fs from 'fs'", "import * as fs from 'fs'; 1", "import {} from 'fs'"] {
            let code = translated(source);
            assert!(code.contains("$lockhouse_module(\"fs\");") && !code.contains("export"), "{code}");
        }
        for source in [
            "import type { T } from 'm'",
            "import { type T } from 'm'; 1",
            "import { T } from 'm'; const a: T = 1",
            "import { T, Unused } from 'm'; type U = T",
        ] {
            let code = translated(source);
            assert!(!code.contains("$lockhouse_module(\"m\")") && !code.contains("export"), "{code}");
        }
    }

    #[test]
    fn exports_stay_as_declarations() {
        let code = translated(
            "export const a = 1; export { a }; export enum E { A } export type T = 1; export class C {}",
        );
        assert!(
            !code.contains("export") && code.contains("const a = 1") && code.contains("class C"),
            "{code}"
        );
        assert!(translated("export * from 'x'").starts_with("SyntaxError: a program cannot re-export"));
    }
}

//! `import` and `export` in a program that is no module once it runs.

use std::fmt::Write as _;

use oxc::allocator::{ArenaVec, TakeIn};
use oxc::ast::ast::{
    Argument, ArrowFunctionExpression, AwaitExpression, ExportDefaultDeclarationKind, Expression,
    ForOfStatement, Function, ImportDeclaration, ImportDeclarationSpecifier, Program, Statement,
};
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{Visit, VisitMut, walk, walk_mut};
use oxc::semantic::{ScopeFlags, Scoping};
use oxc::span::{GetSpan, Span};

use super::session_names::DECLARE;

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

/// What a skill exports, as its text says it.
#[derive(Default)]
pub(super) struct Exports {
    /// The places of declarations that are exported.
    declared: Vec<Span>,
    /// Names, and the names under which they are exported.
    named: Vec<(String, String)>,
}

impl Exports {
    /// Before exports are dropped.
    pub(super) fn of(program: &Program) -> Self {
        let mut exports = Self::default();
        for statement in &program.body {
            match statement {
                Statement::ExportDeclaration(export) => exports.declared.push(export.span),
                Statement::ExportDefaultDeclaration(export) => {
                    let name = match &export.declaration {
                        ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.id.as_ref(),
                        ExportDefaultDeclarationKind::ClassDeclaration(class) => class.id.as_ref(),
                        _ => None,
                    };
                    let local = match (name, &export.declaration) {
                        (Some(name), _) => Some(name.name.to_string()),
                        (None, ExportDefaultDeclarationKind::Identifier(name)) => Some(name.name.to_string()),
                        (None, _) => None,
                    };
                    exports.named.extend(local.map(|local| (local, "default".to_owned())));
                }
                Statement::ExportNamedDeclaration(export) if !export.export_kind.is_type() => {
                    let values =
                        export.specifiers.iter().filter(|specifier| !specifier.export_kind.is_type());
                    let names =
                        values.map(|one| (one.local.name().to_string(), one.exported.name().to_string()));
                    exports.named.extend(names);
                }
                _ => {}
            }
        }
        exports
    }

    /// An object of the values among them.
    pub(super) fn written(&self, scoping: &Scoping) -> String {
        let mut named: Vec<(&str, &str)> = Vec::new();
        for symbol in scoping.get_bindings(scoping.root_scope_id()).values() {
            let (name, span) = (scoping.symbol_name(*symbol), scoping.symbol_span(*symbol));
            if !scoping.symbol_flags(*symbol).is_value() {
                continue;
            }
            if self.declared.iter().any(|declared| declared.start <= span.start && span.end <= declared.end) {
                named.push((name, name));
            }
            let others = self.named.iter().filter(|(local, _)| local == name);
            named.extend(others.map(|(_, exported)| (name, exported.as_str())));
        }
        let mut object = "{ __proto__: null".to_owned();
        for (name, exported) in named {
            let _ = write!(object, ", get {}() {{ return {name}; }}", quoted(exported));
        }
        object + " }"
    }
}

/// The first `await` that would run when the code is loaded.
pub(super) fn awaits_at_the_top(program: &Program) -> Option<Span> {
    let mut top = Top::default();
    top.visit_program(program);
    top.awaits
}

#[derive(Default)]
struct Top {
    awaits: Option<Span>,
}

impl<'a> Visit<'a> for Top {
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_await_expression(&mut self, expression: &AwaitExpression<'a>) {
        self.awaits.get_or_insert(expression.span);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        if statement.r#await {
            self.awaits.get_or_insert(statement.span);
        }
        walk::walk_for_of_statement(self, statement);
    }
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
pub(super) fn take_imports(program: &mut Program, head: &mut String, in_session: bool) -> Vec<Span> {
    let mut imports = Vec::new();
    program.body.retain(|statement| {
        if let Statement::ImportDeclaration(import) = statement {
            lookup(import, head, in_session);
            imports.push(import.span);
        }
        // The transformer leaves `export {}` where it has removed the last import.
        !matches!(statement, Statement::ImportDeclaration(_) | Statement::ExportNamedDeclaration(_))
    });
    imports
}

/// No destructuring: QuickJS does not know the position of what that reads.
fn lookup(import: &ImportDeclaration, head: &mut String, in_session: bool) {
    let module = format!("{MODULE}({})", quoted(&import.source.value));
    let _ = write!(head, "{module};");
    for specifier in import.specifiers.iter().flatten() {
        let name = &specifier.local().name;
        let _ = match in_session {
            false => write!(head, " const {name}"),
            true => write!(head, " {DECLARE}(\"{name}\"); {name}"),
        };
        let _ = match specifier {
            ImportDeclarationSpecifier::ImportSpecifier(one) if one.imported.name() != "default" => {
                write!(head, " = {module}[{}];", quoted(&one.imported.name()))
            }
            // A skill is a module as its author wrote it.
            _ if import.source.value.starts_with("skills/")
                && !matches!(specifier, ImportDeclarationSpecifier::ImportNamespaceSpecifier(_)) =>
            {
                write!(head, " = {module}.default;")
            }
            // A module's default is the module.
            _ => write!(head, " = {module};"),
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

//! Rewrites `import` and `export`, since the program is run as the body of a function, in which both are
//! invalid.

use std::fmt::Write as _;

use oxc::allocator::{ArenaVec, TakeIn};
use oxc::ast::ast::{
    Argument, ArrowFunctionExpression, AwaitExpression, ExportDefaultDeclarationKind, Expression,
    ForOfStatement, Function, FunctionType, ImportDeclaration, ImportDeclarationSpecifier, Program,
    Statement,
};
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{Visit, VisitMut, walk, walk_mut};
use oxc::semantic::{ScopeFlags, Scoping};
use oxc::span::{GetSpan, Span};

use super::session_variables::DECLARE;

/// Name of the JavaScript function that generated code calls in place of a static import: it returns the
/// module of a given name.
pub(super) const MODULE: &str = "$lockhouse_module";

/// Name of the JavaScript function that generated code calls in place of `import()`.
pub(super) const IMPORT: &str = "$lockhouse_import";

/// Finds the first static import that is not at the top level of the program.
pub(super) fn misplaced_import(program: &Program) -> Option<Span> {
    let mut imports = ImportCollector(Vec::new());
    imports.visit_program(program);
    let is_at_the_top = |span: &Span| program.body.iter().any(|statement| statement.span() == *span);
    imports.0.into_iter().find(|span| !is_at_the_top(span))
}

struct ImportCollector(Vec<Span>);

impl<'a> Visit<'a> for ImportCollector {
    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        self.0.push(import.span);
    }
}

/// Replaces each `import()` by a call of [`IMPORT`], so that dynamic imports find the same modules as static imports.
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

/// Removes `export` and keeps the exported declarations, since nothing can import a program. Returns the name of the
/// function that is the default export, if it has a name.
///
/// # Errors
/// The span of an export that re-exports from another module.
pub(super) fn drop_exports<'a>(
    program: &mut Program<'a>,
    builder: &AstBuilder<'a>,
) -> Result<Option<String>, Span> {
    let mut default_function = None;
    for statement in &mut program.body {
        match statement {
            Statement::ExportDeclaration(export) => {
                *statement = Statement::from(export.declaration.take_in(builder));
            }
            Statement::ExportDefaultDeclaration(export) => {
                let span = export.span;
                *statement = match export.declaration.take_in(builder) {
                    ExportDefaultDeclarationKind::FunctionDeclaration(mut function) => match &function.id {
                        Some(name) => {
                            default_function = Some(name.name.to_string());
                            Statement::FunctionDeclaration(function)
                        }
                        None => {
                            function.r#type = FunctionType::FunctionExpression;
                            let function = Expression::FunctionExpression(function);
                            Statement::new_expression_statement(span, function, builder)
                        }
                    },
                    ExportDefaultDeclarationKind::ClassDeclaration(class) if class.id.is_some() => {
                        Statement::ClassDeclaration(class)
                    }
                    // An unnamed class cannot be referenced.
                    ExportDefaultDeclarationKind::ClassDeclaration(_) => {
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
    Ok(default_function)
}

/// The exported names of a skill's module.
#[derive(Default)]
pub(super) struct Exports {
    /// The byte ranges of declarations with `export`.
    declared: Vec<Span>,
    /// Exports in the form `export { a as b }`: pairs of local name and exported name.
    named: Vec<(String, String)>,
}

impl Exports {
    /// Collects the exports of a skill. Must run before [`drop_exports`] removes them.
    pub(super) fn collect(program: &Program) -> Self {
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

    /// Generates an object literal with a getter for each exported value.
    pub(super) fn to_object_literal(&self, scoping: &Scoping) -> String {
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
            let _ = write!(object, ", get {}() {{ return {name}; }}", string_literal(exported));
        }
        object + " }"
    }
}

/// Finds the first `await` outside of functions. Such an `await` would run while the module is loaded.
pub(super) fn top_level_await(program: &Program) -> Option<Span> {
    let mut top = TopLevelAwait::default();
    top.visit_program(program);
    top.awaits
}

#[derive(Default)]
struct TopLevelAwait {
    awaits: Option<Span>,
}

impl<'a> Visit<'a> for TopLevelAwait {
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

/// Turns imports whose names are never used into imports without names. Otherwise TypeScript's transformer would remove
/// these imports, and unknown modules in them would not be reported. Imports of types alone are left to the
/// transformer.
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

/// Removes the imports from a program, and appends one line of code to `head` for each. This line looks up the module
/// before other code runs, and declares the imported names: as variables of the session if `in_session` is set, as
/// constants otherwise. Returns the spans of the removed imports.
pub(super) fn take_imports(program: &mut Program, head: &mut String, in_session: bool) -> Vec<Span> {
    let mut imports = Vec::new();
    program.body.retain(|statement| {
        if let Statement::ImportDeclaration(import) = statement {
            write_lookup(import, head, in_session);
            imports.push(import.span);
        }
        // The transformer leaves `export {}` behind after removing the last import.
        !matches!(statement, Statement::ImportDeclaration(_) | Statement::ExportNamedDeclaration(_))
    });
    imports
}

/// Appends to `head` the code that looks up an imported module and declares the imported names, as variables of the
/// session if `in_session` is set. The code does not use destructuring, because QuickJS records no position for it.
fn write_lookup(import: &ImportDeclaration, head: &mut String, in_session: bool) {
    let module = format!("{MODULE}({})", string_literal(&import.source.value));
    let _ = write!(head, "{module};");
    for specifier in import.specifiers.iter().flatten() {
        let name = &specifier.local().name;
        let _ = match in_session {
            false => write!(head, " const {name}"),
            true => write!(head, " {DECLARE}(\"{name}\"); {name}"),
        };
        let _ = match specifier {
            ImportDeclarationSpecifier::ImportSpecifier(one) if one.imported.name() != "default" => {
                write!(head, " = {module}[{}];", string_literal(&one.imported.name()))
            }
            // A skill is a module with its own exports.
            _ if import.source.value.starts_with("skills/")
                && !matches!(specifier, ImportDeclarationSpecifier::ImportNamespaceSpecifier(_)) =>
            {
                write!(head, " = {module}.default;")
            }
            // The default import of any other module is the module itself.
            _ => write!(head, " = {module};"),
        };
    }
    head.push('\n');
}

/// Formats a text as a JavaScript string literal. Every JSON string is such a literal.
fn string_literal(text: &str) -> String {
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

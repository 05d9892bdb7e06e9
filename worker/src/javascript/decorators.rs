//! Finds decorators, which QuickJS does not have.

use oxc::ast::ast::{Decorator, Program};
use oxc::ast_visit::Visit;
use oxc::span::Span;

/// What to write instead of a decorator.
pub(super) const ADVICE: &str =
    "decorators are not supported: write a function call instead, as in `const A = decorate(class { ... })`";

/// Returns where the first decorator is; `None` if there is none.
pub(super) fn first(source: &str, program: &Program) -> Option<Span> {
    // Most programs have no such character, which saves a traversal.
    if !source.contains('@') {
        return None;
    }
    let mut finder = Finder(None);
    finder.visit_program(program);
    finder.0
}

struct Finder(Option<Span>);

impl<'a> Visit<'a> for Finder {
    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.0.get_or_insert(decorator.span);
    }
}

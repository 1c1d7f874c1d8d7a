//! `using` and `await using`: the resources that a scope disposes of on every exit.
//!
//! Owns: the list of a scope's resources and the code at the scope's end. Must not: implement disposal; the prelude does.

use super::Compiler;
use crate::ops::Opcode;
use oxc_ast::ast::{Statement, VariableDeclaration, VariableDeclarationKind};

/// The kinds of `using` declarations in a scope.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Resources {
    /// Nothing to dispose of
    None,
    /// Only `using`
    Sync,
    /// `await using` at least once
    Async,
}

impl Resources {
    pub(super) fn of_kind(kind: VariableDeclarationKind) -> Resources {
        match kind {
            VariableDeclarationKind::Using => Resources::Sync,
            VariableDeclarationKind::AwaitUsing => Resources::Async,
            _ => Resources::None,
        }
    }

    /// The kinds of `using` declarations among the statements of a block.
    pub(super) fn declared_in(list: &[Statement<'_>]) -> Resources {
        list.iter().fold(Resources::None, |found, s| match s {
            Statement::VariableDeclaration(d) => match (found, Resources::of_kind(d.kind)) {
                (_, Resources::Async) => Resources::Async,
                (Resources::None, kind) => kind,
                (found, _) => found,
            },
            _ => found,
        })
    }
}

impl Compiler<'_, '_> {
    /// Compiles `body`, which registers its resources, and their disposal on every exit from it.
    pub(super) fn with_resources(&mut self, resources: Resources, body: impl FnOnce(&mut Self)) {
        if resources == Resources::None {
            body(self);
            return;
        }
        let list = self.f().local();
        self.op_b(Opcode::NewArray, 0);
        self.store_local(list);
        self.f().resources.push(list);
        self.with_finally(body, |c, (kind, value)| {
            c.load_local(list);
            c.load_local(kind);
            c.op_c(Opcode::Int, 0);
            c.op(Opcode::StrictEq);
            c.load_local(value);
            if resources == Resources::Async {
                c.call_pre("DisposeScopeAsync", 3);
                let nothing = c.label();
                c.op(Opcode::Dup);
                c.jump(Opcode::JUndef, nothing);
                c.op(Opcode::Await);
                c.bind(nothing);
            } else {
                c.call_pre("DisposeList", 3);
            }
            c.op(Opcode::Pop);
        });
        self.f().resources.pop();
    }

    /// value -> value, registered as a resource of the innermost scope with resources
    pub(super) fn note_resource(&mut self, kind: VariableDeclarationKind) {
        let Some(&list) = self.f().resources.last() else { return };
        self.op(Opcode::Dup);
        self.load_local(list);
        self.op(Opcode::Swap);
        let asynchronous = kind == VariableDeclarationKind::AwaitUsing;
        self.call_pre(if asynchronous { "UseResourceAsync" } else { "UseResource" }, 2);
        self.op(Opcode::Pop);
    }

    /// `using x = …, y = …;`
    pub(super) fn using_declaration(&mut self, d: &VariableDeclaration<'_>) {
        for v in &d.declarations {
            let Some(init) = &v.init else { continue };
            match v.id.get_identifier_name() {
                Some(name) => self.expr_named(init, name.as_str()),
                None => self.expr(init),
            }
            self.note_resource(d.kind);
            self.bind_pattern(&v.id);
        }
    }
}

//! The switch statement.
//!
//! Owns: the tests and the scope. Must not: handle other statements.

use super::Compiler;
use super::control::ControlEntry;
use crate::ops::Opcode;
use oxc_ast::ast::SwitchStatement;
use oxc_span::GetSpan;

impl Compiler<'_, '_> {
    pub(super) fn switch(&mut self, s: &SwitchStatement<'_>) {
        let mark = self.f().mark();
        self.expr(&s.discriminant);
        let value = self.f().local();
        self.store_local(value);
        let brk = self.label();
        let depth = self.f().depth();
        self.in_scope(s.scope_id.get(), |c| {
            for case in &s.cases {
                c.hoist(&case.consequent);
            }
            let labels: Vec<_> = s.cases.iter().map(|_| c.label()).collect();
            for (case, &label) in s.cases.iter().zip(&labels) {
                if let Some(test) = &case.test {
                    c.load_local(value);
                    c.expr(test);
                    c.f().position(test.span().start);
                    c.jump(Opcode::JSeq, label);
                }
            }
            let default = s.cases.iter().position(|case| case.test.is_none());
            c.jump(Opcode::Jump, default.map_or(brk, |i| labels[i]));
            c.f().control.push(ControlEntry::Target {
                labels: Vec::new(),
                brk,
                cont: None,
                anonymous: true,
                depth,
            });
            for (case, &label) in s.cases.iter().zip(&labels) {
                c.bind(label);
                for statement in &case.consequent {
                    c.statement(statement);
                }
            }
            c.f().control.pop();
        });
        self.bind(brk);
        self.f().release(mark);
    }
}

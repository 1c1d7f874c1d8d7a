//! Namespace objects of modules (`import * as name`). The compiler makes them of ordinary parts: an object without a prototype, with
//! a getter for each export that reads a slot of the scope cell that the modules share.
//!
//! Owns: reading an export without calling its getter, for texts and results. Must not: change the state.

use super::Vm;
use crate::builtins::ids;
use crate::heap::object::{Code, ObjectKind, attr};
use crate::ops::{Instruction, Opcode};
use crate::program::USER_TEMPLATES;
use crate::value::Value;

impl Vm<'_> {
    /// The variable that an accessor of a namespace object reads, `Uninit` included; none for other accessors.
    pub(crate) fn exported_value(&self, accessor: Value) -> Option<Value> {
        let (getter, _) = self.st.heap.pair(accessor);
        let ObjectKind::Function(function) = &self.st.heap.obj(getter.as_obj()?).kind else { return None };
        let Code::Template(number) = function.code else { return None };
        if number < USER_TEMPLATES {
            return None;
        }
        let template = self.p.template(number);
        let code = self.p.code.get(template.start as usize..(template.start + template.len) as usize)?;
        // The whole code of such a getter; a function of a program ends with a return of its own.
        let [Instruction { op: Opcode::LoadEnvChk, b: 0, c: slot }, Instruction { op: Opcode::Ret, .. }] =
            code
        else {
            return None;
        };
        self.st.heap.scope_slot(function.env, *slot as usize)
    }

    /// Whether an object is the namespace object of a module.
    pub(crate) fn is_namespace(&self, value: Value) -> bool {
        let Some(id) = value.as_obj() else { return false };
        let object = self.st.heap.obj(id);
        let is_plain = matches!(object.kind, ObjectKind::Plain);
        let tag = ids::key(ids::SYM_TO_STRING_TAG);
        is_plain
            && !object.extensible
            && object.proto.some().is_none()
            && object.props.find(tag).is_some()
            && object.props.iter().all(|p| {
                p.key == tag || p.flags & attr::ACCESSOR != 0 && self.exported_value(p.value).is_some()
            })
    }
}

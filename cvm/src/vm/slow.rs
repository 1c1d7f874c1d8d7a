//! Dispatch of every opcode outside the hot loop, and the small ones themselves.
//!
//! Owns: the second half of the opcode match. The position in the frame is behind the instruction already.

use super::{Raise, Res, Vm};
use crate::builtins::ids;
use crate::ops::{Ins, Op};
use crate::state::Back;
use crate::value::{Key, Value};

impl Vm<'_> {
    #[inline(never)]
    pub(crate) fn slow(&mut self, ins: Ins, base: usize) -> Res<()> {
        let (b, c) = (ins.b as usize, ins.c as usize);
        match ins.op {
            Op::Nop => {}
            Op::Undef => self.push(Value::Undefined),
            Op::Null => self.push(Value::Null),
            Op::True => self.push(Value::Bool(true)),
            Op::False => self.push(Value::Bool(false)),
            Op::Int => self.push(Value::Int(ins.c as i32)),
            Op::Const => {
                let value = self.p.consts.get(c).copied().unwrap_or(Value::Undefined);
                self.push(value);
            }
            Op::Hole => self.push(Value::Hole),
            Op::Uninit => self.push(Value::Uninit),
            Op::Pop => self.drop_n(1),
            Op::Dup => self.push(self.peek(0)),
            Op::Dup2 => {
                let (x, y) = (self.peek(1), self.peek(0));
                self.push(x);
                self.push(y);
            }
            Op::Swap => self.rotate(2),
            Op::Rot3 => self.rotate(3),
            Op::Rot4 => self.rotate(4),
            Op::LoadLoc => self.push(self.slot(base + c)),
            Op::StoreLoc => {
                let value = self.pop();
                self.set_slot(base + c, value);
            }
            Op::TeeLoc => self.set_slot(base + c, self.peek(0)),
            Op::LoadLocChk => {
                let value = self.slot(base + c);
                if value == Value::Uninit {
                    return Err(self.uninitialised(Some(c as u16), None));
                }
                self.push(value);
            }
            Op::StoreLocChk => {
                if self.slot(base + c) == Value::Uninit {
                    return Err(self.uninitialised(Some(c as u16), None));
                }
                let value = self.pop();
                self.set_slot(base + c, value);
            }
            Op::LoadThis => self.push(self.slot(base + 1)),
            Op::LoadCallee => self.push(self.slot(base)),
            Op::NewTarget => {
                let target = self.st.frames.last().map_or(Value::Undefined, |f| f.new_target);
                self.push(target);
            }
            Op::PushEnv => {
                let env = self.st.frames.last().map_or(Value::Undefined, |f| f.env);
                self.push(env);
            }
            Op::NewScope => {
                let parent = self.peek(0);
                let scope = self.st.heap.new_scope(parent, c.min(1 << 16));
                self.give(1, Value::Cell(scope));
            }
            Op::CopyScope => {
                let scope = self.peek(0);
                let copy = self.st.heap.copy_scope(scope);
                self.give(1, copy);
            }
            Op::LoadScope | Op::LoadScopeChk => {
                let scope = self.slot(base + b);
                self.load_scope(scope, c, ins.op == Op::LoadScopeChk, Some(b as u16))?;
            }
            Op::StoreScope | Op::StoreScopeChk => {
                let scope = self.slot(base + b);
                self.store_scope(scope, c, ins.op == Op::StoreScopeChk, Some(b as u16))?;
            }
            Op::LoadEnv | Op::LoadEnvChk => {
                let scope = self.env_at(b);
                self.load_scope(scope, c, ins.op == Op::LoadEnvChk, None)?;
            }
            Op::StoreEnv | Op::StoreEnvChk => {
                let scope = self.env_at(b);
                self.store_scope(scope, c, ins.op == Op::StoreEnvChk, None)?;
            }
            Op::Closure => self.op_closure(ins.c, base),
            Op::GetGlobal | Op::GetGlobalSoft => {
                return self.op_get_global(Key(ins.c), ins.op == Op::GetGlobalSoft);
            }
            Op::SetGlobal => return self.op_set_global(Key(ins.c)),
            Op::DeclVar => self.op_decl_var(Key(ins.c))?,
            Op::DeclFunc => self.op_decl_func(Key(ins.c))?,
            Op::GetProp => return self.op_get_prop(Key(ins.c)),
            Op::GetMethod => return self.op_get_method(Key(ins.c)),
            Op::SetProp => return self.op_set_prop(Key(ins.c)),
            Op::GetElem => return self.op_get_elem(),
            Op::GetElemMethod => return self.op_get_elem_method(),
            Op::SetElem => return self.op_set_elem(),
            Op::DelElem => return self.op_delete(),
            Op::In => return self.op_in(),
            Op::InstanceOf => return self.op_instance_of(),
            Op::GetSuper => return self.op_get_super(base),
            Op::SetSuper => return self.op_set_super(base),
            Op::PrivName => {
                let id = self.st.heap.new_symbol(Value::Str(crate::value::Id(ins.c)), true);
                self.push(Value::Sym(id));
            }
            Op::GetPriv => return self.op_get_private(),
            Op::SetPriv => return self.op_set_private(),
            Op::DefPriv => self.op_define_private(b)?,
            Op::HasPriv => self.op_has_private()?,
            Op::NewObject => {
                let id = self.st.heap.new_object(ids::OBJECT_PROTO, crate::heap::object::Kind::Plain);
                self.push(Value::Obj(id));
            }
            Op::NewArray => {
                let from = self.st.sp.saturating_sub(b);
                let elements = self.st.stack[from..self.st.sp].to_vec();
                let array = self.new_array(elements);
                self.give(b, array);
            }
            Op::ArrPush => self.op_array_push(false),
            Op::ArrHole => self.op_array_push(true),
            Op::DefField => self.op_define_field(Key(ins.c))?,
            Op::DefElem => self.op_define_elem()?,
            Op::DefMethod => self.op_define_method(b)?,
            Op::SetProtoLit => self.op_proto_literal(),
            Op::SetName => self.op_set_name(b),
            Op::Add => return self.op_add(),
            Op::Sub
            | Op::Mul
            | Op::Div
            | Op::Mod
            | Op::Exp
            | Op::BitAnd
            | Op::BitOr
            | Op::BitXor
            | Op::Shl
            | Op::Shr
            | Op::Ushr => {
                return self.op_binary(ins.op);
            }
            Op::AddInt => return self.op_add_int(ins.c as i32),
            Op::SubInt => {
                self.push(Value::Int(ins.c as i32));
                let done = self.op_binary(Op::Sub);
                if let Err(Raise::Prim(..)) = done {
                    self.drop_n(1);
                }
                return done;
            }
            Op::AddLoc => return self.op_add_local(base + c),
            Op::AddLocLoc => {
                self.push(self.slot(base + b));
                let done = self.op_add_local(base + c);
                if let Err(Raise::Prim(..)) = done {
                    self.drop_n(1);
                }
                return done;
            }
            Op::LtLocInt | Op::LtLocLoc => {
                let (x, y) = if ins.op == Op::LtLocInt {
                    (self.slot(base + b), Value::Int(ins.c as i32))
                } else {
                    (self.slot(base + c), self.slot(base + b))
                };
                return self.op_less(x, y);
            }
            Op::IncLoc | Op::DecLoc => return self.op_step_local(base + c, ins.op == Op::IncLoc),
            Op::Neg | Op::BitNot | Op::Inc | Op::Dec => return self.op_unary(ins.op),
            Op::Plus => {
                let n = self.slot_number(self.st.sp - 1)?;
                self.give(1, Value::num(n));
            }
            Op::ToNumeric => {
                let n = self.slot_numeric(self.st.sp - 1)?;
                self.give(1, n);
            }
            Op::ToStr => {
                let id = self.slot_str(self.st.sp - 1)?;
                self.give(1, Value::Str(id));
            }
            Op::ToKey => self.op_to_key()?,
            Op::ToKeyOf => self.op_to_key_of()?,
            Op::SortStep => self.op_sort_slow()?,
            Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                let r = self.op_order(ins.op)?;
                self.give(2, Value::Bool(r));
            }
            Op::JNotLt | Op::JNotLe | Op::JNotGt | Op::JNotGe => {
                let op = match ins.op {
                    Op::JNotLt => Op::Lt,
                    Op::JNotLe => Op::Le,
                    Op::JNotGt => Op::Gt,
                    _ => Op::Ge,
                };
                let r = self.op_order(op)?;
                self.drop_n(2);
                self.jump_if(!r, ins.c);
            }
            Op::Eq | Op::Ne => {
                let r = self.loose_equal(self.st.sp - 2, self.st.sp - 1)?;
                self.give(2, Value::Bool(r == (ins.op == Op::Eq)));
            }
            Op::Typeof => {
                let id = self.type_of(self.peek(0));
                self.give(1, Value::Str(id));
            }
            Op::TemplateObj => self.op_template(ins.c),
            Op::RegExp => self.op_regexp(ins.c, b)?,
            Op::CallSpread => return self.op_call_spread(),
            Op::New => return self.op_new(b),
            Op::NewSpread => return self.op_new_spread(),
            Op::SuperCall => return self.op_super_call(b),
            Op::SuperSpread => return self.op_super_spread(),
            Op::Construct => return self.op_construct(),
            Op::CallPre => return self.call_pre(ins.c, b, Back::Push),
            Op::CallNat => return self.call_intrinsic(ins.c, b),
            Op::RetDerived => return self.op_return_derived(),
            Op::Throw => {
                let value = self.pop();
                return Err(Raise::Throw(value));
            }
            Op::ThrowErr => {
                let text = self.st.heap.str(crate::value::Id(ins.c)).to_utf8();
                return Err(match b {
                    1 => self.reference_error(&text),
                    2 => self.syntax_error(&text),
                    _ => self.type_error(&text),
                });
            }
            Op::IterFast => self.op_iter_fast(ins.c),
            Op::IterCheck => {
                let value = self.peek(0);
                if !value.is_object() {
                    let shown = self.brief(value);
                    return Err(self.type_error(&format!("Iterator result {shown} is not an object")));
                }
            }
            Op::IterDone => self.op_iter_done(base + b, ins.c),
            Op::IterValue => return self.op_iter_value(base + b, ins.c),
            Op::ForInNext => return self.op_for_in_next(base + b, ins.c),
            Op::GetIterMethod => return self.op_get_iter_method(),
            Op::InitialYield => return self.op_initial_yield(),
            Op::Yield => return self.op_yield(false),
            Op::YieldStar => return self.op_yield(true),
            Op::Await => return self.op_await(),
            Op::AsyncStart => self.op_async_start(),
            Op::NewClass => return self.op_new_class(ins.c, b),
            Op::SetFields => self.op_set_fields(),
            Op::RunFields => return self.op_run_fields(),
            Op::SetHome => self.op_set_home(),
            Op::CheckUninit => {
                if self.pop() != Value::Uninit {
                    return Err(self.reference_error("Super constructor may only be called once"));
                }
            }
            Op::CheckThis => {
                if self.peek(0) == Value::Uninit {
                    return Err(self.must_call_super());
                }
            }
            Op::Realm => {
                let id = crate::value::Id(ins.c);
                let value = if self.st.heap.symbol(id).is_some() { Value::Sym(id) } else { Value::Obj(id) };
                self.push(value);
            }
            Op::RestArgs => {
                let all = self.slot(base + b);
                let rest =
                    self.dense(all).map_or_else(Vec::new, |a| a.dense.get(c..).unwrap_or(&[]).to_vec());
                let array = self.new_array(rest);
                self.push(array);
            }
            Op::Arguments => self.op_arguments(base + b),
            Op::CheckObjCoercible => {
                let value = self.peek(0);
                if value.is_nullish() {
                    let shown = self.plain_text(value);
                    return Err(self.type_error(&format!("Cannot destructure '{shown}' as it is {shown}.")));
                }
            }
            Op::CheckCallable => {
                let value = self.peek(0);
                if !self.is_callable(value) {
                    return Err(self.not_callable(value, "is not a function"));
                }
            }
            _ => return Err(Raise::Fault("unknown instruction")),
        }
        Ok(())
    }

    /// Puts the topmost of `n` operands beneath the others.
    fn rotate(&mut self, n: usize) {
        let sp = self.st.sp;
        if sp >= n {
            self.st.stack[sp - n..sp].rotate_right(1);
        }
    }

    pub(crate) fn jump_if(&mut self, condition: bool, target: u32) {
        if condition && let Some(frame) = self.st.frames.last_mut() {
            frame.pc = target;
        }
    }

    fn env_at(&self, depth: usize) -> Value {
        let mut scope = self.st.frames.last().map_or(Value::Undefined, |f| f.env);
        for _ in 0..depth {
            scope = self.st.heap.scope_parent(scope);
        }
        scope
    }

    fn load_scope(&mut self, scope: Value, slot: usize, checked: bool, local: Option<u16>) -> Res<()> {
        match self.st.heap.scope_slot(scope, slot) {
            Some(Value::Uninit) if checked => Err(self.uninitialised(local, Some(slot as u16))),
            Some(value) => {
                self.push(value);
                Ok(())
            }
            None => Err(Raise::Fault("scope slot")),
        }
    }

    fn store_scope(&mut self, scope: Value, slot: usize, checked: bool, local: Option<u16>) -> Res<()> {
        if checked && self.st.heap.scope_slot(scope, slot) == Some(Value::Uninit) {
            return Err(self.uninitialised(local, Some(slot as u16)));
        }
        let value = self.pop();
        if self.st.heap.set_scope_slot(scope, slot, value) { Ok(()) } else { Err(Raise::Fault("scope slot")) }
    }

    /// The `ReferenceError` of a binding that is not initialised, with its name where that is known.
    /// The identifier in the source at which the running instruction stands.
    fn name_in_source(&self) -> Option<String> {
        let frame = self.st.frames.last().filter(|f| f.template >= crate::program::USER_TEMPLATES)?;
        let t = self.p.template(frame.template);
        let at = t.position(frame.pc.saturating_sub(t.start + 1)) as usize;
        let part = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let name: String = self.p.source().get(at..)?.chars().take_while(part).collect();
        (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
    }

    fn uninitialised(&mut self, local: Option<u16>, slot: Option<u16>) -> Raise {
        let name = self.st.frames.last().and_then(|f| {
            let t = self.p.template(f.template);
            let pc = f.pc.saturating_sub(t.start + 1);
            let seen = |b: &&crate::program::Binding| b.range.0 <= pc && pc <= b.range.1;
            t.bindings
                .iter()
                .filter(seen)
                .rfind(|b| Some(b.local) == local && b.slot == slot)
                .map(|b| b.name.clone())
        });
        let name = name.or_else(|| self.name_in_source());
        match name {
            Some(name) => self.reference_error(&format!("Cannot access '{name}' before initialization")),
            None => self.reference_error("Cannot access a variable before initialization"),
        }
    }

    pub(crate) fn must_call_super(&mut self) -> Raise {
        self.reference_error("Must call super constructor in derived class before accessing 'this' or returning from derived constructor")
    }
}

//! Dispatch of every opcode outside the hot loop, and the small ones themselves.
//!
//! Owns: the second half of the opcode match. The frame's position is already after the instruction.

use super::{Raise, Res, Vm};
use crate::builtins::ids;
use crate::ops::{Instruction, Opcode};
use crate::state::Back;
use crate::value::{Key, Value};

impl Vm<'_> {
    #[inline(never)]
    pub(crate) fn slow(&mut self, ins: Instruction, base: usize) -> Res<()> {
        let (b, c) = (ins.b as usize, ins.c as usize);
        match ins.op {
            Opcode::Nop => {}
            Opcode::Undef => self.push(Value::Undefined),
            Opcode::Null => self.push(Value::Null),
            Opcode::True => self.push(Value::Bool(true)),
            Opcode::False => self.push(Value::Bool(false)),
            Opcode::Int => self.push(Value::Int(ins.c as i32)),
            Opcode::Const => {
                let value = self.p.consts.get(c).copied().unwrap_or(Value::Undefined);
                self.push(value);
            }
            Opcode::Hole => self.push(Value::Hole),
            Opcode::Uninit => self.push(Value::Uninit),
            Opcode::Pop => self.drop_n(1),
            Opcode::Dup => self.push(self.peek(0)),
            Opcode::Dup2 => {
                let (x, y) = (self.peek(1), self.peek(0));
                self.push(x);
                self.push(y);
            }
            Opcode::Swap => self.rotate(2),
            Opcode::Rot3 => self.rotate(3),
            Opcode::Rot4 => self.rotate(4),
            Opcode::LoadLoc => self.push(self.slot(base + c)),
            Opcode::StoreLoc => {
                let value = self.pop();
                self.set_slot(base + c, value);
            }
            Opcode::TeeLoc => self.set_slot(base + c, self.peek(0)),
            Opcode::LoadLocChk => {
                let value = self.slot(base + c);
                if value == Value::Uninit {
                    return Err(self.uninitialised(Some(c as u16), None));
                }
                self.push(value);
            }
            Opcode::StoreLocChk => {
                if self.slot(base + c) == Value::Uninit {
                    return Err(self.uninitialised(Some(c as u16), None));
                }
                let value = self.pop();
                self.set_slot(base + c, value);
            }
            Opcode::LoadThis => self.push(self.slot(base + 1)),
            Opcode::LoadCallee => self.push(self.slot(base)),
            Opcode::NewTarget => {
                let target = self.st.frames.last().map_or(Value::Undefined, |f| f.new_target);
                self.push(target);
            }
            Opcode::PushEnv => {
                let env = self.st.frames.last().map_or(Value::Undefined, |f| f.env);
                self.push(env);
            }
            Opcode::NewScope => {
                let parent = self.peek(0);
                let scope = self.st.heap.new_scope(parent, c.min(1 << 16));
                self.replace_top(1, Value::Cell(scope));
            }
            Opcode::CopyScope => {
                let scope = self.peek(0);
                let copy = self.st.heap.copy_scope(scope);
                self.replace_top(1, copy);
            }
            Opcode::LoadScope | Opcode::LoadScopeChk => {
                let scope = self.slot(base + b);
                self.load_scope(scope, c, ins.op == Opcode::LoadScopeChk, Some(b as u16))?;
            }
            Opcode::StoreScope | Opcode::StoreScopeChk => {
                let scope = self.slot(base + b);
                self.store_scope(scope, c, ins.op == Opcode::StoreScopeChk, Some(b as u16))?;
            }
            Opcode::LoadEnv | Opcode::LoadEnvChk => {
                let scope = self.env_at(b);
                self.load_scope(scope, c, ins.op == Opcode::LoadEnvChk, None)?;
            }
            Opcode::StoreEnv | Opcode::StoreEnvChk => {
                let scope = self.env_at(b);
                self.store_scope(scope, c, ins.op == Opcode::StoreEnvChk, None)?;
            }
            Opcode::Closure => self.op_closure(ins.c, base),
            Opcode::GetGlobal | Opcode::GetGlobalSoft => {
                return self.op_get_global(Key(ins.c), ins.op == Opcode::GetGlobalSoft);
            }
            Opcode::SetGlobal => return self.op_set_global(Key(ins.c)),
            Opcode::DeclVar => self.op_decl_var(Key(ins.c))?,
            Opcode::DeclFunc => self.op_decl_func(Key(ins.c))?,
            Opcode::GetProp => return self.op_get_prop(Key(ins.c)),
            Opcode::GetMethod => return self.op_get_method(Key(ins.c)),
            Opcode::SetProp => return self.op_set_prop(Key(ins.c)),
            Opcode::GetElem => return self.op_get_elem(),
            Opcode::GetElemMethod => return self.op_get_elem_method(),
            Opcode::SetElem => return self.op_set_elem(),
            Opcode::DelElem => return self.op_delete(),
            Opcode::In => return self.op_in(),
            Opcode::InstanceOf => return self.op_instance_of(),
            Opcode::GetSuper => return self.op_get_super(base),
            Opcode::SetSuper => return self.op_set_super(base),
            Opcode::PrivName => {
                let id = self.st.heap.new_symbol(Value::Str(crate::value::Id(ins.c)), true);
                self.push(Value::Sym(id));
            }
            Opcode::GetPriv => return self.op_get_private(),
            Opcode::SetPriv => return self.op_set_private(),
            Opcode::DefPriv => self.op_define_private(b)?,
            Opcode::HasPriv => self.op_has_private()?,
            Opcode::NewObject => {
                let id = self.st.heap.new_object(ids::OBJECT_PROTO, crate::heap::object::ObjectKind::Plain);
                self.push(Value::Obj(id));
            }
            Opcode::NewArray => {
                let from = self.st.sp.saturating_sub(b);
                let elements = self.st.stack[from..self.st.sp].to_vec();
                let array = self.new_array(elements);
                self.replace_top(b, array);
            }
            Opcode::ArrPush => self.op_array_push(false),
            Opcode::ArrHole => self.op_array_push(true),
            Opcode::DefField => self.op_define_field(Key(ins.c))?,
            Opcode::DefElem => self.op_define_elem()?,
            Opcode::DefMethod => self.op_define_method(b)?,
            Opcode::SetProtoLit => self.op_proto_literal(),
            Opcode::SetName => self.op_set_name(b),
            Opcode::Add => return self.op_add(),
            Opcode::Sub
            | Opcode::Mul
            | Opcode::Div
            | Opcode::Mod
            | Opcode::Exp
            | Opcode::BitAnd
            | Opcode::BitOr
            | Opcode::BitXor
            | Opcode::Shl
            | Opcode::Shr
            | Opcode::Ushr => {
                return self.op_binary(ins.op);
            }
            Opcode::AddInt => return self.op_add_int(ins.c as i32),
            Opcode::SubInt => {
                self.push(Value::Int(ins.c as i32));
                let done = self.op_binary(Opcode::Sub);
                if let Err(Raise::Prim(..)) = done {
                    self.drop_n(1);
                }
                return done;
            }
            Opcode::AddLoc => return self.op_add_local(base + c),
            Opcode::AddLocLoc => {
                self.push(self.slot(base + b));
                let done = self.op_add_local(base + c);
                if let Err(Raise::Prim(..)) = done {
                    self.drop_n(1);
                }
                return done;
            }
            // The prelude's function for values that are not operands: it may replace its own parameters.
            Opcode::LtLocLoc if self.runs(self.pre("LessValues")) => {
                let less = self.order(base + c, base + b)? == Some(std::cmp::Ordering::Less);
                self.push(Value::Bool(less));
            }
            Opcode::LtLocInt | Opcode::LtLocLoc => {
                let (x, y) = if ins.op == Opcode::LtLocInt {
                    (self.slot(base + b), Value::Int(ins.c as i32))
                } else {
                    (self.slot(base + c), self.slot(base + b))
                };
                return self.op_less(x, y);
            }
            Opcode::IncLoc | Opcode::DecLoc => return self.op_step_local(base + c, ins.op == Opcode::IncLoc),
            Opcode::Neg | Opcode::BitNot | Opcode::Inc | Opcode::Dec => return self.op_unary(ins.op),
            Opcode::Plus => {
                let n = self.slot_number(self.st.sp - 1)?;
                self.replace_top(1, Value::num(n));
            }
            Opcode::ToNumeric => {
                let n = self.slot_numeric(self.st.sp - 1)?;
                self.replace_top(1, n);
            }
            Opcode::ToStr => {
                let id = self.slot_str(self.st.sp - 1)?;
                self.replace_top(1, Value::Str(id));
            }
            Opcode::ToKey => self.op_to_key()?,
            Opcode::ToKeyOf => self.op_to_key_of()?,
            Opcode::SortStep => self.op_sort_slow()?,
            Opcode::Lt | Opcode::Le | Opcode::Gt | Opcode::Ge => {
                let r = self.op_order(ins.op)?;
                self.replace_top(2, Value::Bool(r));
            }
            Opcode::JNotLt | Opcode::JNotLe | Opcode::JNotGt | Opcode::JNotGe => {
                let op = match ins.op {
                    Opcode::JNotLt => Opcode::Lt,
                    Opcode::JNotLe => Opcode::Le,
                    Opcode::JNotGt => Opcode::Gt,
                    _ => Opcode::Ge,
                };
                let r = self.op_order(op)?;
                self.drop_n(2);
                self.jump_if(!r, ins.c);
            }
            Opcode::Eq | Opcode::Ne => {
                let r = self.loose_equal(self.st.sp - 2, self.st.sp - 1)?;
                self.replace_top(2, Value::Bool(r == (ins.op == Opcode::Eq)));
            }
            Opcode::Typeof => {
                let id = self.type_of(self.peek(0));
                self.replace_top(1, Value::Str(id));
            }
            Opcode::TemplateObj => self.op_template(ins.c),
            Opcode::RegExp => self.op_regexp(ins.c, b)?,
            Opcode::CallSpread => return self.op_call_spread(),
            Opcode::New => return self.op_new(b),
            Opcode::NewSpread => return self.op_new_spread(),
            Opcode::SuperCall => return self.op_super_call(b),
            Opcode::SuperSpread => return self.op_super_spread(),
            Opcode::Construct => return self.op_construct(),
            Opcode::CallPre => return self.call_pre(ins.c, b, Back::Push),
            Opcode::CallNat => return self.call_intrinsic(ins.c, b),
            Opcode::RetDerived => return self.op_return_derived(),
            Opcode::Throw => {
                let value = self.pop();
                return Err(Raise::Throw(value));
            }
            Opcode::ThrowErr => {
                let text = self.st.heap.str(crate::value::Id(ins.c)).to_utf8();
                return Err(match b {
                    1 => self.reference_error(&text),
                    2 => self.syntax_error(&text),
                    _ => self.type_error(&text),
                });
            }
            Opcode::IterFast => self.op_iter_fast(ins.c),
            Opcode::IterCheck => {
                let value = self.peek(0);
                if !value.is_object() {
                    let shown = self.brief(value);
                    return Err(self.type_error(&format!("Iterator result {shown} is not an object")));
                }
            }
            Opcode::IterDone => self.op_iter_done(base + b, ins.c),
            Opcode::IterValue => return self.op_iter_value(base + b, ins.c),
            Opcode::ForInNext => return self.op_for_in_next(base + b, ins.c),
            Opcode::GetIterMethod => return self.op_get_iter_method(),
            Opcode::InitialYield => return self.op_initial_yield(),
            Opcode::Yield => return self.op_yield(false),
            Opcode::YieldStar => return self.op_yield(true),
            Opcode::Await => return self.op_await(),
            Opcode::SetResult => self.st.result = self.pop(),
            Opcode::AsyncStart => self.op_async_start(),
            Opcode::NewClass => return self.op_new_class(ins.c, b),
            Opcode::SetFields => self.op_set_fields(),
            Opcode::RunFields => return self.op_run_fields(),
            Opcode::SetHome => self.op_set_home(),
            Opcode::CheckUninit => {
                if self.pop() != Value::Uninit {
                    return Err(self.reference_error("Super constructor may only be called once"));
                }
            }
            Opcode::CheckThis => {
                if self.peek(0) == Value::Uninit {
                    return Err(self.must_call_super());
                }
            }
            Opcode::Realm => {
                let id = crate::value::Id(ins.c);
                let value = if self.st.heap.symbol(id).is_some() { Value::Sym(id) } else { Value::Obj(id) };
                self.push(value);
            }
            Opcode::RestArgs => {
                let all = self.slot(base + b);
                let rest =
                    self.dense(all).map_or_else(Vec::new, |a| a.dense.get(c..).unwrap_or(&[]).to_vec());
                let array = self.new_array(rest);
                self.push(array);
            }
            Opcode::Arguments => self.op_arguments(base + b),
            Opcode::CheckObjCoercible => {
                let value = self.peek(0);
                if value.is_nullish() {
                    let shown = self.plain_text(value);
                    return Err(self.type_error(&format!("Cannot destructure '{shown}' as it is {shown}.")));
                }
            }
            Opcode::CheckCallable => {
                let value = self.peek(0);
                if !self.is_callable(value) {
                    return Err(self.not_callable(value, "is not a function"));
                }
            }
            _ => return Err(Raise::Fault("unknown instruction")),
        }
        Ok(())
    }

    /// Moves the topmost of `n` operands beneath the others.
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

    /// Whether the running function is this one.
    fn runs(&self, template: u32) -> bool {
        self.st.frames.last().is_some_and(|frame| frame.template == template)
    }

    /// The `ReferenceError` of a binding that is not initialised, with its name if that is known.
    /// The identifier in the source at the position of the running instruction.
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
                // A variable of another file has the name `FILE:NAME`.
                .map(|b| b.name.rsplit(':').next().unwrap_or_default().to_owned())
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

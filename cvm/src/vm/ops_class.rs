//! Classes, construction and spread calls.
//!
//! Owns: `new`, `super(…)`, class objects and their field initialisers.

use super::{Raise, Res, Vm};
use crate::builtins::ids;
use crate::heap::object::{Code, ObjectKind, Prop, attr};
use crate::state::Back;
use crate::value::{Id, Value};

impl Vm<'_> {
    /// f args -> object
    pub(crate) fn op_new(&mut self, argc: usize) -> Res<()> {
        let at = self.st.sp - argc - 1;
        let f = self.slot(at);
        if !self.is_constructor(f) {
            return Err(self.not_callable(f, "is not a constructor"));
        }
        self.open_this(argc);
        self.invoke(argc, f, Back::Push)
    }

    /// Inserts a slot for `this` beneath `argc` arguments.
    fn open_this(&mut self, argc: usize) {
        self.push(Value::Undefined);
        let sp = self.st.sp;
        self.st.stack[sp - argc - 1..sp].rotate_right(1);
    }

    /// Replaces the array on the stack by its elements; returns their number.
    pub(crate) fn spread_args(&mut self) -> Res<usize> {
        let array = self.pop();
        let elements = match array {
            Value::Obj(id) => match &self.st.heap.obj(id).kind {
                ObjectKind::Array(a) => a.dense.clone(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        if elements.len() > 1 << 20 {
            return Err(self.range_error("Too many arguments"));
        }
        for &e in &elements {
            self.push(if e == Value::Hole { Value::Undefined } else { e });
        }
        Ok(elements.len())
    }

    /// f this array -> result
    pub(crate) fn op_call_spread(&mut self) -> Res<()> {
        let f = self.peek(2);
        if !self.is_callable(f) {
            return Err(self.not_callable(f, "is not a function"));
        }
        let argc = self.spread_args()?;
        self.call(argc, Back::Push)
    }

    pub(crate) fn op_new_spread(&mut self) -> Res<()> {
        let f = self.peek(1);
        if !self.is_constructor(f) {
            return Err(self.not_callable(f, "is not a constructor"));
        }
        let argc = self.spread_args()?;
        self.op_new(argc)
    }

    /// f newTarget array -> object
    pub(crate) fn op_construct(&mut self) -> Res<()> {
        let (f, target) = (self.peek(2), self.peek(1));
        if !self.is_constructor(f) || !self.is_constructor(target) {
            return Err(self.not_callable(f, "is not a constructor"));
        }
        let array = self.pop();
        self.replace_top(1, Value::Undefined);
        self.push(array);
        let argc = self.spread_args()?;
        self.invoke(argc, target, Back::Push)
    }

    fn super_constructor(&mut self, active: Value) -> Res<Value> {
        let parent = active.as_obj().map_or(Id::NONE, |id| self.st.heap.obj(id).proto);
        let value = if parent == Id::NONE { Value::Null } else { Value::Obj(parent) };
        if !self.is_constructor(value) {
            return Err(self.not_callable(value, "is not a constructor"));
        }
        Ok(value)
    }

    /// active args -> this
    pub(crate) fn op_super_call(&mut self, argc: usize) -> Res<()> {
        let at = self.st.sp - argc - 1;
        let parent = self.super_constructor(self.slot(at))?;
        self.set_slot(at, parent);
        let target = self.st.frames.last().map_or(Value::Undefined, |f| f.new_target);
        self.open_this(argc);
        self.invoke(argc, target, Back::Push)
    }

    pub(crate) fn op_super_spread(&mut self) -> Res<()> {
        let parent = self.super_constructor(self.peek(1))?;
        self.set_slot(self.st.sp - 2, parent);
        let target = self.st.frames.last().map_or(Value::Undefined, |f| f.new_target);
        let argc = self.spread_args()?;
        self.open_this(argc);
        self.invoke(argc, target, Back::Push)
    }

    /// result this -> return
    pub(crate) fn op_return_derived(&mut self) -> Res<()> {
        let (result, this) = (self.peek(1), self.peek(0));
        if result.is_object() {
            return self.leave_frame(result);
        }
        if result != Value::Undefined {
            return Err(self.type_error("Derived constructors may only return object or undefined"));
        }
        if this == Value::Uninit {
            return Err(self.must_call_super());
        }
        self.leave_frame(this)
    }

    /// heritage scope -> class prototype
    pub(crate) fn op_new_class(&mut self, number: u32, has_heritage: usize) -> Res<()> {
        let (heritage, env) = (self.peek(1), self.peek(0));
        let (mut proto_parent, mut parent) = (ids::OBJECT_PROTO, ids::FUNCTION_PROTO);
        if has_heritage != 0 {
            match heritage {
                Value::Null => proto_parent = Id::NONE,
                value if self.is_constructor(value) => {
                    let Value::Obj(id) = value else { return Err(Raise::Fault("heritage")) };
                    parent = id;
                    match self.get(id, ids::key(ids::PROTOTYPE)) {
                        super::props::PropertyRead::Value(Value::Obj(p)) => proto_parent = p,
                        super::props::PropertyRead::Value(Value::Null) => proto_parent = Id::NONE,
                        super::props::PropertyRead::Value(_) => {
                            return Err(
                                self.type_error("Class extends value does not have valid prototype property")
                            );
                        }
                        _ => return self.class_slow(number, heritage, env),
                    }
                }
                value => {
                    let shown = self.brief(value);
                    return Err(
                        self.type_error(&format!("Class extends value {shown} is not a constructor or null"))
                    );
                }
            }
        }
        let (class, proto) = self.make_class(number, env, parent, proto_parent);
        self.replace_top(2, class);
        self.push(proto);
        Ok(())
    }

    /// `prototype` of the heritage is an accessor: the prelude reads it and returns a stand-in constructor.
    fn class_slow(&mut self, _number: u32, heritage: Value, _env: Value) -> Res<()> {
        // Heritage is replaced by a record that carries both parents; then the instruction runs again.
        let at = self.st.sp - 2;
        if let Some(frame) = self.st.frames.last_mut() {
            frame.pc -= 1;
        }
        self.push(heritage);
        let template = self.pre("ClassHeritage");
        self.call_pre(template, 1, Back::Store(at as u32))
    }

    fn make_class(&mut self, number: u32, env: Value, parent: Id, proto_parent: Id) -> (Value, Value) {
        // A stand-in of `ClassHeritage` refers to the real parent.
        let real = match &self.st.heap.obj(parent).kind {
            ObjectKind::Bound(b) if b.2.first() == Some(&Value::Uninit) => b.0.as_obj().unwrap_or(parent),
            _ => parent,
        };
        let proto = self.st.heap.new_object(proto_parent, ObjectKind::Plain);
        let class = self.new_function(Code::Template(number), env, real);
        if let Value::Obj(id) = class {
            self.materialise(id);
            let object = self.st.heap.obj_mut(id);
            if let ObjectKind::Function(f) = &mut object.kind {
                f.home = Value::Obj(proto);
            }
            // `prototype` follows `length` and `name`.
            object.props.push(Prop { key: ids::key(ids::PROTOTYPE), flags: 0, value: Value::Obj(proto) });
            let back = Prop { key: ids::key(ids::CONSTRUCTOR), flags: attr::HIDDEN, value: class };
            self.st.heap.obj_mut(proto).props.push(back);
            self.st.heap.charge(48);
        }
        (class, Value::Obj(proto))
    }

    /// class f -> class
    pub(crate) fn op_set_fields(&mut self) {
        let f = self.pop();
        let Value::Obj(class) = self.peek(0) else { return };
        let proto = match &self.st.heap.obj(class).kind {
            ObjectKind::Function(c) => c.home,
            _ => Value::Undefined,
        };
        if let Value::Obj(id) = f
            && let ObjectKind::Function(func) = &mut self.st.heap.obj_mut(id).kind
        {
            func.home = proto;
        }
        if let ObjectKind::Function(c) = &mut self.st.heap.obj_mut(class).kind {
            c.fields = f;
        }
    }

    /// this class -> result of the class's field initialiser
    pub(crate) fn op_run_fields(&mut self) -> Res<()> {
        let (this, class) = (self.peek(1), self.peek(0));
        let fields = match class {
            Value::Obj(id) => match &self.st.heap.obj(id).kind {
                ObjectKind::Function(f) => f.fields,
                _ => Value::Undefined,
            },
            _ => Value::Undefined,
        };
        if fields == Value::Undefined {
            self.replace_top(2, Value::Undefined);
            return Ok(());
        }
        self.replace_top(2, fields);
        self.push(this);
        self.call(0, Back::Push)
    }

    /// o f -> o f
    pub(crate) fn op_set_home(&mut self) {
        let home = self.peek(1);
        if let Value::Obj(id) = self.peek(0)
            && let ObjectKind::Function(f) = &mut self.st.heap.obj_mut(id).kind
        {
            f.home = home;
        }
    }
}

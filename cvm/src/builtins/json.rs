//! JSON: parsing in Rust with the pure scanner, the leaf functions of `stringify`, and results of the host as values.

use super::ids;
use super::natives::{EMPTY, Module};
use crate::heap::object::ObjectKind;
use crate::pure::json::{JsonEvent, JsonScanner};
use crate::pure::units::Units;
use crate::value::{Key, Value};
use crate::vm::Vm;

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("jsonParse", |vm, c| {
            let text = vm.arg_str(&c, 0)?;
            let units = vm.st.heap.str(text).to_wide();
            match vm.parse_json(&units[..]) {
                Ok(value) => Ok(value.into()),
                Err(message) => Err(vm.syntax_error(&message)),
            }
        }),
        ("jsonQuote", |vm, c| {
            let text = vm.arg_str(&c, 0)?;
            let mut out = Vec::new();
            crate::pure::json::quote(&mut out, &vm.st.heap.str(text));
            Ok(Value::Str(vm.st.heap.new_wide(&out)).into())
        }),
        ("jsonIsPrimitive", |vm, c| {
            let text = vm.arg_str(&c, 0)?;
            Ok(Value::Bool(crate::pure::json::is_raw_primitive(&vm.st.heap.str(text))).into())
        }),
        ("jsonUnwrap", |vm, c| {
            let value = vm.arg(&c, 0);
            Ok(match value {
                Value::Obj(id) => match vm.st.heap.obj(id).kind {
                    ObjectKind::Primitive(v @ (Value::Bool(_) | Value::Big(_))) => v,
                    _ => value,
                },
                _ => value,
            }
            .into())
        }),
        ("isWrapper", |vm, c| {
            let kind = match vm.arg(&c, 0) {
                Value::Obj(id) => match vm.st.heap.obj(id).kind {
                    ObjectKind::Primitive(Value::Int(_) | Value::Num(_)) => Value::Int(1),
                    ObjectKind::Primitive(Value::Str(_)) => Value::Int(2),
                    _ => Value::Bool(false),
                },
                _ => Value::Bool(false),
            };
            Ok(kind.into())
        }),
        ("isFinite", |vm, c| Ok(Value::Bool(vm.arg(&c, 0).as_num().is_some_and(f64::is_finite)).into())),
        ("pop", |vm, c| {
            if let Value::Obj(id) = vm.arg(&c, 0)
                && let ObjectKind::Array(a) = &mut vm.st.heap.obj_mut(id).kind
                && let Some(v) = a.dense.pop()
            {
                a.len -= 1;
                return Ok(v.into());
            }
            Ok(Value::Undefined.into())
        }),
        ("cut", |vm, c| {
            let text = vm.arg_str(&c, 0)?;
            let n = vm.arg_number(&c, 1)? as usize;
            Ok(Value::Str(vm.st.heap.substring(text, 0, n)).into())
        }),
    ],
    lists: &[(ids::JSON, "JSONStatics")],
    source: include_str!("json.js"),
    extra: |r| {
        r.tag(ids::JSON, "JSON");
        r.global("JSON", Value::Obj(ids::JSON));
    },
    ..EMPTY
};

impl Vm<'_> {
    /// JSON text as a value; the error is the message of a `SyntaxError`.
    pub(crate) fn parse_json<U: Units + ?Sized>(&mut self, text: &U) -> Result<Value, String> {
        let mut scanner = JsonScanner::new(text);
        // Open containers, each with the key of its next value.
        let mut open: Vec<(Value, Option<Key>)> = Vec::new();
        let mut result = Value::Undefined;
        loop {
            // The collector cannot run during parsing; until then at most twice the heap limit is allocated.
            if self.st.heap.bytes > self.st.heap.limit.saturating_mul(2) {
                return Err("JSON text needs more memory than there is".to_owned());
            }
            let event = scanner.next_event().map_err(|e| e.to_string())?;
            let Some(event) = event else { return Ok(result) };
            let value = match event {
                JsonEvent::Null(_) => Value::Null,
                JsonEvent::Boolean(b, _) => Value::Bool(b),
                JsonEvent::Number(n, _) => Value::num(n),
                JsonEvent::String(token) => {
                    let units = scanner.decode(&token);
                    Value::Str(self.st.heap.new_wide(&units))
                }
                JsonEvent::Key(token) => {
                    let units = scanner.decode(&token);
                    let id = self.st.heap.new_wide(&units);
                    let key = self.st.heap.key_of_str(id);
                    if let Some(top) = open.last_mut() {
                        top.1 = Some(key);
                    }
                    continue;
                }
                JsonEvent::BeginArray => {
                    let array = self.new_array(Vec::new());
                    open.push((array, None));
                    continue;
                }
                JsonEvent::BeginObject => {
                    let id = self.st.heap.new_object(ids::OBJECT_PROTO, ObjectKind::Plain);
                    open.push((Value::Obj(id), None));
                    continue;
                }
                JsonEvent::EndArray | JsonEvent::EndObject => match open.pop() {
                    Some((container, _)) => container,
                    None => continue,
                },
            };
            match open.last_mut() {
                None => result = value,
                Some((Value::Obj(id), key)) => {
                    let (id, key) = (*id, key.take());
                    match key {
                        Some(key) => self.create(id, key, value),
                        None => {
                            if let ObjectKind::Array(a) = &mut self.st.heap.obj_mut(id).kind {
                                a.dense.push(value);
                                a.len += 1;
                            }
                            self.st.heap.charge(16);
                        }
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// JSON text from the host as a value; a string value if the text is not valid JSON.
    pub(crate) fn json_value(&mut self, json: &str) -> Value {
        let units: Vec<u16> = json.encode_utf16().collect();
        match self.parse_json(&units[..]) {
            Ok(value) => value,
            Err(_) => self.st.heap.str_value(json),
        }
    }
}

//! `encodeURI` and its relatives, `escape` and `unescape`: ECMA-262 19.2.6 and B.2.1.

use super::ids;
use super::natives::{EMPTY, Module, method};
use crate::pure::escape as legacy;
use crate::pure::uri::{self, UriPart};
use crate::value::Value;
use crate::vm::{NativeCall, Raise, Res, Ret, Vm};

pub(super) const MODULE: Module = Module {
    methods: &[
        method(ids::GLOBAL, "decodeURI", 1, decode_uri),
        method(ids::GLOBAL, "decodeURIComponent", 1, decode_uri_component),
        method(ids::GLOBAL, "encodeURI", 1, encode_uri),
        method(ids::GLOBAL, "encodeURIComponent", 1, encode_uri_component),
        method(ids::GLOBAL, "escape", 1, escape),
        method(ids::GLOBAL, "unescape", 1, unescape),
    ],
    ..EMPTY
};

fn malformed(vm: &mut Vm<'_>) -> Raise {
    Raise::Throw(vm.make_error(ids::URI_ERROR_PROTO, "URI malformed"))
}

fn encode(vm: &mut Vm<'_>, call: &NativeCall, scope: UriPart) -> Res<Ret> {
    let source = vm.arg_str(call, 0)?;
    match uri::encode(&vm.st.heap.str(source), scope) {
        Ok(text) => Ok(vm.st.heap.str_value(&text).into()),
        Err(_) => Err(malformed(vm)),
    }
}

fn decode(vm: &mut Vm<'_>, call: &NativeCall, scope: UriPart) -> Res<Ret> {
    let source = vm.arg_str(call, 0)?;
    match uri::decode(&vm.st.heap.str(source), scope) {
        Ok(text) => Ok(Value::Str(vm.st.heap.new_wide(&text)).into()),
        Err(_) => Err(malformed(vm)),
    }
}

fn encode_uri(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    encode(vm, &call, UriPart::Uri)
}

fn encode_uri_component(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    encode(vm, &call, UriPart::Component)
}

fn decode_uri(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    decode(vm, &call, UriPart::Uri)
}

fn decode_uri_component(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    decode(vm, &call, UriPart::Component)
}

fn escape(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let source = vm.arg_str(&call, 0)?;
    let text = legacy::escape(&vm.st.heap.str(source));
    Ok(vm.st.heap.str_value(&text).into())
}

fn unescape(vm: &mut Vm<'_>, call: NativeCall) -> Res<Ret> {
    let source = vm.arg_str(&call, 0)?;
    let text = legacy::unescape(&vm.st.heap.str(source));
    Ok(Value::Str(vm.st.heap.new_wide(&text)).into())
}

//! `fetch`, `Headers`, `Request`, `Response`: natives for names and values of header fields, bytes of bodies, and the call of the
//! host; `fetch.js` has the rest. Must not: make a request.

use super::ids;
use super::natives::{Ctor, CtorCode, EMPTY, Module};
use crate::heap::object::ObjectKind;
use crate::outcome::{FETCH, HostResponse, PendingRequest};
use crate::state::Back;
use crate::value::{Id, Value};
use crate::vm::{NativeCall, Raise, Res, Ret, Vm};
use std::collections::HashMap;
use vm_system_inspect::{ShownField, ShownFields};

/// Tags of records: `Headers`, `Response`, `Request`.
const HEADERS: u32 = 940;
const RESPONSE: u32 = 942;
const REQUEST: u32 = 943;

/// Ports of other protocols, as the Fetch standard lists them.
const BAD_PORTS: &[u16] = &[
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
    109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
    526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
    3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// Header fields about a body, which a redirect without it leaves out.
const OF_BODY: [&str; 5] =
    ["content-encoding", "content-language", "content-location", "content-type", "content-length"];
/// Header fields that go to no other origin; nor do the names of secrets.
const OF_ORIGIN: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "host"];
const SECRET: &str = "{secret:";

const fn ctor(id: Id, name: &'static str, code: &'static str, length: u16, proto: Id) -> Ctor {
    let (parent, proto_parent) = (ids::FUNCTION_PROTO, ids::OBJECT_PROTO);
    Ctor { id, name, length, code: CtorCode::Prelude(code), proto, parent, proto_parent, global: true }
}

pub(super) const MODULE: Module = Module {
    intrinsics: &[
        ("headerName", header_name),
        ("headerValue", header_value),
        ("methodName", method_name),
        ("isStatusText", |vm, c| {
            let text = vm.arg_text(&c, 0);
            let fits = |c: char| matches!(c, '\t' | ' '..='~' | '\u{80}'..='\u{ff}');
            Ok(Value::Bool(text.chars().all(fits)).into())
        }),
        ("isBadPort", |vm, c| {
            let port = vm.arg_text(&c, 0).parse();
            Ok(Value::Bool(port.is_ok_and(|port| BAD_PORTS.contains(&port))).into())
        }),
        ("redirectFields", redirect_fields),
        ("bodyCopy", |vm, c| {
            let bytes = vm.bytes_of(vm.arg(&c, 0)).unwrap_or_default().to_vec();
            Ok(vm.new_uint8_array(bytes).into())
        }),
        ("httpRequest", http_request),
    ],
    ctors: &[
        ctor(ids::HEADERS, "Headers", "Headers_", 0, ids::HEADERS_PROTO),
        ctor(ids::REQUEST, "Request", "Request_", 1, ids::REQUEST_PROTO),
        ctor(ids::RESPONSE, "Response", "Response_", 0, ids::RESPONSE_PROTO),
    ],
    lists: &[
        (ids::HEADERS_PROTO, "HeadersPrototype"),
        (ids::HEADERS_ITERATOR_PROTO, "HeadersIteratorPrototype"),
        (ids::RESPONSE, "ResponseStatics"),
        (ids::RESPONSE_PROTO, "ResponsePrototype"),
        (ids::REQUEST_PROTO, "RequestPrototype"),
        (ids::GLOBAL, "FetchFunctions"),
    ],
    source: include_str!("fetch.js"),
    extra: |r| {
        r.alias(ids::HEADERS_PROTO, "entries", "$$SYM_ITERATOR");
        r.heap.obj_mut(ids::HEADERS_ITERATOR_PROTO).proto = ids::ITERATOR_PROTO;
        r.tag(ids::HEADERS_ITERATOR_PROTO, "Headers Iterator");
        for (object, tag) in [
            (ids::HEADERS_PROTO, "Headers"),
            (ids::REQUEST_PROTO, "Request"),
            (ids::RESPONSE_PROTO, "Response"),
        ] {
            r.tag(object, tag);
            r.show_members(object);
        }
    },
    ..EMPTY
};

fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

/// `$headerName(text)`: in lower case, undefined if it is no name.
fn header_name(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let text = vm.arg_text(&c, 0);
    Ok(if is_token(&text) { vm.st.heap.str_value(&text.to_ascii_lowercase()) } else { Value::Undefined }
        .into())
}

/// `$headerValue(text)`: without white space around it, undefined if it is no value.
fn header_value(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let text = vm.arg_text(&c, 0);
    let trimmed = text.trim_matches(['\t', '\n', '\r', ' ']);
    let is_value = trimmed.chars().all(|c| !matches!(c, '\0' | '\n' | '\r') && u32::from(c) < 256);
    Ok(if is_value { vm.st.heap.str_value(trimmed) } else { Value::Undefined }.into())
}

/// `$methodName(text)`: the usual ones in upper case; undefined if it is none, or one that scripts must not use.
fn method_name(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let text = vm.arg_text(&c, 0);
    let upper = text.to_ascii_uppercase();
    if !is_token(&text) || ["CONNECT", "TRACE", "TRACK"].contains(&upper.as_str()) {
        return Ok(Value::Undefined.into());
    }
    let usual = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"].contains(&upper.as_str());
    Ok(vm.st.heap.str_value(if usual { &upper } else { &text }).into())
}

/// `$redirectFields(list, otherOrigin, withoutBody)`: what is left of names and values in turn.
fn redirect_fields(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let (other, plain) = (vm.arg(&c, 1) == Value::Bool(true), vm.arg(&c, 2) == Value::Bool(true));
    let list = vm.dense(vm.arg(&c, 0)).map(|list| list.dense.clone()).unwrap_or_default();
    let stays = |[name, value]: &&[Value; 2]| {
        let name = vm.plain_text(*name);
        let private = || OF_ORIGIN.contains(&name.as_str()) || vm.plain_text(*value).contains(SECRET);
        !(plain && OF_BODY.contains(&name.as_str()) || other && private())
    };
    let kept = list.as_chunks().0.iter().filter(stays).flatten().copied().collect();
    Ok(vm.new_array(kept).into())
}

/// `$httpRequest(method, url, fields, bytes)`: waits for the host. Its arguments are a method, a URL, a list with names and values of
/// header fields in turn, with a character for each byte, and the body in base64, if there is one.
fn http_request(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let part = |vm: &mut Vm<'_>, i| {
        let exported = vm.export_json(vm.arg(&c, i));
        exported.map_err(|error| vm.type_error(&format!("The request {}", error.why())))
    };
    let (method, url, fields) = (part(vm, 0)?, part(vm, 1)?, part(vm, 2)?);
    let body = match vm.bytes_of(vm.arg(&c, 3)) {
        None => "null".to_owned(),
        Some(bytes) => {
            let text = format!("\"{}\"", vm_system_web::to_base64(bytes));
            vm.charge_bytes(8 * text.len());
            text
        }
    };
    // The result is pushed in the place of the arguments, as that of any intrinsic.
    (vm.st.sp, vm.st.wait_back) = (c.at, Back::Push);
    let args = format!("[{method},{url},{fields},{body}]");
    Err(Raise::Wait(Box::new(PendingRequest::Host { name: FETCH.to_owned(), args })))
}

impl Vm<'_> {
    /// The value that `$httpRequest` returns; none if the program's generation has no requests.
    pub(crate) fn response_value(&mut self, response: &HostResponse) -> Option<Value> {
        // A state of an older generation waits for no request, unless it is forged.
        if !matches!(self.st.heap.cell(ids::RESPONSE_PROTO), Some(crate::heap::Cell::Obj(_))) {
            return None;
        }
        let mut fields = Vec::new();
        for (name, value) in &response.headers {
            fields.push(self.st.heap.str_value(name));
            fields.push(Value::Str(self.st.heap.new_narrow(value)));
        }
        let reason = self.st.heap.str_value(&response.reason);
        let fields = self.new_array(fields);
        let body = self.new_uint8_array(response.body.clone());
        Some(self.new_array(vec![Value::Int(response.status.into()), reason, fields, body]))
    }

    /// The value that `$httpRequest` returns for a request that was refused or has failed.
    pub(crate) fn failure_value(&mut self, code: &str, message: &str) -> Value {
        let texts = [code, message].map(|text| self.st.heap.str_value(text));
        self.new_array(texts.to_vec())
    }

    /// The names and values of a `Headers`, as they were written first.
    fn header_pairs(&self, value: Value) -> Option<Vec<(String, String)>> {
        let ObjectKind::Record(HEADERS, slots) = &self.st.heap.obj(value.as_obj()?).kind else { return None };
        let list = &self.dense(*slots.first()?)?.dense;
        let (mut pairs, mut places) = (Vec::<(String, String)>::new(), HashMap::new());
        for [name, written, value] in list.as_chunks::<3>().0 {
            let text = self.plain_text(*value);
            let place = *places.entry(self.plain_text(*name)).or_insert(pairs.len());
            match pairs.get_mut(place) {
                Some((_, values)) => values.extend([", ", &text]),
                None => pairs.push((self.plain_text(*written), text)),
            }
        }
        Some(pairs)
    }

    /// The parts of a `Headers`, a `Response` or a `Request` that are shown.
    pub(crate) fn shown_exchange(&self, value: Value) -> Option<ShownFields<Value>> {
        let ObjectKind::Record(tag, slots) = &self.st.heap.obj(value.as_obj()?).kind else { return None };
        let names: &[&'static str] = match *tag {
            RESPONSE => &["status", "statusText", "url", "redirected", "type"],
            REQUEST => &["method", "url", "redirect"],
            _ => return None,
        };
        let headers = ShownField::Pairs("Headers", self.header_pairs(*slots.get(2)?).unwrap_or_default());
        let mut fields: Vec<_> = vec![("headers", headers)];
        let parts = names.iter().zip(slots.get(3..)?);
        fields.extend(parts.map(|(name, part)| (*name, ShownField::Value(*part))));
        let used = slots.first() != Some(&Value::Null) && slots.get(1) == Some(&Value::Bool(true));
        fields.push(("bodyUsed", ShownField::Value(Value::Bool(used))));
        Some(fields)
    }
}

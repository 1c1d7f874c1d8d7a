//! Owns the native half of `exec`: one command, its result as plain values.

use super::host_call::{failed, returned, unexpected};
use crate::engine::state::SharedState;
use crate::engine::sys;
use rquickjs::{Array, Ctx, Function, Object, Result, Value};
use vm_system_protocol::broker::ExecRequest;
use vm_system_protocol::worker::{HostError, HostReply, HostRequest};

/// `exec(command, arguments, input, folder, names, values)`: `[result]`, or `[undefined, code, message]`. The prelude has
/// checked the types: texts; `input` a `Uint8Array`; `names` and `values` of the environment, arrays of the same length.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    let call = move |ctx: Ctx<'js>,
                     command: String,
                     arguments: Vec<String>,
                     input: Object<'js>,
                     folder: String,
                     environment: Vec<Vec<String>>| {
        let input = sys::view_bytes(&input, usize::MAX).map(|(bytes, _)| bytes).unwrap_or_default();
        let mut environment = environment.into_iter();
        let (names, values) =
            (environment.next().unwrap_or_default(), environment.next().unwrap_or_default());
        let environment = names.into_iter().zip(values).collect();
        let request = ExecRequest { command, arguments, input, folder, environment };
        match shared.call(&ctx, HostRequest::Exec(request))? {
            HostReply::Exec(reply) => {
                let result = Array::new(ctx.clone())?;
                let number = |number: Option<i32>| match number {
                    Some(number) => Value::new_int(ctx.clone(), number),
                    None => Value::new_null(ctx.clone()),
                };
                result.set(0, number(reply.code))?;
                result.set(1, number(reply.signal))?;
                result.set(2, reply.timed_out)?;
                result.set(3, sys::new_uint8_array(&ctx, &reply.stdout)?)?;
                result.set(4, sys::new_uint8_array(&ctx, &reply.stderr)?)?;
                result.set(5, reply.truncated)?;
                returned(&ctx, result.into_value())
            }
            HostReply::Failed(HostError { code, message }) => failed(&ctx, &code, &message),
            _ => unexpected(&ctx),
        }
    };
    natives.set("exec", Function::new(ctx.clone(), call)?)
}

//! Owns the native half of `fs`: one question to the host, its answer as plain values.

use crate::engine::codec;
use crate::engine::state::Shared;
use crate::engine::sys;
use rquickjs::{Array, Ctx, Function, Object, Result, Value};
use vm_system_protocol::broker::{FileKind, FileStat, FsReply, FsRequest};
use vm_system_protocol::worker::{HostError, HostReply, HostRequest};

/// `fs(kind, path, flag)`: `[value]`, or `[undefined, code, message]`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &Shared, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    let call = move |ctx: Ctx<'js>, kind: String, path: String, flag: Value<'js>| {
        let encoding = flag.as_string().and_then(|name| name.to_string().ok()).unwrap_or_default();
        let encoding = if encoding.is_empty() {
            None
        } else {
            match codec::encoding(&encoding) {
                Some(encoding) => Some(encoding),
                None => {
                    return failed(&ctx, "ERR_UNKNOWN_ENCODING", &format!("Unknown encoding: {encoding}"));
                }
            }
        };
        if !super::is_allowed(&shared, "fs") {
            return failed(&ctx, "MODULE_NOT_ALLOWED", "the module 'fs' is not allowed in this execution");
        }
        let request = match kind.as_str() {
            "read" => FsRequest::ReadFile { path },
            "readdir" => FsRequest::ReadDir { path },
            "stat" => FsRequest::Stat { path, no_follow: flag.as_bool().unwrap_or(false) },
            _ => FsRequest::Exists { path },
        };
        match shared.call(&ctx, HostRequest::Fs(request))? {
            HostReply::Fs(reply) => {
                let answer = Array::new(ctx.clone())?;
                answer.set(0, value(&ctx, reply, encoding)?)?;
                Ok(answer)
            }
            HostReply::Failed(HostError { code, message }) => failed(&ctx, &code, &message),
            HostReply::Module { .. } => {
                failed(&ctx, "EIO", "the host gave another answer than was asked for")
            }
        }
    };
    natives.set("fs", Function::new(ctx.clone(), call)?)
}

fn failed<'js>(ctx: &Ctx<'js>, code: &str, message: &str) -> Result<Array<'js>> {
    let answer = Array::new(ctx.clone())?;
    answer.set(0, Value::new_undefined(ctx.clone()))?;
    answer.set(1, code)?;
    answer.set(2, message)?;
    Ok(answer)
}

fn value<'js>(ctx: &Ctx<'js>, reply: FsReply, encoding: Option<codec::Encoding>) -> Result<Value<'js>> {
    match reply {
        FsReply::Bytes(bytes) => match encoding {
            Some(encoding) => codec::decode(ctx, &bytes, encoding),
            None => sys::new_uint8_array(ctx, &bytes),
        },
        FsReply::Entries(entries) => {
            let list = Array::new(ctx.clone())?;
            for (index, entry) in entries.into_iter().enumerate() {
                let pair = Array::new(ctx.clone())?;
                pair.set(0, entry.name)?;
                pair.set(1, kind_name(entry.kind))?;
                list.set(index, pair)?;
            }
            Ok(list.into_value())
        }
        FsReply::Stat(stat) => Ok(stat_object(ctx, stat)?.into_value()),
        FsReply::Bool(answer) => Ok(Value::new_bool(ctx.clone(), answer)),
    }
}

fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Other => "other",
    }
}

fn stat_object<'js>(ctx: &Ctx<'js>, stat: FileStat) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("kind", kind_name(stat.kind))?;
    object.set("size", stat.size as f64)?;
    object.set("mode", stat.mode)?;
    object.set("mtimeMs", stat.mtime_ms as f64)?;
    object.set("ctimeMs", stat.ctime_ms as f64)?;
    object.set("atimeMs", stat.atime_ms as f64)?;
    Ok(object)
}

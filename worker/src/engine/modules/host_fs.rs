//! Owns the native half of `fs`: one host call, its reply as plain values.

use super::host_call::{failed, returned, text_at, unexpected};
use crate::engine::codec;
use crate::engine::state::SharedState;
use crate::engine::sys;
use rquickjs::{Array, Ctx, Function, Object, Result, Value};
use vm_system_protocol::broker::{FileKind, FileStat, FsReply, FsRequest, WriteMode};
use vm_system_protocol::worker::{HostError, HostReply, HostRequest};

/// `fs(kind, path, …)`: `[value]`, or `[undefined, code, message]`. The arguments after the path are listed at each kind below.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    let call = move |ctx: Ctx<'js>, kind: String, path: String, more: Array<'js>| {
        let encoding = if kind == "read" { text_at(&more, 0)? } else { String::new() };
        let encoding = match (encoding.as_str(), codec::encoding(&encoding)) {
            ("", _) => None,
            (_, Some(encoding)) => Some(encoding),
            (_, None) => {
                return failed(&ctx, "ERR_UNKNOWN_ENCODING", &format!("Unknown encoding: {encoding}"));
            }
        };
        let request = request(&kind, path, &more)?;
        match shared.call(&ctx, HostRequest::Fs(request))? {
            HostReply::Fs(reply) => returned(&ctx, value(&ctx, reply, encoding)?),
            HostReply::Failed(HostError { code, message }) => failed(&ctx, &code, &message),
            _ => unexpected(&ctx),
        }
    };
    natives.set("fs", Function::new(ctx.clone(), call)?)
}

fn request(kind: &str, path: String, more: &Array<'_>) -> Result<FsRequest> {
    let flag = |at: usize| Ok::<_, rquickjs::Error>(more.get::<Value>(at)?.as_bool().unwrap_or(false));
    let number = |at: usize| Ok::<_, rquickjs::Error>(more.get::<f64>(at)? as u32);
    Ok(match kind {
        // encoding
        "read" => FsRequest::ReadFile { path },
        "readdir" => FsRequest::ReadDir { path },
        // whether it is lstat
        "stat" => FsRequest::Stat { path, no_follow: flag(0)? },
        // mode
        "access" => FsRequest::Access { path, mode: number(0)? },
        "realpath" => FsRequest::RealPath { path },
        // bytes, create, exclusive, truncate, append, mode
        "write" => {
            let how =
                WriteMode { create: flag(1)?, exclusive: flag(2)?, truncate: flag(3)?, append: flag(4)? };
            let data = sys::view_bytes(&more.get::<Object>(0)?, usize::MAX).map(|(bytes, _)| bytes);
            FsRequest::Write { path, data: data.unwrap_or_default(), how, mode: number(5)? }
        }
        // recursive, mode
        "mkdir" => FsRequest::MakeDir { path, recursive: flag(0)?, mode: number(1)? },
        "unlink" => FsRequest::RemoveFile { path },
        "rmdir" => FsRequest::RemoveDir { path },
        // recursive, force
        "rm" => FsRequest::Remove { path, recursive: flag(0)?, force: flag(1)? },
        // the other path
        "rename" => FsRequest::Rename { from: path, to: text_at(more, 0)? },
        // the other path, exclusive
        "copy" => FsRequest::Copy { from: path, to: text_at(more, 0)?, exclusive: flag(1)? },
        _ => FsRequest::Exists { path },
    })
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
        FsReply::Bool(value) => Ok(Value::new_bool(ctx.clone(), value)),
        FsReply::Path(Some(path)) => Ok(rquickjs::String::from_str(ctx.clone(), &path)?.into_value()),
        FsReply::Done | FsReply::Written(_) | FsReply::Path(None) => Ok(Value::new_undefined(ctx.clone())),
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

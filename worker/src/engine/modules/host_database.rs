//! Owns the native half of `database`: SQL values from and to JavaScript.

use super::host_call::{failed, returned, unexpected};
use crate::engine::state::SharedState;
use crate::engine::sys;
use rquickjs::{Array, BigInt, Ctx, Function, Object, Result, Type, Value};
use vm_system_protocol::broker::{DatabaseReply, DatabaseRequest, SqlParameters, SqlValue};
use vm_system_protocol::worker::{HostError, HostReply, HostRequest};

/// Whole numbers up to here are exact as JavaScript numbers.
const SAFE: i64 = (1 << 53) - 1;

/// `database(kind, database, sql, names, values)`: `[value]`, or `[undefined, code, message]`. `names` is an array of
/// parameter names, one for each of `values`, or `undefined` for positions. The prelude has converted each value to `null`, a
/// boolean, a number, a bigint, a string or a `Uint8Array`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    let shared = state.clone();
    let call = move |ctx: Ctx<'js>,
                     kind: String,
                     database: String,
                     sql: String,
                     names: Value<'js>,
                     values: Array<'js>| {
        let Some(parameters) = parameters(&names, &values)? else {
            return failed(&ctx, "ERR_OUT_OF_RANGE", "ERR_OUT_OF_RANGE: a bigint has more than 64 bits");
        };
        let request = match kind.as_str() {
            "configure" => DatabaseRequest::Configure { database },
            "query" => DatabaseRequest::Query { database, sql, parameters },
            "exec" => DatabaseRequest::Exec { database, sql, parameters },
            _ => DatabaseRequest::Close { database },
        };
        match shared.call(&ctx, HostRequest::Database(request))? {
            HostReply::Database(reply) => returned(&ctx, value(&ctx, reply)?),
            HostReply::Failed(HostError { code, message }) => failed(&ctx, &code, &message),
            _ => unexpected(&ctx),
        }
    };
    natives.set("database", Function::new(ctx.clone(), call)?)
}

fn parameters(names: &Value<'_>, values: &Array<'_>) -> Result<Option<SqlParameters>> {
    let mut converted = Vec::with_capacity(values.len());
    for value in values.iter::<Value>() {
        match from_script(&value?)? {
            Some(value) => converted.push(value),
            None => return Ok(None),
        }
    }
    let Some(names) = names.as_array() else { return Ok(Some(SqlParameters::Positional(converted))) };
    let names = names.iter::<String>().collect::<Result<Vec<_>>>()?;
    Ok(Some(SqlParameters::Named(names.into_iter().zip(converted).collect())))
}

/// `None`: a bigint that SQLite cannot hold.
fn from_script(value: &Value<'_>) -> Result<Option<SqlValue>> {
    Ok(Some(match value.type_of() {
        Type::Bool => SqlValue::Integer(i64::from(value.as_bool().unwrap_or(false))),
        Type::Int => SqlValue::Integer(i64::from(value.as_int().unwrap_or(0))),
        Type::Float => {
            let number = value.as_float().unwrap_or(f64::NAN);
            if number.fract() == 0.0
                && number.abs() <= SAFE as f64
                && (number != 0.0 || number.is_sign_positive())
            {
                SqlValue::Integer(number as i64)
            } else {
                SqlValue::Real(number.to_bits())
            }
        }
        Type::BigInt => {
            let text: rquickjs::Coerced<String> = value.get()?;
            match text.0.parse() {
                Ok(number) => SqlValue::Integer(number),
                Err(_) => return Ok(None),
            }
        }
        Type::String => {
            let units = value.as_string().and_then(sys::string_utf16).unwrap_or_default();
            SqlValue::Text(String::from_utf16_lossy(&units))
        }
        _ => match value.as_object().and_then(|view| sys::view_bytes(view, usize::MAX)) {
            Some((bytes, _)) => SqlValue::Blob(bytes),
            None => SqlValue::Null,
        },
    }))
}

fn value<'js>(ctx: &Ctx<'js>, reply: DatabaseReply) -> Result<Value<'js>> {
    match reply {
        DatabaseReply::Done => Ok(Value::new_undefined(ctx.clone())),
        DatabaseReply::Rows { columns, values } => {
            let width = columns.len();
            let list = Array::new(ctx.clone())?;
            let mut row = Object::new(ctx.clone())?;
            for (index, value) in values.into_iter().enumerate() {
                let column = index % width.max(1);
                // Defined and not assigned, because a column may be called `__proto__`.
                super::define_plain(&row, &columns[column], to_script(ctx, value)?)?;
                if column + 1 == width {
                    list.set(index / width, std::mem::replace(&mut row, Object::new(ctx.clone())?))?;
                }
            }
            Ok(list.into_value())
        }
        DatabaseReply::Changed { rows, last_row_id } => {
            let result = Object::new(ctx.clone())?;
            result.set("success", true)?;
            result.set("rowsAffected", rows as f64)?;
            result.set("lastInsertId", integer(ctx, last_row_id)?)?;
            Ok(result.into_value())
        }
    }
}

fn to_script<'js>(ctx: &Ctx<'js>, value: SqlValue) -> Result<Value<'js>> {
    match value {
        SqlValue::Null => Ok(Value::new_null(ctx.clone())),
        SqlValue::Integer(number) => integer(ctx, number),
        SqlValue::Real(bits) => Ok(Value::new_float(ctx.clone(), f64::from_bits(bits))),
        SqlValue::Text(text) => Ok(rquickjs::String::from_str(ctx.clone(), &text)?.into_value()),
        SqlValue::Blob(bytes) => sys::new_uint8_array(ctx, &bytes),
    }
}

/// A number if that is exact, else a bigint.
fn integer<'js>(ctx: &Ctx<'js>, number: i64) -> Result<Value<'js>> {
    if (-SAFE..=SAFE).contains(&number) {
        Ok(Value::new_number(ctx.clone(), number as f64))
    } else {
        Ok(BigInt::from_i64(ctx.clone(), number)?.into_value())
    }
}

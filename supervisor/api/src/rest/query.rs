//! Queries as types: their fields are read, checked and described in one place.

use super::App;
use super::envelope::RestError;
use super::input::{QueryParams, id};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::sync::Arc;
use vm_system_protocol::control::ListCursor;
use vm_system_protocol::model::{Engine, ExecutionStatus, SessionStatus};
use vm_system_protocol::time::Timestamp;

/// The query of a route.
pub(super) trait QueryFields: Sized + JsonSchema + Send {
    /// Names of the parameters.
    const NAMES: &'static [&'static str];
    fn read(params: &QueryParams) -> Result<Self, RestError>;
}

/// Declares the query of a route.
macro_rules! query {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(schemars::JsonSchema)]
        pub(super) struct $name {
            $($(#[$about])* pub(super) $field: $type,)+
        }

        impl crate::rest::query::QueryFields for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            fn read(
                params: &crate::rest::input::QueryParams,
            ) -> Result<Self, crate::rest::envelope::RestError> {
                use crate::rest::query::QueryValue as _;
                Ok(Self { $($field: <$type>::read(params, stringify!($field))?,)+ })
            }
        }
    };
}
pub(super) use query;

/// The query of a request.
pub(super) struct Query<Q>(pub(super) Q);

impl<Q: QueryFields> FromRequestParts<Arc<App>> for Query<Q> {
    type Rejection = RestError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, RestError> {
        Q::read(&QueryParams::parse(parts.uri.query().unwrap_or_default())?).map(Self)
    }
}

/// The value of a parameter.
pub(super) trait QueryValue: Sized {
    fn read(params: &QueryParams, name: &str) -> Result<Self, RestError>;
}

impl QueryValue for Option<String> {
    fn read(params: &QueryParams, name: &str) -> Result<Self, RestError> {
        Ok(params.one(name)?.map(str::to_owned))
    }
}

/// `true` or `false`; absent: `OTHERWISE`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flag<const OTHERWISE: bool>(pub(super) bool);

impl<const OTHERWISE: bool> QueryValue for Flag<OTHERWISE> {
    fn read(params: &QueryParams, name: &str) -> Result<Self, RestError> {
        params.flag(name, OTHERWISE).map(Self)
    }
}

/// An id.
pub(super) struct IdText(pub(super) String);

impl QueryValue for Option<IdText> {
    fn read(params: &QueryParams, name: &str) -> Result<Self, RestError> {
        params.one(name)?.map(|text| id(name, text).map(IdText)).transpose()
    }
}

/// A whole number from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Positive(pub(super) u32);

impl QueryValue for Option<Positive> {
    fn read(params: &QueryParams, name: &str) -> Result<Self, RestError> {
        Ok(params.number(name, 1)?.map(Positive))
    }
}

/// A sequence number; 0: before the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sequence(pub(super) u64);

impl QueryValue for Option<Sequence> {
    fn read(params: &QueryParams, name: &str) -> Result<Self, RestError> {
        Ok(params.number(name, 0)?.map(Sequence))
    }
}

impl QueryValue for Option<Timestamp> {
    fn read(params: &QueryParams, name: &str) -> Result<Self, RestError> {
        let Some(text) = params.one(name)? else { return Ok(None) };
        let invalid = || RestError::invalid(format!("{name} must be a time such as 2030-01-31T18:00:00Z"));
        text.parse().map(Some).map_err(|_| invalid())
    }
}

/// The place in a list behind which a page begins.
pub(super) struct PageCursor(pub(super) ListCursor);

impl QueryValue for Option<PageCursor> {
    fn read(params: &QueryParams, name: &str) -> Result<Self, RestError> {
        let Some(text) = params.one(name)? else { return Ok(None) };
        let invalid = || RestError::invalid(format!("{name} is not a value of X-Next-Cursor"));
        text.parse().map(|cursor| Some(PageCursor(cursor))).map_err(|_| invalid())
    }
}

/// Enums by the names of their members.
macro_rules! names {
    ($($name:ident),+) => {
        $(impl QueryValue for Option<$name> {
            fn read(params: &QueryParams, name: &str) -> Result<Self, RestError> {
                let names = $name::ALL.iter().map(|member| member.as_str()).collect::<Vec<_>>().join(", ");
                params.name(name, &names)
            }
        })+
    };
}
names!(Engine, ExecutionStatus, SessionStatus);

/// Schemas of the parameters' own types.
macro_rules! parameter_schemas {
    ($($name:ident $(<const $flag:ident: bool>)? = $schema:expr;)+) => {
        $(impl $(<const $flag: bool>)? JsonSchema for $name $(<$flag>)? {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        })+
    };
}

parameter_schemas! {
    Flag<const OTHERWISE: bool> = json_schema!({ "type": "boolean" });
    IdText = json_schema!({ "type": "string", "format": "uuid" });
    Positive = json_schema!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": u32::MAX });
    Sequence = json_schema!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": i64::MAX });
    PageCursor = json_schema!({
        "type": "string",
        "pattern": r"^-?[0-9]{1,18}\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    });
}

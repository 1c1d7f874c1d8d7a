//! The signature of a handler, as the table of routes reads it: which query it has, and in tests also its request's body and its
//! response, of which the description of the API is made. A handler therefore cannot take or answer anything but what is described.

use super::archives::Upload;
use super::envelope::RestResult;
use super::input::{JsonBody, OptionalJsonBody, PathSegments};
use super::query::{Query, QueryFields};
use super::request::RestRequest;
use axum::extract::Request;
use axum::http::HeaderMap;
use schemars::JsonSchema;

#[cfg(test)]
use super::openapi::DescribedOperation;
#[cfg(test)]
use super::shapes::ArchiveLines;

/// An argument of a handler.
pub(super) trait HandlerArgument {
    /// Names of the query parameters that it reads.
    const QUERY: &'static [&'static str] = &[];

    #[cfg(test)]
    fn describe(_: &mut DescribedOperation<'_>) {}
}

impl HandlerArgument for RestRequest {}
impl<T> HandlerArgument for PathSegments<T> {}
impl HandlerArgument for HeaderMap {}
impl HandlerArgument for Request {}

impl<Q: QueryFields> HandlerArgument for Query<Q> {
    const QUERY: &'static [&'static str] = Q::NAMES;

    #[cfg(test)]
    fn describe(operation: &mut DescribedOperation<'_>) {
        operation.query::<Q>();
    }
}

impl<T: JsonSchema> HandlerArgument for JsonBody<T> {
    #[cfg(test)]
    fn describe(operation: &mut DescribedOperation<'_>) {
        operation.body::<T>(true);
    }
}

impl<T: JsonSchema> HandlerArgument for OptionalJsonBody<T> {
    #[cfg(test)]
    fn describe(operation: &mut DescribedOperation<'_>) {
        operation.body::<T>(false);
    }
}

impl HandlerArgument for Upload {
    #[cfg(test)]
    fn describe(operation: &mut DescribedOperation<'_>) {
        operation.body::<ArchiveLines>(true);
    }
}

/// The form of a successful response.
pub(super) trait AnswerForm {
    #[cfg(test)]
    fn describe<T: JsonSchema>(operation: &mut DescribedOperation<'_>) {
        operation.answer::<T>();
    }
}

/// One value.
pub(super) enum Whole {}
/// A part of a list, and the cursor of the next one.
pub(super) enum Paged {}
/// A part of a list of events, or a stream of all that follow.
pub(super) enum Streamed {}
/// No body: the connection has another protocol from here on.
pub(super) enum Switched {}

impl AnswerForm for Whole {}

impl AnswerForm for Paged {
    #[cfg(test)]
    fn describe<T: JsonSchema>(operation: &mut DescribedOperation<'_>) {
        operation.answer::<T>();
        operation.paged();
    }
}

impl AnswerForm for Streamed {
    #[cfg(test)]
    fn describe<T: JsonSchema>(operation: &mut DescribedOperation<'_>) {
        operation.answer::<T>();
        operation.paged();
        operation.streamed();
    }
}

impl AnswerForm for Switched {
    #[cfg(test)]
    fn describe<T: JsonSchema>(operation: &mut DescribedOperation<'_>) {
        operation.switched();
    }
}

/// A handler with its arguments `T`.
pub(super) trait Endpoint<T> {
    /// Names of its query parameters.
    const QUERY: &'static [&'static str];

    #[cfg(test)]
    fn describe(operation: &mut DescribedOperation<'_>);
}

const fn first_not_empty(lists: &[&'static [&'static str]]) -> &'static [&'static str] {
    let mut at = 0;
    while at < lists.len() {
        if !lists[at].is_empty() {
            return lists[at];
        }
        at += 1;
    }
    &[]
}

macro_rules! endpoints {
    ($(($($argument:ident),+);)+) => {
        $(impl<Handler, Work, Value, Shape, Mark, $($argument),+> Endpoint<(Mark, $($argument,)+)> for Handler
        where
            Handler: FnOnce($($argument),+) -> Work,
            Work: Future<Output = RestResult<Value, Shape>>,
            Value: JsonSchema,
            Shape: AnswerForm,
            $($argument: HandlerArgument),+
        {
            const QUERY: &'static [&'static str] = first_not_empty(&[$($argument::QUERY),+]);

            #[cfg(test)]
            fn describe(operation: &mut DescribedOperation<'_>) {
                $($argument::describe(operation);)+
                Shape::describe::<Value>(operation);
            }
        })+
    };
}

endpoints! {
    (A);
    (A, B);
    (A, B, C);
    (A, B, C, D);
}

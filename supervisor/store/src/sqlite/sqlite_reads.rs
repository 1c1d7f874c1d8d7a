//! The reads of the SQLite store: each runs the function of its name (`read.rs`) on a connection that only reads.

use super::{SqliteStore, read};
use crate::reads::prelude::*;
use crate::reads::{OwnedArgument, for_each_read};
use crate::{BoxFuture, Lane, StoreReads};

macro_rules! read_on_a_connection {
    ($($(#[$doc:meta])* $name:ident[$($lent:ident: $borrowed:ty),*]($($arg:ident: $copied:ty),*) -> $result:ty;)*) => {
        impl StoreReads for SqliteStore {
            $(
                fn $name(
                    &self,
                    lane: Lane,
                    $($lent: OwnedArgument<$borrowed>,)*
                    $($arg: $copied),*
                ) -> BoxFuture<'_, Result<$result, StoreError>> {
                    let readers = Arc::clone(&self.readers);
                    Box::pin(readers.read(lane, move |c| read::$name(c, $(&$lent,)* $($arg),*)))
                }
            )*
        }
    };
}
for_each_read!(read_on_a_connection);

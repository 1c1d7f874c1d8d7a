//! The path from a verb to its handler, by the table of verbs
//! ([`for_each_verb`]). Knows no single verb.

use super::{Ops, VerbCall};
use vm_system_protocol::control::{Op, OpError, Reply};
use vm_system_protocol::for_each_verb;

macro_rules! dispatch {
    ($($verb:ident, $handler:ident, $name:literal, $effect:ident, $subject:expr => $reply:ty;)+) => {
        impl Ops {
            /// Runs the handler of a verb. Each future is boxed by itself, so that a request uses only the memory of its own verb.
            pub(super) async fn dispatch(&self, call: &VerbCall<'_>, op: Op) -> Result<Reply, OpError> {
                Ok(match op {
                    $(Op::$verb(verb) => {
                        Reply::$verb(Box::new(Box::pin(self.$handler(call, *verb)).await?))
                    })+
                })
            }
        }
    };
}

for_each_verb!(dispatch);

//! Owns the list of rejected promises without a handler.

use super::sys;
use rquickjs::{Ctx, Persistent, Value};
use std::collections::{BTreeMap, HashMap};

/// Rejected promises without a handler, oldest first.
#[derive(Default)]
pub(super) struct Rejections {
    order: BTreeMap<u64, UnhandledRejection>,
    by_promise: HashMap<usize, u64>,
    next: u64,
}

struct UnhandledRejection {
    /// Keeps the object alive, so that its identity is not reused.
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

impl Rejections {
    /// Called by QuickJS for a rejection without a handler, and when a handler is attached later.
    pub(super) fn track<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        promise: Value<'js>,
        reason: Value<'js>,
        handled: bool,
    ) {
        let identity = sys::identity(&promise);
        if handled {
            self.forget(identity);
        } else {
            let entry = UnhandledRejection {
                promise: Persistent::save(ctx, promise),
                reason: Persistent::save(ctx, reason),
            };
            self.order.insert(self.next, entry);
            self.by_promise.insert(identity, self.next);
            self.next += 1;
        }
    }

    /// Removes a promise that has a handler now.
    pub(super) fn forget(&mut self, identity: usize) {
        if let Some(key) = self.by_promise.remove(&identity) {
            self.order.remove(&key);
        }
    }

    /// Removes the oldest promise; returns it with its reason.
    pub(super) fn take_first<'js>(&mut self, ctx: &Ctx<'js>) -> Option<(Value<'js>, Value<'js>)> {
        let (_, entry) = self.order.pop_first()?;
        let promise = entry.promise.restore(ctx).ok()?;
        self.by_promise.remove(&sys::identity(&promise));
        Some((promise, entry.reason.restore(ctx).ok()?))
    }

    /// Removes all promises.
    pub(super) fn clear(&mut self) {
        self.order.clear();
        self.by_promise.clear();
    }
}

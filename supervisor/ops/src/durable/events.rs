//! The verb of events for programs.
//!
//! An event for one execution carries the response of its idempotency key in its own batch. An event for all has a mark for each
//! execution, in the batch of that event: a repeated request passes over those that have one. The marks are rows of the table of keys,
//! under names that no client can choose.

use super::refused;
use crate::audit::line_of;
use crate::errors::{invalid, stored};
use crate::{IdempotencyKey, Ops, VerbCall, idempotency};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;
use uuid::Uuid;
use vm_system_core::durable::{DurableRefusal, EventWrites};
use vm_system_protocol::control::{EmittedEvent, ErrorCode, EventEmit, EventReceiver, OpError};
use vm_system_protocol::counted::counted;
use vm_system_protocol::durable::{EVENT_BYTES, EVENT_NAME_BYTES};
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::input::json_for_script;
use vm_system_protocol::json::JsonText;
use vm_system_record::{KEY_LIFE, KeyClaim, Write, earlier};
use vm_system_runtime::Durables;

/// Executions that get an event for all at a time.
const AT_ONCE: usize = 32;
/// Largest content of an event for all, as often as it is stored (bytes): each execution has a copy in memory until it has used it.
const ALL_BYTES: usize = 64 << 20;
/// Rows of one read.
const ROWS: u32 = 1_000;
/// Most executions in a response.
const SHOWN: usize = 1_000;

impl Ops {
    pub(crate) async fn event_emit(
        &self,
        call: &VerbCall<'_>,
        EventEmit { name, event, execution }: EventEmit,
    ) -> Result<EmittedEvent, OpError> {
        if !(1..=EVENT_NAME_BYTES).contains(&name.len()) {
            return Err(invalid(format!("the name of an event has 1 to {EVENT_NAME_BYTES} bytes")));
        }
        if event.as_str().len() > EVENT_BYTES {
            return Err(invalid(format!("the event has more than {EVENT_BYTES} bytes")));
        }
        json_for_script(event.as_str()).map_err(|why| {
            invalid(format!("the event cannot be given to a program: {why}"))
                .with_hint("an event is JSON; a string needs quotes: '\"like this\"'")
        })?;
        match execution {
            Some(reference) => self.emit_to(call, &reference, (name, event)).await,
            None => self.emit_to_all(call, (name, event)).await,
        }
    }

    async fn emit_to(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
        event: (String, JsonText),
    ) -> Result<EmittedEvent, OpError> {
        let (id, identity) = self.identity(call, reference).await?;
        let emitted = |awaited| {
            let receiver = EventReceiver { execution_id: id, name: identity.name.clone(), awaited };
            EmittedEvent { received: 1, receivers: vec![receiver] }
        };
        let writes = |awaited| {
            let response = idempotency::response::<EventEmit>(call, &emitted(awaited));
            [line_of(call, &id.to_string())].into_iter().chain(response).collect()
        };
        let with = EventWrites { awaited: writes(true), kept: Some(writes(false)) };
        let result = match self.durables()?.emit(id, event, with).await {
            Ok(status) => Ok(emitted(status.was_awaited)),
            Err(why) => Err(refused_event(&why, id)),
        };
        if result.is_err() {
            self.audit(call, id, &result).await;
        }
        result
    }

    /// Gives an event to the caller's executions that wait for it as the request begins. It is in no mailbox.
    async fn emit_to_all(
        &self,
        call: &VerbCall<'_>,
        (name, event): (String, JsonText),
    ) -> Result<EmittedEvent, OpError> {
        let marks = call.key.map(|key| Marks::new(key, &name, &event));
        let mut received = match &marks {
            Some(marks) => self.marked(call, marks).await?,
            None => BTreeSet::new(),
        };
        let mut waiters = self.event_waiters(call, &name).await?;
        waiters.retain(|id| !received.contains(id));
        let all_bytes = waiters.len().saturating_mul(event.as_str().len());
        if all_bytes > ALL_BYTES {
            let what = format!(
                "{} wait for the event, and together it would have {all_bytes} bytes, more than {ALL_BYTES}",
                counted(waiters.len() as u64, "execution")
            );
            return Err(invalid(what).with_hint("send a smaller one, which says where the rest is"));
        }
        let durables = self.durables()?;
        let (mut not_received, mut first_error) = (0_u64, None);
        let (mut waiters, mut running) = (waiters.into_iter(), JoinSet::new());
        loop {
            while running.len() < AT_ONCE
                && let Some(id) = waiters.next()
            {
                let mut awaited = vec![line_of(call, &id.to_string())];
                awaited.extend(marks.as_ref().map(|marks| self.mark(call, marks, id)));
                let with = EventWrites { awaited, kept: None };
                running.spawn(emit_to_waiter(Arc::clone(durables), id, (name.clone(), event.clone()), with));
            }
            let Some(result) = running.join_next().await else { break };
            match result {
                Ok((id, Ok(()))) => drop(received.insert(id)),
                // It waits for the event no longer.
                Ok((_, Err(DurableRefusal::Ended | DurableRefusal::NotAwaited))) => {}
                Ok((id, Err(why))) => {
                    not_received += 1;
                    // The store and the supervisor would refuse it for the others, too.
                    if matches!(why, DurableRefusal::Storage(_) | DurableRefusal::Stopping) {
                        not_received += waiters.by_ref().count() as u64;
                    }
                    first_error.get_or_insert_with(|| refused_event(&why, id));
                }
                Err(_) => not_received += 1,
            }
        }
        let count = received.len() as u64;
        if not_received > 0 {
            let error = first_error.unwrap_or_else(|| OpError::new(ErrorCode::Internal, "a task failed"));
            return Err(OpError {
                message: format!(
                    "the event has reached {}, and {not_received} others not: {}",
                    counted(count, "execution"),
                    error.message
                ),
                ..error
            }
            .with_details(&serde_json::json!({ "received": count, "not_received": not_received }))
            .with_hint("repeat the request with the same idempotency key: those that got the event do not get it again"));
        }
        let mut receivers = Vec::new();
        for id in received.into_iter().take(SHOWN) {
            // One that was deleted since has no name.
            let name = self.run_by_id(call, id).await?.and_then(|run| run.row.name);
            receivers.push(EventReceiver { execution_id: id, name, awaited: true });
        }
        Ok(EmittedEvent { received: count, receivers })
    }

    /// The caller's executions that wait for an event of this name.
    async fn event_waiters(&self, call: &VerbCall<'_>, name: &str) -> Result<Vec<ExecutionId>, OpError> {
        let (store, owner) = (self.reads_of(call.caller), &call.caller.owner);
        let mut waiters = Vec::new();
        loop {
            let behind = waiters.last().copied();
            let page = store.event_waiters(owner, name, behind, ROWS).await.map_err(stored)?;
            let is_last = page.len() < ROWS as usize;
            waiters.extend(page);
            if is_last {
                return Ok(waiters);
            }
        }
    }

    /// The mark of an execution, for the batch of its event.
    fn mark(&self, call: &VerbCall<'_>, marks: &Marks, id: ExecutionId) -> Write {
        let at = self.store.now();
        Write::KeyClaim(Box::new(KeyClaim {
            owner: call.caller.owner.clone(),
            key: marks.name_of(id),
            request_hash: marks.hash,
            subject: *id.as_bytes(),
            at,
            expired_before: earlier(at, KEY_LIFE),
            reply: Some(Vec::new()),
            holder: self.store.incarnation(),
        }))
    }

    /// The executions that have a mark: an earlier request with this key has reached them.
    async fn marked(&self, call: &VerbCall<'_>, marks: &Marks) -> Result<BTreeSet<ExecutionId>, OpError> {
        let (store, owner) = (self.reads_of(call.caller), &call.caller.owner);
        let (since, end) = (earlier(self.store.now(), KEY_LIFE), marks.end());
        let (mut marked, mut from) = (BTreeSet::new(), marks.prefix.clone());
        loop {
            let page = store.key_subjects(owner, &from, &end, since, ROWS).await.map_err(stored)?;
            let last = page.last().filter(|_| page.len() == ROWS as usize);
            let next = last.map(|last| marks.name_of(ExecutionId::from_bytes(*last)));
            marked.extend(page.into_iter().map(ExecutionId::from_bytes));
            let Some(next) = next else { return Ok(marked) };
            from = next;
        }
    }
}

/// Gives the event to one execution, if it waits for it.
async fn emit_to_waiter(
    durables: Arc<Durables>,
    id: ExecutionId,
    event: (String, JsonText),
    with: EventWrites,
) -> (ExecutionId, Result<(), DurableRefusal>) {
    let result = durables.emit(id, event, with).await.map(|_| ());
    (id, result)
}

/// The names of the marks of one request.
struct Marks {
    hash: [u8; 32],
    prefix: String,
}

impl Marks {
    fn new(key: &IdempotencyKey, name: &str, event: &JsonText) -> Self {
        // Each text by its own hash: no two requests have the same texts joined.
        let parts = [key.as_str(), name, event.as_str()].map(Sha256::digest);
        let hash: [u8; 32] = Sha256::digest(parts.concat()).into();
        let [first, second] =
            [&hash[..16], &hash[16..]].map(|half| Uuid::from_slice(half).unwrap_or_default());
        // Keys of clients have no control character.
        Self { hash, prefix: format!("\u{1}event {}{} ", first.simple(), second.simple()) }
    }

    fn name_of(&self, id: ExecutionId) -> String {
        format!("{}{}", self.prefix, Uuid::from_bytes(*id.as_bytes()).simple())
    }

    /// Behind all of them.
    fn end(&self) -> String {
        format!("{}g", self.prefix)
    }
}

/// The error of an event that an execution does not get.
fn refused_event(why: &DurableRefusal, id: ExecutionId) -> OpError {
    match why {
        DurableRefusal::Ended => {
            OpError::new(ErrorCode::Conflict, "the execution has ended: it gets no events")
                .with_details(&serde_json::json!({ "execution_id": id }))
        }
        why => refused(why, id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_belong_to_one_key_and_one_event_and_are_no_keys_of_clients() {
        let key = |text: &str| IdempotencyKey::parse(text).expect("a key");
        let json = |text: &str| JsonText::from_untrusted(text.to_owned());
        let one = Marks::new(&key("k"), "paid", &json("1"));
        for other in [
            Marks::new(&key("kp"), "aid", &json("1")),
            Marks::new(&key("k"), "paid1", &json("")),
            Marks::new(&key("k"), "paid", &json("2")),
        ] {
            assert_ne!(one.prefix, other.prefix);
        }
        for byte in [0, 0x9f, 0xff] {
            let name = one.name_of(ExecutionId::from_bytes([byte; 16]));
            assert!(one.prefix < name && name < one.end(), "{name}");
            assert!(IdempotencyKey::parse(&name).is_err());
        }
    }
}

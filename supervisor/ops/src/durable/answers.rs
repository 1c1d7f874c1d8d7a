//! Answers are checked, plans compiled and imported files read on threads of their own: all take too long for those that serve all
//! clients.
//!
//! Owns: how many of them there are at a time, each owner's share of these, and the schemas of tasks that were used last. Decides
//! nothing about answers.

use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use vm_system_core::durable::SubmittedAnswer;
use vm_system_core::durable::schema::Schema;
use vm_system_protocol::control::{ErrorCode, GivenAnswer, OpError};
use vm_system_protocol::ids::TaskId;
use vm_system_record::Owner;
use vm_system_runtime::shares::{Holder, ShareLimits, Shares};

/// Checks at a time; one owner alone has half of them.
const CHECKS: usize = 4;
/// An answer to a task without a schema is not checked, and one of this length is read at once (bytes).
const SHORT: usize = 64 << 10;
/// Memory of the schemas that are kept, of all owners and of one (bytes). A larger one is not kept.
const KEPT_BYTES: usize = 32 << 20;
const OWNER_BYTES: usize = 8 << 20;

/// Checks of what takes long.
#[derive(Debug)]
pub(crate) struct CheckThreads {
    slots: Arc<Shares>,
    schemas: Arc<Mutex<KeptSchemas>>,
}

impl Default for CheckThreads {
    fn default() -> Self {
        let limits = ShareLimits { reserved: 0, ..ShareLimits::at_most(CHECKS) };
        Self { slots: Shares::new("checks of answers", "durable", limits), schemas: Arc::default() }
    }
}

impl CheckThreads {
    /// Does something that takes long, when it is the holder's turn. A check that has begun runs to its end, which is bounded, and
    /// has its slot until then.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        holder: &Holder,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, OpError> {
        let slot = self.slots.wait(holder, 1).await.ok_or_else(stopping)?;
        let work = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(slot);
            result
        });
        work.await.map_err(|_| stopping())
    }

    /// Checks an answer to a task with this schema.
    pub(crate) async fn answer(
        &self,
        holder: &Holder,
        owner: &Owner,
        task: TaskId,
        schema: Option<&str>,
        given: GivenAnswer,
    ) -> Result<SubmittedAnswer, OpError> {
        let bytes = match &given {
            GivenAnswer::Typed(_) => 0,
            GivenAnswer::Json(json) => json.as_str().len(),
        };
        if schema.is_none() && bytes <= SHORT {
            return Ok(SubmittedAnswer::Unchecked(given));
        }
        let (owner, schema) = (owner.clone(), schema.map(str::to_owned));
        let schemas = Arc::clone(&self.schemas);
        let check = move || match schema.map(|text| kept(&schemas, &owner, &text)).transpose() {
            Ok(schema) => SubmittedAnswer::check(task, schema.as_deref(), &given),
            Err(why) => {
                let result = Err(format!("the schema of the task cannot be used: {why}"));
                SubmittedAnswer::Checked { task, result }
            }
        };
        self.blocking(holder, check).await
    }
}

fn stopping() -> OpError {
    OpError::new(ErrorCode::ShuttingDown, "the supervisor is stopping")
}

/// A schema by its text, from the kept ones or anew.
fn kept(schemas: &Mutex<KeptSchemas>, owner: &Owner, text: &str) -> Result<Arc<Schema>, String> {
    // Nothing under this lock can panic half-way through a change.
    let lock = || schemas.lock().unwrap_or_else(PoisonError::into_inner);
    let hash: [u8; 32] = Sha256::digest(text).into();
    if let Some(schema) = lock().get(owner, hash) {
        return Ok(schema);
    }
    let schema = Arc::new(Schema::new(text)?);
    lock().keep(owner, hash, &schema);
    Ok(schema)
}

/// The owner of the task, and the hash of the text: a kept schema of one owner reveals nothing to others.
type SchemaKey = (Owner, [u8; 32]);

/// The most recently used schemas, within bounds for each owner and for all.
#[derive(Debug, Default)]
struct KeptSchemas {
    kept: HashMap<SchemaKey, (Arc<Schema>, u64)>,
    /// Memory of each owner's schemas (bytes).
    bytes: HashMap<Owner, usize>,
    /// Counts uses: a smaller number is an older use.
    uses: u64,
}

/// Memory of one of them besides its schema (bytes).
const ENTRY_BYTES: usize = 1024;

fn size(schema: &Schema) -> usize {
    schema.bytes() + ENTRY_BYTES
}

impl KeptSchemas {
    fn get(&mut self, owner: &Owner, hash: [u8; 32]) -> Option<Arc<Schema>> {
        self.uses += 1;
        let (schema, used) = self.kept.get_mut(&(owner.clone(), hash))?;
        *used = self.uses;
        Some(Arc::clone(schema))
    }

    fn keep(&mut self, owner: &Owner, hash: [u8; 32], schema: &Arc<Schema>) {
        let more = size(schema);
        self.forget(&(owner.clone(), hash));
        if more > OWNER_BYTES {
            return;
        }
        while self.bytes.get(owner).is_some_and(|bytes| bytes + more > OWNER_BYTES) && self.forget_of(owner) {
        }
        while self.bytes.values().sum::<usize>() + more > KEPT_BYTES {
            let largest = self.bytes.iter().max_by_key(|(_, bytes)| **bytes).map(|(owner, _)| owner.clone());
            if !largest.is_some_and(|largest| self.forget_of(&largest)) {
                break;
            }
        }
        self.uses += 1;
        *self.bytes.entry(owner.clone()).or_default() += more;
        self.kept.insert((owner.clone(), hash), (Arc::clone(schema), self.uses));
    }

    /// Drops the longest unused schema of an owner; false if it has none.
    fn forget_of(&mut self, owner: &Owner) -> bool {
        let of_owner = self.kept.iter().filter(|((of, _), _)| of == owner);
        let oldest = of_owner.min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
        oldest.is_some_and(|oldest| self.forget(&oldest))
    }

    fn forget(&mut self, key: &SchemaKey) -> bool {
        let Some((schema, _)) = self.kept.remove(key) else { return false };
        if let Some(bytes) = self.bytes.get_mut(&key.0) {
            *bytes -= size(&schema);
            if *bytes == 0 {
                self.bytes.remove(&key.0);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{CheckThreads, KEPT_BYTES, KeptSchemas, OWNER_BYTES, kept};
    use std::sync::{Arc, Mutex, mpsc};
    use vm_system_record::Owner;
    use vm_system_runtime::shares::Holder;

    fn holder(name: &str) -> Holder {
        Holder::new(Owner::new(name), false)
    }

    #[tokio::test]
    async fn checks_of_one_owner_leave_slots_and_the_runtimes_thread_to_others() {
        // This runtime has one thread: a check on it would block the test.
        let checks = Arc::new(CheckThreads::default());
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let mut ends = Vec::new();
        let mut all = Vec::new();
        for _ in 0..3 {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            let (checks, begun) = (Arc::clone(&checks), begun.clone());
            all.push(tokio::spawn(async move {
                let work = move || {
                    begun.send(()).expect("the test waits");
                    ended.recv().is_ok()
                };
                checks.blocking(&holder("uid:1001"), work).await
            }));
        }
        for _ in 0..2 {
            begins.recv().await.expect("two begin");
        }
        assert_eq!(
            checks.blocking(&holder("uid:1002"), || 7).await.ok(),
            Some(7),
            "another owner has a slot"
        );
        assert!(begins.try_recv().is_err(), "the third one of the same owner waits");
        for end in ends {
            end.send(()).expect("a check");
        }
        for check in all {
            assert_eq!(check.await.expect("no panic").ok(), Some(true));
        }
    }

    #[test]
    fn schemas_are_kept_by_owner_and_within_bounds() {
        let schemas = Mutex::new(KeptSchemas::default());
        let of = |owner: &str, n: usize| {
            // About 1.3 MB compiled.
            let text = format!(r#"{{"pattern":"^a{{20000}}{n}$"}}"#);
            kept(&schemas, &Owner::new(owner), &text).expect("a schema")
        };
        let first = of("uid:1001", 0);
        assert!(Arc::ptr_eq(&first, &of("uid:1001", 0)), "kept");
        assert!(!Arc::ptr_eq(&first, &of("uid:1002", 0)), "of each owner its own");
        for n in 0..20 {
            of("uid:1001", n);
            for owner in 0..10 {
                of(&format!("uid:{owner}"), n);
            }
            let kept = schemas.lock().expect("no panic");
            assert!(kept.bytes.values().all(|bytes| *bytes <= OWNER_BYTES));
            assert!(kept.bytes.values().sum::<usize>() <= KEPT_BYTES);
            assert!(kept.kept.len() > 3.min(n));
        }
        assert!(!Arc::ptr_eq(&first, &of("uid:1001", 0)), "the oldest one was dropped");
    }
}

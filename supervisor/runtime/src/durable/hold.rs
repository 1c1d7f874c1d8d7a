//! The hold of an owner task on its execution: the fence under which it writes, and the checkpoint from which it goes on. Every batch of
//! the execution begins with the guard that this makes. Decides nothing.

use vm_system_protocol::ids::ExecutionId;
use vm_system_record::{ClaimedRun, Fence, Guard, LetGo, Write};
use vm_system_store::StoreHandle;

/// Ends with the owner task, also if that fails.
pub(super) struct RunHold {
    store: StoreHandle,
    execution: ExecutionId,
    fence: Fence,
    /// The store has it as the holder.
    is_taken: bool,
    /// The store knows that it is about to take the execution: a claim on its way to it is not needed.
    is_expected: bool,
    /// The newest checkpoint that is stored; 0: none.
    after: u64,
    /// The batch that is being stored: its fence, and its checkpoint.
    storing: Option<(Fence, Option<u64>)>,
    left: LetGo,
}

impl RunHold {
    /// Of an execution that was found in the store, or that begins: the first batch takes it.
    pub(super) fn new(store: StoreHandle, execution: ExecutionId, fence: Fence, after: u64) -> Self {
        Self {
            store,
            execution,
            fence,
            is_taken: false,
            is_expected: false,
            after,
            storing: None,
            left: LetGo::Failed,
        }
    }

    /// The execution was read for this hold, with its fence.
    pub(super) fn expect(&mut self) {
        self.store.expect(self.execution, self.fence);
        self.is_expected = true;
    }

    /// The execution was claimed for this owner task.
    pub(super) fn adopt(&mut self, mut claim: RunClaim) {
        let Some(fence) = claim.fence.take() else { return };
        // One that is taken, or soon will be, has overtaken the claim.
        if !self.is_taken && !self.is_expected {
            (self.fence, self.is_taken) = (fence, true);
        }
    }

    /// The guard of the next batch. The store has at most one batch of an execution at a time.
    pub(super) fn guard(&mut self, batch: &[Write]) -> Write {
        let checkpoint = batch.iter().find_map(|write| match write {
            Write::Checkpoint(checkpoint) => Some(checkpoint.seq),
            _ => None,
        });
        let Self { execution, fence, after, .. } = *self;
        self.storing = Some((fence, checkpoint));
        Write::Guard(if self.is_taken {
            Guard::Held { execution, fence, after }
        } else {
            Guard::Take { execution, fence, after }
        })
    }

    /// The outcome of the batch with the last guard.
    pub(super) fn written(&mut self, is_stored: bool) {
        let Some((fence, checkpoint)) = self.storing.take().filter(|_| is_stored) else { return };
        (self.fence, self.is_taken) = (fence, true);
        self.after = checkpoint.unwrap_or(self.after);
    }

    /// Sets the state in which it leaves the execution when it ends.
    pub(super) fn leaves(&mut self, left: LetGo) {
        self.left = left;
    }
}

/// A claimed execution on its way to its owner task. It is claimed again if it gets lost.
#[derive(Debug)]
pub(super) struct RunClaim {
    store: StoreHandle,
    execution: ExecutionId,
    fence: Option<Fence>,
}

impl RunClaim {
    pub(super) fn new(store: StoreHandle, run: ClaimedRun) -> Self {
        Self { store, execution: run.execution, fence: Some(run.fence) }
    }
}

impl Drop for RunClaim {
    fn drop(&mut self) {
        if let Some(fence) = self.fence {
            self.store.let_go(self.execution, fence, LetGo::Failed);
        }
    }
}

impl Drop for RunHold {
    fn drop(&mut self) {
        self.store.let_go(self.execution, self.fence, self.left);
    }
}

#[cfg(test)]
mod tests {
    use super::{RunClaim, RunHold};
    use vm_system_protocol::ids::ExecutionId;
    use vm_system_record::{ClaimedRun, Guard, StoreError, Write};
    use vm_system_store::open_temporary;

    #[tokio::test]
    async fn claim_that_gets_lost_is_let_go_and_one_that_is_adopted_is_held_as_long_as_its_task() {
        let store = open_temporary().expect("a temporary folder");
        let (execution, after) = (ExecutionId::from_bytes([1; 16]), 0);
        let is_held = async |fence| {
            let held = store.apply(Write::Guard(Guard::Held { execution, fence, after })).await;
            assert!(matches!(held, Ok(_) | Err(StoreError::Fenced)), "{held:?}");
            held.is_ok()
        };
        let claim = async || {
            let fence = store.first_fence();
            let take = Write::Guard(Guard::Take { execution, fence, after });
            store.apply(take).await.expect("nobody holds it");
            (fence, RunClaim::new(store.clone(), ClaimedRun { execution, fence }))
        };
        let (fence, lost) = claim().await;
        assert!(is_held(fence).await);
        drop(lost);
        assert!(!is_held(fence).await);

        let (fence, adopted) = claim().await;
        let mut hold = RunHold::new(store.clone(), execution, store.first_fence(), after);
        hold.adopt(adopted);
        assert!(is_held(fence).await);
        assert_eq!(hold.guard(&[]), Write::Guard(Guard::Held { execution, fence, after }));
        drop(hold);
        assert!(!is_held(fence).await);
        store.shutdown().await;
    }
}

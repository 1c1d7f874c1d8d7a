//! Room in memory for pages that workers have told and that are not stored yet. A little is everybody's; who tells more has room
//! for all that it may tell, or is not listened to until there is: so nobody waits for room while holding some that others
//! wait for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pages that every worker may have told (bytes).
const FREE_BYTES: u64 = 4 << 20;
/// All others together (MiB). One execution may have more than this alone, if its limits say so.
const ROOM_MIB: u32 = 1_024;

type Asking = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

/// The room of all.
#[derive(Debug)]
pub(super) struct PageRooms(Arc<Semaphore>);

/// What one execution has of it.
#[derive(Default)]
pub(super) struct PageRoom {
    held: Option<OwnedSemaphorePermit>,
    /// Waits for it.
    pub(super) asking: Option<Asking>,
}

impl PageRooms {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(ROOM_MIB as usize)))
    }
}

/// Whether the worker's messages are received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Not until there is memory for what it may send.
    Waits,
    /// Again: what it would have needed memory for is stored.
    GoesOn,
}

impl PageRoom {
    /// After each step: so much is gathered and may be (bytes), and everything before it is stored, or not.
    pub(super) fn adjust(
        &mut self,
        rooms: &PageRooms,
        (gathered, most): (u64, u64),
        stored: bool,
    ) -> Option<Change> {
        if gathered > FREE_BYTES {
            return self.needs(rooms, most).then_some(Change::Waits);
        }
        if !stored {
            return None;
        }
        let waited = self.is_waiting();
        self.give_back();
        waited.then_some(Change::GoesOn)
    }

    /// Room for so many bytes; true if it begins to wait for that.
    fn needs(&mut self, rooms: &PageRooms, most: u64) -> bool {
        if self.held.is_some() || self.asking.is_some() {
            return false;
        }
        let mebibytes = u32::try_from(most.div_ceil(1 << 20)).unwrap_or(u32::MAX).min(ROOM_MIB);
        let room = Arc::clone(&rooms.0);
        self.held = Arc::clone(&room).try_acquire_many_owned(mebibytes).ok();
        if self.held.is_none() {
            self.asking = Some(Box::pin(async move { room.acquire_many_owned(mebibytes).await.ok() }));
        }
        self.is_waiting()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.asking.is_some()
    }

    /// It is there.
    pub(super) fn has(&mut self, held: Option<OwnedSemaphorePermit>) {
        (self.held, self.asking) = (held, None);
    }

    /// Nothing is told that is not stored.
    fn give_back(&mut self) {
        (self.held, self.asking) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, FREE_BYTES, PageRoom, PageRooms, ROOM_MIB};

    #[tokio::test]
    async fn a_worker_whose_pages_are_stored_while_it_waits_for_memory_goes_on() {
        let rooms = PageRooms::new();
        let [mut first, mut second] = [(); 2].map(|()| PageRoom::default());
        let (more, most) = (FREE_BYTES + 1, u64::MAX);
        assert_eq!(first.adjust(&rooms, (more, most), true), None, "there is memory for it");
        assert_eq!(second.adjust(&rooms, (more, most), true), Some(Change::Waits));
        assert_eq!(second.adjust(&rooms, (more, most), true), None, "it waits already");
        assert_eq!(second.adjust(&rooms, (0, most), false), None, "not stored yet");
        assert_eq!(second.adjust(&rooms, (0, most), true), Some(Change::GoesOn), "its time is counted again");
        assert_eq!(second.adjust(&rooms, (0, most), true), None);
    }

    #[tokio::test]
    async fn who_gets_no_room_for_everything_has_none_and_is_next() {
        let rooms = PageRooms::new();
        let half = u64::from(ROOM_MIB / 2 + 1) << 20;
        let [mut first, mut second, mut third] = [(); 3].map(|()| PageRoom::default());
        assert!(!first.needs(&rooms, half) && !first.needs(&rooms, half), "it has room for all already");
        assert!(second.needs(&rooms, half) && !second.needs(&rooms, half), "it begins to wait once");
        let mut asking = second.asking.take().expect("it waits");
        assert!(is_pending(&mut asking).await);
        assert!(third.needs(&rooms, 1), "not before those who came before");
        first.give_back();
        second.has(asking.await);
        assert!(!second.is_waiting());
        let asking = third.asking.take().expect("it waits");
        third.has(asking.await);
        second.give_back();
        third.give_back();
        assert!(
            !first.needs(&rooms, u64::MAX),
            "one that may tell more than there is room for has all of it"
        );
    }

    async fn is_pending(asking: &mut super::Asking) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(asking.as_mut().poll(context).is_pending()))
            .await
    }
}

//! Turns of queries: which lane's query gets the next connection. Runs no query.
//!
//! - A lane of an owner has at most [`OF_ONE_OWNER`] queries at a time, all owners together at most [`OF_OWNERS`]; the last connection
//!   is the system's, whose lane also has the queries of administrators.
//! - Lanes with queries that wait take turns, one query each; each lane's queries run in the order in which they came.
//! - A query whose caller has gone is dropped before it runs.

use crate::Lane;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// Queries at a time; the rest wait. More would only compete for the same disk and cores.
const CONNECTIONS: usize = 4;
/// Queries of all owners at a time.
const OF_OWNERS: usize = 3;
/// Queries of one owner at a time: another owner finds a free connection, or one whose turn is soon over.
const OF_ONE_OWNER: usize = 2;

/// The turns of all lanes.
#[derive(Debug, Default)]
pub(super) struct ReadTurns {
    state: Mutex<State>,
    /// The last query has ended.
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    used_by: HashMap<Lane, usize>,
    waiting: HashMap<Lane, VecDeque<oneshot::Sender<ReadTurn>>>,
    /// Lanes with queries that wait, the next one first.
    turns: VecDeque<Lane>,
    closed: bool,
}

impl State {
    fn may_run(&self, lane: &Lane) -> bool {
        let of = |lane: &Lane| self.used_by.get(lane).copied().unwrap_or_default();
        let of_owners = self.used - of(&Lane::System);
        match lane {
            Lane::System => self.used < CONNECTIONS,
            Lane::Owner(_) => self.used < CONNECTIONS && of_owners < OF_OWNERS && of(lane) < OF_ONE_OWNER,
        }
    }

    fn begin(&mut self, lane: &Lane) {
        self.used += 1;
        *self.used_by.entry(lane.clone()).or_default() += 1;
    }

    /// The next query that may run now.
    fn next(&mut self) -> Option<(Lane, oneshot::Sender<ReadTurn>)> {
        for _ in 0..self.turns.len() {
            let lane = self.turns.pop_front()?;
            let may_run = self.may_run(&lane);
            let Some(waiting) = self.waiting.get_mut(&lane) else { continue };
            while waiting.front().is_some_and(oneshot::Sender::is_closed) {
                waiting.pop_front();
            }
            let next = if may_run { waiting.pop_front() } else { None };
            if waiting.is_empty() {
                self.waiting.remove(&lane);
            } else {
                self.turns.push_back(lane.clone());
            }
            if let Some(next) = next {
                self.begin(&lane);
                return Some((lane, next));
            }
        }
        None
    }
}

/// The right to run one query, until it is dropped.
#[derive(Debug)]
pub(super) struct ReadTurn {
    turns: Arc<ReadTurns>,
    lane: Lane,
}

impl ReadTurns {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of a lane's query. `None`: [`ReadTurns::close`] was called.
    pub(super) async fn wait(self: &Arc<Self>, lane: &Lane) -> Option<ReadTurn> {
        let granted = {
            let mut state = self.lock();
            if state.closed {
                return None;
            }
            // Not in front of the lane's own queries, which wait already.
            if state.may_run(lane) && !state.waiting.contains_key(lane) {
                state.begin(lane);
                return Some(ReadTurn { turns: Arc::clone(self), lane: lane.clone() });
            }
            let (granted, receiver) = oneshot::channel();
            let waiting = state.waiting.entry(lane.clone()).or_default();
            // Requests whose callers have gone leave the queue, so that it is no longer than the number of requests.
            while waiting.front().is_some_and(oneshot::Sender::is_closed) {
                waiting.pop_front();
            }
            waiting.push_back(granted);
            if !state.turns.contains(lane) {
                state.turns.push_back(lane.clone());
            }
            receiver
        };
        granted.await.ok()
    }

    fn end(self: &Arc<Self>, lane: &Lane) {
        let mut granted = Vec::new();
        {
            let mut state = self.lock();
            state.used -= 1;
            if let Some(used) = state.used_by.get_mut(lane) {
                *used -= 1;
                if *used == 0 {
                    state.used_by.remove(lane);
                }
            }
            while let Some((lane, next)) = state.next() {
                granted.push((next, ReadTurn { turns: Arc::clone(self), lane }));
            }
            if state.used == 0 {
                self.idle.notify_waiters();
            }
        }
        // Outside of the lock: one that is not received any more is returned.
        for (receiver, turn) in granted {
            drop(receiver.send(turn));
        }
    }

    /// Ends all waiting, and waits for the queries that run.
    pub(super) async fn close(&self) {
        loop {
            let idle = self.idle.notified();
            let dropped = {
                let mut state = self.lock();
                state.closed = true;
                state.turns.clear();
                if state.used == 0 {
                    return;
                }
                std::mem::take(&mut state.waiting)
            };
            drop(dropped);
            idle.await;
        }
    }
}

impl Drop for ReadTurn {
    fn drop(&mut self) {
        self.turns.end(&self.lane);
    }
}

#[cfg(test)]
mod tests {
    use super::{OF_ONE_OWNER, OF_OWNERS, ReadTurn, ReadTurns};
    use crate::Lane;
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::Poll;
    use vm_system_record::Owner;

    type Waiting<'a> = Pin<Box<dyn Future<Output = Option<ReadTurn>> + 'a>>;

    fn owner(name: &str) -> Lane {
        Lane::Owner(Owner::new(name))
    }

    async fn now(waiting: &mut Waiting<'_>) -> Option<ReadTurn> {
        std::future::poll_fn(|context| {
            Poll::Ready(match waiting.as_mut().poll(context) {
                Poll::Ready(turn) => turn,
                Poll::Pending => None,
            })
        })
        .await
    }

    #[tokio::test]
    async fn an_owner_with_many_queries_leaves_connections_to_others_and_the_last_one_to_the_system() {
        let turns = Arc::new(ReadTurns::default());
        let (greedy, other, system) = (owner("greedy"), owner("other"), Lane::System);
        let mut of_greedy: Vec<Waiting<'_>> =
            (0..100).map(|_| Box::pin(turns.wait(&greedy)) as Waiting<'_>).collect();
        let mut running = Vec::new();
        for waiting in &mut of_greedy {
            running.extend(now(waiting).await);
        }
        assert_eq!(running.len(), OF_ONE_OWNER);
        let first = turns.wait(&other).await.expect("a free connection");
        let mut second: Waiting<'_> = Box::pin(turns.wait(&other));
        assert!(now(&mut second).await.is_none(), "owners have {OF_OWNERS} together");
        let of_system = turns.wait(&system).await.expect("its own connection");
        drop(of_system);
        // The other owner has its turn when the next query ends, in front of 98 of the greedy one.
        drop(running.pop());
        drop(first);
        assert!(now(&mut second).await.is_some());
    }

    #[tokio::test]
    async fn lanes_take_turns_and_queries_of_callers_that_have_gone_are_dropped() {
        let turns = Arc::new(ReadTurns::default());
        let lanes = ["a", "b"].map(owner);
        let mut held = vec![turns.wait(&Lane::System).await, turns.wait(&Lane::System).await];
        held.extend([turns.wait(&Lane::System).await, turns.wait(&Lane::System).await]);
        let mut gone: Vec<Waiting<'_>> =
            (0..50).map(|_| Box::pin(turns.wait(&lanes[0])) as Waiting<'_>).collect();
        for waiting in &mut gone {
            assert!(now(waiting).await.is_none());
        }
        let mut of_a: Waiting<'_> = Box::pin(turns.wait(&lanes[0]));
        let mut of_b: Waiting<'_> = Box::pin(turns.wait(&lanes[1]));
        assert!(now(&mut of_a).await.is_none() && now(&mut of_b).await.is_none());
        drop(gone);
        drop(held.pop());
        drop(held.pop());
        let granted = (now(&mut of_a).await, now(&mut of_b).await);
        assert!(granted.0.is_some() && granted.1.is_some(), "nobody waits for queries without a caller");
    }

    #[tokio::test]
    async fn closing_waits_for_queries_that_run_and_refuses_others() {
        let turns = Arc::new(ReadTurns::default());
        let running = turns.wait(&Lane::System).await;
        let mut closing = Box::pin(turns.close());
        let is_closing =
            std::future::poll_fn(|context| Poll::Ready(closing.as_mut().poll(context).is_pending()));
        assert!(is_closing.await);
        assert!(turns.wait(&owner("late")).await.is_none());
        drop(running);
        closing.await;
    }
}

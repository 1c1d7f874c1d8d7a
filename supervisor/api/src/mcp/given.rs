//! The task of an execution that each client was last given: an answer without a task's id is for that one, never for a task that
//! the client has not seen. Kept in memory, within bounds; a client that is forgotten answers the pending task.

use super::per_owner::{EntriesPerOwner, OwnedEntry};
use std::sync::{Mutex, PoisonError};
use vm_system_protocol::ids::{ExecutionId, TaskId};
use vm_system_record::Owner;

/// Kept tasks of one owner; above that the owner's oldest is dropped.
const TASKS_OF_AN_OWNER: usize = 256;
/// Kept tasks of all owners; above that the oldest is dropped.
const TASKS: usize = 8_192;

/// The tasks that clients were given.
#[derive(Debug)]
pub(super) struct GivenTasks(Mutex<EntriesPerOwner<GivenTask>>);

impl Default for GivenTasks {
    fn default() -> Self {
        Self(Mutex::new(EntriesPerOwner::new(TASKS_OF_AN_OWNER, TASKS)))
    }
}

/// The client of a given task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenTo {
    /// The owner whose tasks are counted together.
    pub(super) owner: Option<Owner>,
    /// [`McpClient::key`](super::McpClient::key) of the client.
    pub(super) client: String,
}

#[derive(Debug)]
struct GivenTask {
    to: GivenTo,
    execution: ExecutionId,
    /// Name of the execution at that time.
    name: Option<String>,
    task: TaskId,
}

impl OwnedEntry for GivenTask {
    fn owner(&self) -> Option<&Owner> {
        self.to.owner.as_ref()
    }
}

impl GivenTasks {
    /// The client is given this task of an execution.
    pub(super) fn note(&self, to: GivenTo, execution: ExecutionId, name: Option<&str>, task: TaskId) {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = given.iter().find(|one| one.to == to && one.execution == execution);
        let name = name.map(str::to_owned).or_else(|| known?.name.clone());
        // A name belongs to the execution that was seen with it last: a rewind moves it to another one.
        given
            .retain(|one| one.to != to || one.execution != execution && (name.is_none() || one.name != name));
        given.push(GivenTask { to, execution, name, task });
    }

    /// The task of an execution, by its id or name, that the client was last given.
    pub(super) fn last(&self, to: &GivenTo, reference: &str) -> Option<TaskId> {
        let given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_client = given.iter().rev().filter(|one| one.to == *to);
        let is_named = |one: &GivenTask| {
            one.name.as_deref() == Some(reference)
                || reference.parse::<ExecutionId>().is_ok_and(|id| id == one.execution)
        };
        of_client.find(|one| is_named(one)).map(|one| one.task)
    }
}

#[cfg(test)]
mod tests {
    use super::{GivenTasks, GivenTo, TASKS_OF_AN_OWNER};
    use vm_system_protocol::ids::{ExecutionId, TaskId};
    use vm_system_record::Owner;

    fn client(owner: &str, name: &str) -> GivenTo {
        GivenTo { owner: Some(Owner::new(owner)), client: name.to_owned() }
    }

    fn execution(number: u8) -> ExecutionId {
        ExecutionId::from_bytes([number; 16])
    }

    fn task(number: u8) -> TaskId {
        TaskId::from_bytes([number; 16])
    }

    #[test]
    fn each_client_has_the_task_that_it_was_given_last() {
        let given = GivenTasks::default();
        let (one, two) = (client("alice", "one"), client("alice", "two"));
        given.note(one.clone(), execution(1), Some("job"), task(1));
        given.note(two.clone(), execution(1), Some("job"), task(2));
        assert_eq!(given.last(&one, "job"), Some(task(1)));
        assert_eq!(given.last(&two, "job"), Some(task(2)));
        assert_eq!(given.last(&one, &execution(1).to_string()), Some(task(1)));
        given.note(one.clone(), execution(1), Some("job"), task(3));
        assert_eq!(given.last(&one, "job"), Some(task(3)));
        given.note(one.clone(), execution(1), None, task(4));
        assert_eq!(given.last(&one, "job"), Some(task(4)), "a list without names keeps the known one");
        assert_eq!(given.last(&client("bob", "one"), "job"), None, "another owner's client of the same name");
    }

    #[test]
    fn a_name_means_the_execution_that_was_seen_with_it_last() {
        let given = GivenTasks::default();
        let one = client("alice", "one");
        given.note(one.clone(), execution(1), Some("job"), task(1));
        given.note(one.clone(), execution(2), Some("job"), task(2));
        assert_eq!(given.last(&one, "job"), Some(task(2)));
        assert_eq!(given.last(&one, &execution(1).to_string()), None);
    }

    #[test]
    fn tasks_of_an_owner_push_out_no_other_owners() {
        let given = GivenTasks::default();
        given.note(client("bob", "one"), execution(1), None, task(9));
        for number in 0..=TASKS_OF_AN_OWNER {
            given.note(client("alice", &number.to_string()), execution(1), None, task(1));
        }
        let first = client("alice", "0");
        assert_eq!(given.last(&first, &execution(1).to_string()), None, "the oldest one was dropped");
        assert_eq!(given.last(&client("bob", "one"), &execution(1).to_string()), Some(task(9)));
    }
}

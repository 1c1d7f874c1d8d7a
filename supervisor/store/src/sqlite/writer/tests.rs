//! Failures that concern the writer's own connection.

use super::{Admission, DatabaseLocation, PublishedState, Writer, WriterShared};
use crate::queue::{Queue, Turn};
use crate::sqlite::database_file::DatabaseFile;
use crate::sqlite::open::first_connection;
use crate::sqlite::schema::SCHEMA;
use crate::{Durability, Lane, Urgency};
use std::sync::Arc;
use std::time::Duration;
use vm_system_record::{Retention, Write};

#[tokio::test]
async fn transaction_that_cannot_be_ended_costs_its_connection_and_not_the_store() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("store.db");
    let (durability, busy_timeout) = (Durability::Normal, Duration::ZERO);
    let connection =
        first_connection(&path, durability, busy_timeout, None, &SCHEMA).expect("an empty folder");
    let file = Arc::new(DatabaseFile::named(&path).expect("it was just made"));
    let location = DatabaseLocation { file, durability, busy_timeout };
    let admission = Arc::new(Admission::new(Retention::default()));
    let (queue, shared) = (Arc::new(Queue::new(Arc::clone(&admission))), Arc::new(WriterShared::default()));
    let mut writer = Writer::new(
        connection,
        location,
        Retention::default(),
        Arc::clone(&queue),
        PublishedState { shared: Arc::clone(&shared), admission, holds: Arc::default() },
    )
    .expect("the folder is ours");
    let stuck = writer.connection.as_ref().expect("it was just opened");
    stuck.execute_batch("BEGIN IMMEDIATE").expect("it is idle");
    let mut tickets = Vec::new();
    for _ in 0..2 {
        let set = Write::MetaSet { key: "k".to_owned(), value: Some(Vec::new()) };
        tickets.push(queue.push(Lane::System, set.into(), Urgency::Now).await.expect("the store accepts it"));
        let Turn::Work(jobs) = queue.take(Duration::ZERO, false) else { panic!("there is work") };
        writer.turn(jobs);
    }
    let mut verdicts = Vec::new();
    for ticket in tickets {
        verdicts.push(ticket.await.map(|applied| applied.rows));
    }
    assert!(matches!(verdicts[..], [Err(_), Ok(1)]), "{verdicts:?}");
    assert_eq!(shared.failing(), None);
    queue.close();
    writer.run();
}

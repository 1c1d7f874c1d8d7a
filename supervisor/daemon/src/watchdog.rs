//! Reports to a service manager that the supervisor works (`WATCHDOG=1`, `sd_notify(3)`): each report follows an answer of the store's
//! writer, so that a manager restarts a supervisor whose threads or whose disk hang. An error of the store is an answer: a
//! restart would not free the disk.

use super::notify::{State, notify};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use vm_system_record::Batch;
use vm_system_store::StoreHandle;

/// While the store does not respond, its status is read this often.
const FAULT_CHECK: Duration = Duration::from_secs(1);

/// Reports as often as the service manager wants, for ever; never, if it does not watch this process.
pub(super) async fn report(store: StoreHandle) -> Infallible {
    let Some(timeout) = timeout(|name| std::env::var(name).ok()) else {
        return std::future::pending().await;
    };
    // As sd_watchdog_enabled(3) recommends.
    let mut reports = interval_at(Instant::now() + timeout / 2, timeout / 2);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        reports.tick().await;
        tokio::select! {
            // Without a write it is not flushed; behind a commit that hangs it waits.
            _ = store.apply(Batch::default()) => {}
            () = fault(&store) => {}
        }
        notify(State::Watchdog);
    }
}

/// Resolves if the database is damaged or its file is gone. A restart would heal nothing, and a supervisor with a deleted database must
/// not be ended while it saves the content, which may take long.
async fn fault(store: &StoreHandle) {
    while store.status().fault.is_none() {
        sleep(FAULT_CHECK).await;
    }
}

/// The manager's timeout, if it is for this process.
fn timeout(variable: impl Fn(&str) -> Option<String>) -> Option<Duration> {
    let microseconds = variable("WATCHDOG_USEC")?.parse().ok().filter(|microseconds| *microseconds > 0)?;
    match variable("WATCHDOG_PID") {
        Some(pid) if pid.parse() != Ok(std::process::id()) => None,
        _ => Some(Duration::from_micros(microseconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::{fault, timeout};
    use std::time::Duration;

    #[tokio::test]
    async fn store_that_does_not_respond_is_waited_for_unless_its_database_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let store = vm_system_store::open_sqlite(vm_system_store::StoreOptions::new(folder.path())).unwrap();
        let waits = tokio::time::timeout(Duration::ZERO, fault(&store)).await;
        assert!(waits.is_err(), "the database is there");
        std::fs::remove_file(folder.path().join("vm-system.db")).unwrap();
        fault(&store).await;
        store.shutdown().await;
    }

    #[test]
    fn only_the_watched_process_reports() {
        let of = |usec: Option<&str>, pid: Option<String>| {
            timeout(|name| if name == "WATCHDOG_PID" { pid.clone() } else { usec.map(str::to_owned) })
        };
        let ours = || Some(std::process::id().to_string());
        assert_eq!(of(Some("15000000"), ours()), Some(Duration::from_secs(15)));
        assert_eq!(of(Some("15000000"), None), Some(Duration::from_secs(15)));
        assert_eq!(of(Some("15000000"), Some("1".to_owned())), None);
        assert_eq!(of(Some("15000000"), Some(String::new())), None);
        assert_eq!(of(Some("0"), ours()), None);
        assert_eq!(of(Some("x"), ours()), None);
        assert_eq!(of(None, ours()), None);
    }
}

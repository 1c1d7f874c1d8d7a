//! Reports to a service manager that the supervisor works (`WATCHDOG=1`, `sd_notify(3)`): each report follows an answer of the store's
//! writer, so that a manager restarts a supervisor whose threads or whose disk hang. An error of the store is an answer: a
//! restart would not free the disk.

use super::notify::{State, notify};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use vm_system_record::Batch;
use vm_system_store::StoreHandle;

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
        // Without a write it is not flushed; behind a commit that hangs it waits.
        let _ = store.apply(Batch::default()).await;
        notify(State::Watchdog);
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
    use super::timeout;
    use std::time::Duration;

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

//! Waiting for a daemon that this process has reached before: it was killed, is being restarted, or has closed the connection.
//! Knows no verb; whether a request may be repeated is its caller's decision.

use crate::client::CallError;
use crate::error::{CliError, exit};
use crate::output::notice;
use std::time::Duration;
use tokio::time::Instant;
use vm_system_protocol::control::ErrorCode;

/// Shortest and longest pause between two attempts.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The attempts since a connection broke.
pub(crate) struct Reconnect {
    patience: Duration,
    broken: Option<Broken>,
}

struct Broken {
    until: Instant,
    pause: Duration,
}

impl Reconnect {
    /// Gives up when a daemon was not reachable for this long.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, broken: None }
    }

    /// A request was answered: the next break is a new one.
    pub(crate) fn reached(&mut self) {
        if self.broken.take().is_some() {
            notice("connected again");
        }
    }

    /// Whether another attempt makes sense after this error; waits before it.
    pub(crate) async fn again(&mut self, error: &CallError) -> bool {
        self.wait(lost(error)).await
    }

    /// As [`Self::again`], after no connection could be opened.
    pub(crate) async fn open_again(&mut self, error: &CliError) -> bool {
        self.wait(absent(error)).await
    }

    async fn wait(&mut self, why: Option<String>) -> bool {
        let Some(why) = why else { return false };
        if self.patience.is_zero() {
            return false;
        }
        let (now, patience) = (Instant::now(), self.patience);
        let broken = self.broken.get_or_insert_with(|| {
            notice(&format!("{why}: connecting again for up to {} s", patience.as_secs()));
            Broken { until: now + patience, pause: PAUSE_MIN }
        });
        if now >= broken.until {
            return false;
        }
        tokio::time::sleep(broken.pause.min(broken.until - now)).await;
        broken.pause = (broken.pause * 2).min(PAUSE_MAX);
        true
    }
}

/// Why there is no connection, if that is the error.
fn lost(error: &CallError) -> Option<String> {
    match error {
        CallError::Lost(why) => Some(format!("the connection to the daemon broke ({why})")),
        CallError::Op(error) if error.code == ErrorCode::ShuttingDown => {
            Some("the daemon is stopping".to_owned())
        }
        CallError::Own(error) => absent(error),
        CallError::Op(_) => None,
    }
}

fn absent(error: &CliError) -> Option<String> {
    matches!(error.exit_code(), exit::NO_DAEMON | exit::BUSY).then(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::Reconnect;
    use crate::client::CallError;
    use crate::error::{CliError, exit};
    use std::time::Duration;
    use vm_system_protocol::control::{ErrorCode, OpError};

    fn broke() -> CallError {
        CallError::Lost("closed".to_owned())
    }

    #[tokio::test]
    async fn attempts_end_with_the_patience_and_begin_anew_after_a_success() {
        let mut reconnect = Reconnect::new(Duration::from_millis(300));
        for _ in 0..2 {
            let (begin, mut attempts) = (tokio::time::Instant::now(), 0);
            while reconnect.again(&broke()).await {
                attempts += 1;
            }
            assert!(begin.elapsed() >= Duration::from_millis(300));
            assert!((1..=4).contains(&attempts), "{attempts} attempts with growing pauses");
            assert!(!reconnect.again(&broke()).await);
            reconnect.reached();
        }
    }

    #[tokio::test]
    async fn errors_of_a_daemon_that_responds_are_no_reason_to_connect_again() {
        let op = |code| CallError::Op(Box::new(OpError::new(code, "m")));
        let own = |code| CallError::Own(CliError::new(code, "m"));
        for (error, expected) in [
            (op(ErrorCode::ShuttingDown), true),
            (op(ErrorCode::SessionBusy), false),
            (op(ErrorCode::CapacityExceeded), false),
            (own(exit::NO_DAEMON), true),
            (own(exit::BUSY), true),
            (own(exit::NOT_PERMITTED), false),
            (own(exit::BROKEN_PIPE), false),
            (broke(), true),
        ] {
            let again = Reconnect::new(Duration::from_secs(1)).again(&error).await;
            assert_eq!(again, expected, "{error:?}");
            assert!(!Reconnect::new(Duration::ZERO).again(&error).await);
        }
    }
}

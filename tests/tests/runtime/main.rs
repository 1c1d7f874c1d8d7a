//! Live sessions with real processes: the runtime, the production jail, and a worker with scripted behaviour. This
//! binary is also the keeper's program, so it checks its mode before anything else.

mod body;
mod files;
mod hostile;
mod limits;
mod programs;
mod sessions;
mod store_faults;
mod world;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

/// Every case has its own world.
pub(crate) type Case = fn() -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! cases {
    ($($name:ident,)+) => {
        pub(crate) const CASES: &[(&str, crate::Case)] = &[$((stringify!($name), || Box::pin($name()))),+];
    };
}
pub(crate) use cases;

fn main() -> ExitCode {
    vm_system_worker::roles::dispatch(std::env::args_os(), body::MODES);
    if let Some(code) = vm_system_broker::dispatch(std::env::args_os()) {
        return code;
    }
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let groups =
        [sessions::CASES, limits::CASES, hostile::CASES, files::CASES, store_faults::CASES, programs::CASES];
    let mut failed = 0;
    for (name, case) in groups.into_iter().flatten() {
        if only.as_deref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let result = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(async {
                let patience = Duration::from_mins(1);
                tokio::time::timeout(patience, case()).await.expect("the case ends within a minute");
            });
        }));
        runtime.shutdown_timeout(Duration::from_secs(1));
        println!("test {name} ... {}", if result.is_ok() { "ok" } else { "FAILED" });
        failed += usize::from(result.is_err());
    }
    ExitCode::from(u8::from(failed > 0))
}

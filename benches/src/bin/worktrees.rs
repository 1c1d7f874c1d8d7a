//! The cost of a worktree that a files agent of a user opens and reads, compared with this process's own rights. Starts the real binary
//! (build it in the same profile first), needs root; never asserts.

use anyhow::Context as _;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::time::{Duration, Instant};
use vm_system_benches::figure::{Figure, micros};
use vm_system_runtime::files_agents::{FilesAgentConfig, FilesAgents};
use vm_system_runtime::worktree::{RootSettings, Roots, Worktree, WorktreeClient};
use vm_system_spawn::files_agent::AgentStarter;
use vm_system_spawn::helper::{AgentRules, SpawnHelper};
use vm_system_tests::place::User;
use vm_system_tests::program;

const ROUNDS: usize = 20_000;
/// A user of every Linux.
const UID: u32 = 1;
const FILES: [(&str, usize); 2] = [("1 KiB", 1 << 10), ("256 KiB", 256 << 10)];

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let folder = tempfile::tempdir()?;
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    for (name, bytes) in FILES {
        std::fs::write(folder.path().join(name), "x".repeat(bytes))?;
    }
    chown(folder.path(), Some(UID), Some(UID)).context("only root starts files agents")?;
    let program = program::path("vm-system", User::Unprivileged);
    let rules = AgentRules {
        min_uid: 1,
        max_uid: u32::MAX,
        root_files: true,
        group: None,
        service_uid: u32::MAX,
        tokens: None,
        makes_namespaces: None,
    };
    let agents = FilesAgents::new(
        AgentStarter::Helper(SpawnHelper::start(&program, &rules)?),
        FilesAgentConfig::default(),
    );
    let path = folder.path().to_owned();
    let settings = [RootSettings { path: path.clone(), ..RootSettings::default() }];
    let (own, of_user) = (Roots::new(&settings, None)?, Roots::new(&settings, Some(agents.clone()))?);
    let measured = async {
        tokio::task::spawn_blocking(move || measure(&path, &own, &of_user)).await??;
        agents.shutdown(Duration::from_secs(5)).await;
        anyhow::Ok(())
    };
    runtime.block_on(measured)
}

fn measure(path: &Path, own: &Roots, of_user: &Roots) -> anyhow::Result<()> {
    let (administrator, user) = (WorktreeClient::Administrator, WorktreeClient::User(UID));
    let begin = Instant::now();
    let with_agent = Worktree::open(path, of_user, &user)?;
    println!("first open of a user, with the start of its agent    {:.1} ms", micros(begin.elapsed()) / 1e3);
    let in_process = Worktree::open(path, own, &administrator)?;
    let recorded = with_agent.recorded().context("it is not the operator's")?;
    let open = |roots, client| drop(Worktree::open(path, roots, client).expect("opened before"));
    let base = Figure::of_times("open, in process", ROUNDS, |_| open(own, &administrator));
    base.print(None);
    Figure::of_times("open, agent", ROUNDS, |_| open(of_user, &user)).print(Some(&base));
    let again = || drop(Worktree::open_recorded(recorded, of_user, &user).expect("opened before"));
    Figure::of_times("open a recorded one, agent", ROUNDS, |_| again()).print(Some(&base));
    for (name, bytes) in FILES {
        let read = |worktree: &Worktree| drop(worktree.read_text(name, bytes as u64).expect("a file"));
        let base = Figure::of_times(format!("read {name}, in process"), ROUNDS, |_| read(&in_process));
        base.print(None);
        Figure::of_times(format!("read {name}, agent"), ROUNDS, |_| read(&with_agent)).print(Some(&base));
    }
    Ok(())
}

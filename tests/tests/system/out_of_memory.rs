//! Sessions without memory: a worker that the kernel kills because the daemon's cgroup has none left, and one whose script fills all
//! that its limit permits, and the reserve of each execution as well.

use std::path::{Path, PathBuf};
use vm_system_protocol::control::{TemplateChange, TemplateUpdate};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionStatus, Limits, SessionStatus, Settings};
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::place::{TestDir, User};
use vm_system_tests::scene::Scene;
use vm_system_tests::skip;

/// Memory that the cgroup has beyond what is in use when the limit is set (bytes): much less than the session may use.
const HEADROOM_BYTES: u64 = 192 << 20;
const SESSION_MB: u32 = 768;

/// A cgroup beneath that of this process, whose memory can be limited.
struct Group {
    folder: PathBuf,
    limit: &'static str,
    usage: &'static str,
}

impl Group {
    /// `None`: not permitted here, or no memory controller.
    fn create() -> Option<Self> {
        let memberships = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        memberships.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
            let (mount, limit, usage) = match controllers {
                "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
                "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
                _ => return None,
            };
            let folder = Path::new(mount).join(path).join(format!("vm-system-memory-{}", std::process::id()));
            std::fs::create_dir(&folder).ok()?;
            let group = Self { folder, limit, usage };
            group.folder.join(limit).exists().then_some(group)
        })
    }

    fn limit(&self) {
        let used = std::fs::read_to_string(self.folder.join(self.usage)).expect("ours");
        let used: u64 = used.trim().parse().expect("a number");
        std::fs::write(self.folder.join(self.limit), (used + HEADROOM_BYTES).to_string()).expect("ours");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Fails while a process is in it: then the test has failed, too.
        let _ = std::fs::remove_dir(&self.folder);
    }
}

#[test]
fn worker_that_the_kernel_kills_for_lack_of_memory_has_that_reason() {
    let Some(group) = Group::create() else {
        return skip("cgroup", "a cgroup with a memory limit cannot be made here");
    };
    let limits = Limits { mem_mb: SESSION_MB, wall_ms: 60_000, cpu_ms: 60_000, ..Limits::default() };
    let options = DaemonOptions { group: Some(group.folder.clone()), ..DaemonOptions::default() };
    let daemon = Daemon::start_with(TestDir::new(User::AsStarted), &options);
    let mut scene = Scene::on_daemon(daemon, Settings { limits, ..Settings::default() });
    let session = scene.session();
    group.limit();

    let code = "const kept = []; for (;;) kept.push(new Uint8Array(1 << 20).fill(1))";
    let execution = scene.fails(&session, code, "WORKER_DIED");
    assert_eq!(execution.error.expect("an error").reason.as_deref(), Some("killed(out_of_memory)"));
    scene.crashed(&session, "killed(out_of_memory)");

    let record = scene.client.session_record(&session);
    assert_eq!(record.status, SessionStatus::Crashed);
    let sentence = record.last_error.expect("a sentence");
    for part in ["no memory left", &execution.id.to_string(), "MiB of memory"] {
        assert!(sentence.contains(part), "{sentence}");
    }
    let facts = serde_json::to_value(&record.runtime_meta).expect("JSON");
    let crash = &facts["crash"];
    assert_eq!(crash["reason"], "killed(out_of_memory)");
    assert_eq!(crash["execution_id"], execution.id.to_string());
    assert!(crash["peak_memory_kib"].as_u64().is_some_and(|kib| kib > 64 * 1_024), "{facts}");
    assert!(crash["cpu_ms"].is_u64(), "{facts}");
    scene.sibling_is_unharmed();
    scene.daemon.stop();
}

#[test]
fn session_that_fills_the_reserve_of_each_execution_ends_with_that_reason() {
    let limits = Limits { mem_mb: 16, wall_ms: 60_000, cpu_ms: 60_000, ..Limits::default() };
    let mut scene = Scene::with_settings(User::AsStarted, Settings { limits, ..Settings::default() });
    let session = scene.session();
    let code = "var keep = []; var fill = () => { for (let n = 1 << 20; n >= 1; n >>= 1) for (;;) try { \
                keep.push(new Uint8Array(n)) } catch { break } for (;;) try { keep = [keep] } catch { break } }; 0";
    scene.run(&session, code);
    let fills = (0..100).take_while(|_| {
        scene.run(&session, "fill(); 1");
        scene.client.session_record(&session).status == SessionStatus::Ready
    });
    assert!(
        (5..99).contains(&fills.count()),
        "it lives for some executions beyond its limit, and not for ever"
    );
    scene.crashed(&session, "limit(memory)");
    scene.sibling_is_unharmed();
    scene.daemon.stop();
}

#[test]
fn session_that_holds_more_than_a_limit_that_was_lowered_stays() {
    let limits = Limits { mem_mb: 64, wall_ms: 60_000, cpu_ms: 60_000, ..Limits::default() };
    let mut scene = Scene::with_settings(User::AsStarted, Settings { limits, ..Settings::default() });
    let session = scene.session();
    scene.run(&session, "var kept = new Uint8Array(48 << 20).fill(1); 0");
    let settings = Some(JsonText::from_untrusted(r#"{"limits": {"mem_mb": 16}}"#.to_owned()));
    let change = TemplateChange { name: None, settings };
    scene.client.op(TemplateUpdate { template: scene.template.clone(), change }).expect("lowered");
    for _ in 0..3 {
        assert_eq!(scene.run(&session, "[].concat([1])").status, ExecutionStatus::Error);
        assert_eq!(scene.client.session_record(&session).status, SessionStatus::Ready);
    }
    scene.daemon.stop();
}

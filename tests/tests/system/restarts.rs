//! Sessions and programs of several users over restarts of a daemon of root that was killed: a program goes on with the rights of the
//! user that was recorded at its start, or says why it cannot.

use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use vm_system_protocol::control::ErrorCode;
use vm_system_protocol::model::{ExecutionStatus, SessionStatus};
use vm_system_tests::client::Client;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::other_user::{GROUP, OtherUser};
use vm_system_tests::place::{TestDir, UNPRIVILEGED_UID, User};
use vm_system_tests::programs::result;
use vm_system_tests::{skip, watch};

/// Users of these tests alone.
const ALICE: OtherUser = OtherUser { uid: 61_001, gid: 1 };
const BOB: OtherUser = OtherUser { uid: 61_002, gid: 1 };

/// Reads and writes a file after each answer; the result is what it has read, or the errors.
const PROGRAM: &str = "function main() {
    const seen = [];
    for (;;) {
        const name = CC('next');
        if (name === 'end') return seen;
        try {
            seen.push(fs.readFile('note'));
            fs.writeFile(name, 'x');
        } catch (error) {
            seen.push(error.message);
        }
    }
}";

struct World {
    folder: tempfile::TempDir,
    daemon: Option<Daemon>,
}

impl World {
    /// `None` where this machine cannot make processes of other users.
    fn new() -> Option<Self> {
        if !User::can_be_switched() {
            skip("root", "other users need root");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("chmod");
        let mut world = Self { folder, daemon: None };
        let place = TestDir::new(User::AsStarted);
        world.start(place, &[("alice", ALICE.uid), ("bob", BOB.uid)], "");
        Some(world)
    }

    /// Starts the daemon on a machine with these users besides those of the host.
    fn start(&mut self, place: TestDir, users: &[(&str, u32)], config: &str) {
        let passwd = self.set_users(users);
        let root = self.root();
        let root = root.display();
        let config =
            if config.is_empty() { format!("worktree_roots = [\"{root}\"]\n") } else { config.to_owned() };
        let config = format!("socket_group = \"{GROUP}\"\n{config}\n[durable]\nwarm_ms = 0\n");
        let options = DaemonOptions { config, passwd: Some(passwd), ..DaemonOptions::default() };
        self.daemon = Some(Daemon::start_with(place, &options));
    }

    /// Writes the user database of the daemon, also of one that runs.
    fn set_users(&self, users: &[(&str, u32)]) -> PathBuf {
        let host = std::fs::read_to_string("/etc/passwd").expect("a user database");
        let line = |(name, uid): &(&str, u32)| format!("{name}:x:{uid}:1::/:/bin/sh\n");
        let passwd = self.folder.path().join("passwd");
        let users: String = users.iter().map(line).collect();
        std::fs::write(&passwd, format!("{}\n{users}", host.trim_end())).expect("written");
        passwd
    }

    /// As [`World::start`] after a SIGKILL of the running daemon and its jail.
    fn restart(&mut self, users: &[(&str, u32)], config: &str) {
        let place = self.daemon.take().expect("it runs").kill_everything();
        self.start(place, users, config);
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    fn client(&self) -> Client {
        self.daemon().client()
    }

    /// The root of worktrees.
    fn root(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// A private folder of a user, with a note.
    fn folder(&self, name: &str, user: OtherUser) -> PathBuf {
        let path = user.folder(self.root().join(name));
        let note = path.join("note");
        std::fs::write(&note, format!("of {name}")).expect("a file");
        std::os::unix::fs::chown(&note, Some(user.uid), Some(user.gid)).expect("root may");
        std::fs::set_permissions(&note, Permissions::from_mode(0o600)).expect("chmod");
        std::fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("chmod");
        path
    }

    /// Starts [`PROGRAM`] as a user; the id of the execution.
    fn program(&self, user: OtherUser, name: &str, worktree: &Path, more: &[&str]) -> String {
        let source = self.root().join("program.js");
        std::fs::write(&source, PROGRAM).expect("a file");
        let (source, worktree) = (source.to_string_lossy(), worktree.to_string_lossy());
        user.cli(self.daemon(), &["program", "load", &source, "--name", "p"]).ok();
        let start =
            ["program", "start", "p", "--name", name, "--worktree-path", &worktree, "--output", "json"];
        let started = user.cli(self.daemon(), &[&start, more].concat()).ok();
        let started: Value = serde_json::from_str(&started).expect("JSON");
        assert_eq!(started["status"], "waiting", "{started}");
        started["id"].as_str().expect("an id").to_owned()
    }
}

/// The answers that a program has seen.
fn seen(client: &mut Client, execution: &str) -> Vec<String> {
    let ended = client.submit(execution, "end").expect("taken");
    serde_json::from_str(result(&ended)).expect("texts")
}

#[test]
fn programs_go_on_with_the_rights_of_their_recorded_users() {
    let Some(mut world) = World::new() else { return };
    let users = [("alice", ALICE.uid), ("bob", BOB.uid)];
    let root = OtherUser { uid: 0, gid: 0 };
    let [hers, his, of_root] =
        [("alice", ALICE), ("bob", BOB), ("root", root)].map(|(name, user)| world.folder(name, user));
    let moved = world.folder("moved", ALICE);
    let alice = world.program(ALICE, "alice", &hers, &[]);
    let bob = world.program(BOB, "bob", &his, &[]);
    let own = world.program(root, "own", &of_root, &[]);
    let as_alice = world.program(root, "as-alice", &hers, &["--as-user", "alice"]);
    let replaced = world.program(root, "replaced", &moved, &["--as-user", &ALICE.uid.to_string()]);
    let refused = ALICE.cli(
        world.daemon(),
        &["program", "start", "p", "--worktree-path", &hers.to_string_lossy(), "--as-user", "bob"],
    );
    assert!(refused.fails(77).contains("only an administrator acts as another user"));
    let refused = root.cli(world.daemon(), &["program", "start", "p", "--as-user", "bob"]);
    assert!(refused.fails(2).contains("--worktree-path"));
    ALICE.cli(world.daemon(), &["template", "create", "--name", "theirs"]).ok();
    let session = ALICE.session(world.daemon(), &hers).ok().trim().to_owned();
    for (round, name) in ["first", "second"].into_iter().enumerate() {
        if round > 0 {
            world.restart(&users, "");
        }
        let mut client = world.client();
        for execution in [&alice, &bob, &own, &as_alice, &replaced] {
            let run = client.submit(execution, name).expect("taken");
            assert_eq!(run.execution.status, ExecutionStatus::Waiting, "{:?}", run.execution.error);
        }
        for (folder, user) in [(&hers, ALICE), (&his, BOB), (&of_root, root), (&moved, ALICE)] {
            let written = folder.join(name).metadata().expect("it was written");
            assert_eq!(written.uid(), user.uid, "{folder:?}");
        }
    }
    // The session has ended with its process; its row says so.
    let ended = ALICE.cli(world.daemon(), &["session", "get", &session, "--output", "json"]).ok();
    let ended: Value = serde_json::from_str(&ended).expect("JSON");
    assert_eq!(ended["status"], SessionStatus::Crashed.as_str());
    // Another folder of hers is at the place of one, and a folder of another user at the place of the other one.
    std::fs::rename(&moved, world.root().join("old")).expect("renamed");
    world.folder("moved", ALICE);
    world.restart(&users, "");
    let mut client = world.client();
    client.submit(&replaced, "third").expect("taken");
    std::fs::remove_dir_all(&moved).expect("removed");
    world.folder("moved", BOB);
    client.submit(&replaced, "fourth").expect("taken");
    let found = seen(&mut client, &replaced);
    assert_eq!(found[..3], ["of moved"; 3], "{found:?}");
    assert!(found[3].contains("permission denied"), "{found:?}");
    let audit = world.daemon().cli(&["ops", "audit", "--output", "csv"]).ok();
    let line = format!("uid:0,supervisor,worktree open,{replaced},FOLDER_CHANGED");
    assert_eq!(audit.matches(&line).count(), 1, "{audit}");
    // A fork has the same folder and the same user.
    let fork = root.cli(world.daemon(), &["program", "fork", &as_alice, "--output", "json"]).ok();
    let fork: Value = serde_json::from_str(&fork).expect("JSON");
    let fork = fork["id"].as_str().expect("an id").to_owned();
    client.submit(&fork, "fork").expect("taken");
    assert_eq!(hers.join("fork").metadata().expect("written").uid(), ALICE.uid);
    for (execution, name) in [(&alice, "alice"), (&bob, "bob"), (&own, "root"), (&as_alice, "alice")] {
        assert_eq!(seen(&mut client, execution), [format!("of {name}"), format!("of {name}")]);
    }
    world.daemon.take().expect("it runs").stop();
}

#[test]
fn program_of_a_user_who_is_gone_keeps_its_state_and_says_so() {
    let Some(mut world) = World::new() else { return };
    let users = [("alice", ALICE.uid), ("bob", BOB.uid)];
    let root = OtherUser { uid: 0, gid: 0 };
    let (hers, his) = (world.folder("alice", ALICE), world.folder("bob", BOB));
    let alice = world.program(ALICE, "alice", &hers, &[]);
    let as_alice = world.program(root, "as-alice", &hers, &["--as-user", "alice"]);
    let bob = world.program(BOB, "bob", &his, &[]);
    let gone = |uid: u32, why: &str| format!("uid {uid} {why}");
    for (passwd, why) in [
        (&[("bob", BOB.uid)][..], gone(ALICE.uid, "(alice) has no passwd entry any more")),
        (
            &[("bob", BOB.uid), ("mallory", ALICE.uid)],
            gone(ALICE.uid, "was the user alice and is the user mallory now"),
        ),
        (&[("bob", BOB.uid), ("alice", 61_003)], gone(ALICE.uid, "(alice) has no passwd entry any more")),
    ] {
        world.restart(passwd, "");
        let mut client = world.client();
        for execution in [&alice, &as_alice] {
            let refused = client.submit(execution, "name").expect_err("its user is gone");
            assert_eq!((refused.code, refused.message.as_str()), (ErrorCode::OwnerGone, why.as_str()));
            assert_eq!(client.task(execution).status, ExecutionStatus::Waiting, "nothing is lost");
        }
        let refused = root.cli(world.daemon(), &["task", "submit", &as_alice, "name"]).fails(1);
        assert!(
            refused.contains("OWNER_GONE") && refused.contains("import it with --worktree-path"),
            "{refused}"
        );
        let body = json!({ "result": "name" });
        let response = world.daemon().http().post(&format!("/api/v1/executions/{alice}/task"), &body);
        assert_eq!((response.status, response.code().as_str()), (409, "OWNER_GONE"));
        // The person who has the uid now gets none of it, and others go on.
        if why.contains("mallory") {
            let refused = ALICE.cli(world.daemon(), &["task", "submit", "alice", "name"]).fails(1);
            assert!(refused.contains("OWNER_GONE"), "{refused}");
        }
        client.submit(&bob, "name").expect("taken");
        let hers = hers.to_string_lossy();
        let start = ["program", "start", "p", "--worktree-path", &hers, "--as-user", &ALICE.uid.to_string()];
        let started = root.cli(world.daemon(), &start);
        if why.contains("mallory") {
            started.ok();
        } else {
            let refused = started.fails(1);
            assert!(refused.contains("OWNER_GONE") && refused.contains("has no passwd entry"), "{refused}");
        }
    }
    // It can be ended without its user.
    let mut client = world.client();
    root.cli(world.daemon(), &["exec", "cancel", &as_alice]).ok();
    assert_eq!(client.get_run(&as_alice).execution.status, ExecutionStatus::Cancelled);
    drop(client);
    world.restart(&[("bob", BOB.uid), ("mallory", ALICE.uid)], "");
    let mut client = world.client();
    let refused = client.submit(&alice, "name").expect_err("her uid is another user's");
    assert_eq!(refused.code, ErrorCode::OwnerGone, "{refused:?}");
    world.set_users(&users);
    client.submit(&alice, "name").expect("she is back, whatever was looked up before");
    assert_eq!(seen(&mut client, &alice), ["of alice"]);
    // A root that the operator removed.
    let other = world.folder("other", ALICE);
    world.restart(&users, &format!("worktree_roots = [\"{}\"]", other.display()));
    let mut client = world.client();
    client.submit(&bob, "last").expect("taken");
    let found = seen(&mut client, &bob);
    assert!(found[3].contains("which the daemon's configuration does not have any more"), "{found:?}");
    assert_eq!(found[..3], ["of bob"; 3]);
    world.daemon.take().expect("it runs").stop();
}

#[test]
fn live_session_of_a_demoted_or_revoked_token_has_no_files() {
    let Some(mut world) = World::new() else { return };
    let users = [("alice", ALICE.uid), ("bob", BOB.uid)];
    let hers = world.folder("alice", ALICE);
    std::fs::write(hers.join("app.js"), "1").expect("a file");
    let place = world.daemon.take().expect("it runs").stop();
    let book = place.path("tokens.toml");
    // SHA-256 of `alice-token` and of `root-token`.
    let tokens = [
        ("ci", "9c220f200955d76c0a38d308225e0ef10c5f971acaf2f8d1d8f732affa5bd1dc"),
        ("boss", "2cff60a244379d429c1877c36ee7f37da39ad06073d31b8d90fccd15376f2adf"),
    ];
    let write_book = |rights: [&str; 2]| {
        let lines = tokens.iter().zip(rights).filter(|(_, rights)| !rights.is_empty());
        let entries: Vec<String> = lines
            .map(|((name, hash), rights)| {
                format!("[[token]]\nname = \"{name}\"\nsha256 = \"{hash}\"\n{rights}")
            })
            .collect();
        std::fs::write(&book, entries.join("\n")).expect("tokens");
        std::fs::set_permissions(&book, Permissions::from_mode(0o600)).expect("chmod");
        std::os::unix::fs::chown(&book, Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).expect("root may");
    };
    let (of_alice, of_bob, admin) =
        ("role = \"user\"\nuid = 61001", "role = \"user\"\nuid = 61002", "role = \"admin\"");
    write_book([of_alice, admin]);
    let root = world.root();
    let config =
        format!("worktree_roots = [\"{}\"]\n[http]\ntokens = \"{}\"", root.display(), book.display());
    world.start(place, &users, &config);
    let mut created = Vec::new();
    for (token, as_user) in [("alice-token", Value::Null), ("root-token", json!("alice"))] {
        let mut http = world.daemon().http().bearer(token);
        let template = http.post("/api/v1/templates", &json!({ "name": "t" })).json()["id"].clone();
        let path = format!("/api/v1/templates/{}/modules", template.as_str().expect("an id"));
        assert_eq!(http.post(&path, &json!({ "name": "fs" })).status, 201);
        let body = json!({
            "template_id": template, "workspace_id": "w", "base_commit_oid": "c", "worktree_path": hers, "as_user": as_user,
        });
        let session = http.post("/api/v1/sessions", &body);
        assert_eq!(session.status, 201, "{}", session.text());
        created.push(session.json()["id"].as_str().expect("an id").to_owned());
    }
    let eval = "try { require('fs').readFileSync('note', 'utf8') } catch (error) { error.code }";
    // By root: the sessions stay live, whoever their owner is now.
    let reads = |session: &str| {
        let read = world.daemon().cli(&["exec", "repl", session, eval]).ok();
        (read.trim().to_owned(), world.daemon().cli(&["exec", "run-file", session, "app.js"]))
    };
    for session in &created {
        let (read, file) = reads(session);
        assert_eq!(read, "'of alice'");
        file.ok();
    }
    // One with another uid, the other one no administrator any more; then both removed.
    for rights in [[of_bob, of_bob], ["", ""]] {
        write_book(rights);
        world.daemon().hang_up();
        for session in &created {
            let closed = || reads(session).0 == "'EACCES'";
            watch::wait_until(closed, || world.daemon().log());
            let refused = reads(session).1.fails(77);
            assert!(refused.contains("NOT_PERMITTED"), "{refused}");
        }
    }
    // The sessions are live: what needs no files goes on.
    write_book([of_alice, admin]);
    world.daemon().hang_up();
    for session in &created {
        watch::wait_until(|| reads(session).0 == "'of alice'", || world.daemon().log());
    }
    world.daemon.take().expect("it runs").stop();
}

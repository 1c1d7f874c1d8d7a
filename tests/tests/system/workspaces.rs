//! The bounds of workspaces' databases: bytes of a workspace and of an owner, and workspaces of an owner, through the real
//! daemon, and as its files show it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use vm_system_protocol::control::SessionCreate;
use vm_system_protocol::model::Session;
use vm_system_tests::as_both;
use vm_system_tests::daemon::DaemonOptions;
use vm_system_tests::place::User;
use vm_system_tests::rights::Bench;

as_both!(databases_take_no_more_than_the_operator_permits);

const MIB: u64 = 1 << 20;
/// The file system keeps the map of a fragmented file in blocks of its own, which count as the file's and which nobody can
/// foresee.
const MAP: u64 = 64 << 10;

fn session(bench: &mut Bench, workspace: &str) -> Session {
    let op = SessionCreate {
        template: bench.template.clone(),
        workspace_id: workspace.to_owned(),
        base_commit_oid: "none".to_owned(),
        worktree_path: bench.daemon.place.worktree().to_string_lossy().into_owned(),
        as_user: None,
        name: None,
        ttl_s: None,
        idle_timeout_s: None,
    };
    match bench.client.op(op) {
        Ok(session) => session,
        other => panic!("{other:?}"),
    }
}

fn bytes_beneath(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| {
            let found = entry.metadata().expect("it is there");
            if found.is_dir() { bytes_beneath(&entry.path()) } else { found.size().max(found.blocks() * 512) }
        })
        .sum()
}

mod cases {
    use super::*;

    pub(super) fn databases_take_no_more_than_the_operator_permits(user: User) {
        let config = "[databases]\nworkspaces_per_owner = 2\nworkspace_mb = 2\nowner_mb = 3\n";
        let options = DaemonOptions { config: config.to_owned(), ..DaemonOptions::default() };
        let mut bench = Bench::with_modules(user, &["database"], &options);
        let folder = bench.daemon.place.path("state").join("workspaces");
        let begin = "const db = require('database'); db.exec('CREATE TABLE IF NOT EXISTS t (a)'); 0";
        let fill = "(() => { try { for (;;) db.exec('INSERT INTO t VALUES (zeroblob(100000))') } \
            catch (error) { return `${error.code} ${error.message}` } })()";
        let one = session(&mut bench, "one");
        bench.eval(&one, begin);
        let full = bench.eval(&one, fill);
        assert!(full.contains("'SQLITE_FULL") && full.contains("`workspace_mb` of [databases]"), "{full}");
        let first = bytes_beneath(&folder);
        assert!((MIB..=2 * MIB + MAP).contains(&first), "{first}");
        // Neither statements with rows nor other databases get more.
        for call in [
            "db.query('INSERT INTO t VALUES (zeroblob(400000)) RETURNING 1')",
            "db.configure('sqlite3', 'more'), db.exec('CREATE TABLE t AS SELECT zeroblob(400000) AS a')",
            "db.exec('PRAGMA max_page_count = 100000')",
        ] {
            let code = bench.code(&one, call);
            assert!(["'SQLITE_FULL'", "'SQLITE_AUTH'"].contains(&code.as_str()), "{call}: {code}");
        }
        assert_eq!(
            bench.eval(
                &one,
                "db.configure('sqlite3', 'main'); db.query('SELECT count(*) > 9 AS n FROM t')[0].n"
            ),
            "1"
        );

        let two = session(&mut bench, "two");
        bench.eval(&two, begin);
        let full = bench.eval(&two, fill);
        assert!(full.contains("'SQLITE_FULL") && full.contains("`owner_mb` of [databases]"), "{full}");
        let both = bytes_beneath(&folder);
        assert!((2 * MIB..=3 * MIB + MAP).contains(&both), "{both}");

        let three = session(&mut bench, "three");
        let refused = bench
            .eval(&three, "try { require('database').exec('SELECT 1') } catch (error) { error.message }");
        assert!(
            refused.contains("ERR_DATABASE_LIMIT") && refused.contains("workspaces_per_owner"),
            "{refused}"
        );

        // The space of deleted rows can be used again, in all workspaces of the owner.
        bench.eval(&one, "db.exec('DELETE FROM t'); db.exec('PRAGMA incremental_vacuum'); 0");
        let after = bytes_beneath(&folder);
        assert!(after < both - MIB, "{after}");
        bench.eval(&two, "db.exec('INSERT INTO t VALUES (zeroblob(400000))'); 0");
        bench.end();
    }
}

//! Examines a database for its operator: the structure of the file, references between rows, and what this program promises about
//! them. What is damaged is named by its object. Changes nothing.

use super::failure::{is_damage, store_error};
use super::write::{DELETED_AT_ONCE, is_list_of_pages};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;
use vm_system_protocol::control::{CheckFinding, CheckReport};
use vm_system_protocol::time::Timestamp;
use vm_system_record::StoreError;

/// How the structure of the file is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckMode {
    /// All of it at once; nobody else has it open.
    WholeFile,
    /// Table by table, so that no read transaction is long.
    EachTable,
}

/// A kind of object: its table, indexes that name all of its rows, and the tables with its parts.
struct ObjectTable {
    object: &'static str,
    table: &'static str,
    ids: &'static [&'static str],
    parts: &'static [(&'static str, &'static str)],
}

const OBJECTS: [ObjectTable; 4] = [
    ObjectTable {
        object: "session",
        table: "sessions",
        ids: &[
            "SELECT id FROM sessions NOT INDEXED",
            "SELECT id FROM sessions INDEXED BY sessions_by_owner",
            "SELECT session FROM executions INDEXED BY executions_by_session",
        ],
        parts: &[],
    },
    ObjectTable {
        object: "execution",
        table: "executions",
        ids: &[
            "SELECT id FROM executions NOT INDEXED",
            "SELECT id FROM executions INDEXED BY executions_by_session",
            "SELECT DISTINCT execution FROM events",
        ],
        parts: &[
            ("events", "execution"),
            ("items", "execution"),
            ("open_items", "execution"),
            ("program_runs", "execution"),
            ("checkpoints", "execution"),
            ("state_pages", "execution"),
        ],
    },
    ObjectTable {
        object: "program",
        table: "programs",
        ids: &[
            "SELECT id FROM programs NOT INDEXED",
            "SELECT id FROM programs INDEXED BY sqlite_autoindex_programs_1",
            "SELECT program FROM program_versions INDEXED BY sqlite_autoindex_program_versions_1",
        ],
        parts: &[("program_versions", "program")],
    },
    ObjectTable {
        object: "template",
        table: "templates",
        ids: &[
            "SELECT id FROM templates NOT INDEXED",
            "SELECT id FROM templates INDEXED BY sqlite_autoindex_templates_1",
        ],
        parts: &[
            ("template_modules", "template"),
            ("template_libraries", "template"),
            ("capabilities", "template"),
            ("startup_files", "template"),
        ],
    },
];

/// The check whose findings are damage of the file.
pub(super) const STRUCTURE: &str = "structure";
/// The check whose findings are what could not be read.
const READING: &str = "reading";

/// Examines the database; `go_on` is called between two statements.
pub(super) fn examine(
    c: &Connection,
    mode: CheckMode,
    go_on: &dyn Fn() -> Result<(), StoreError>,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    let tables =
        match c.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).and_then(|version| {
            report.schema = Some(version);
            names(c)
        }) {
            Ok(tables) => tables,
            Err(error) => {
                let check = if is_damage(&error) { STRUCTURE } else { READING };
                report.add(check, None, format!("the database cannot be read at all: {error}"));
                return Ok(());
            }
        };
    if tables.is_empty() {
        report.add(STRUCTURE, None, "the database is empty");
        return Ok(());
    }
    let before = report.findings.len();
    match mode {
        CheckMode::WholeFile => structure(c, "PRAGMA integrity_check(100)", report),
        CheckMode::EachTable => {
            for table in &tables {
                go_on()?;
                structure(c, &format!("PRAGMA integrity_check('{table}')"), report);
            }
        }
    }
    let is_damaged = report.findings.len() > before;
    if is_damaged {
        for kind in &OBJECTS {
            go_on()?;
            damaged_objects(c, kind, go_on, report)?;
        }
    }
    report.newest_record = newest(c);
    for check in [references, event_numbers, ended_executions, page_lists] {
        go_on()?;
        let mut found = CheckReport { ok: true, ..CheckReport::default() };
        match check(c, &mut found) {
            Ok(()) => take(report, found),
            // Of a damaged file it is known already.
            Err(_) if is_damaged => {}
            Err(error) => report.add(READING, None, error.to_string()),
        }
    }
    if !is_damaged {
        go_on()?;
        if let Err(error) = counters(c, report) {
            report.add(READING, None, error.to_string());
        }
    }
    Ok(())
}

/// The findings for a second look, if a disk that fails to read may be their cause. All others are in records that could be read.
pub(super) fn of_the_disk(report: &CheckReport) -> Option<String> {
    let may_be = |finding: &&CheckFinding| [STRUCTURE, READING].contains(&finding.check.as_str());
    let details: Vec<&str> =
        report.findings.iter().filter(may_be).map(|finding| finding.detail.as_str()).collect();
    (!details.is_empty()).then(|| details.join("; "))
}

/// The first damage of the file's structure, table by table; rows are not compared with their indexes.
pub(super) fn quick(
    c: &Connection,
    go_on: &dyn Fn() -> Result<(), StoreError>,
) -> Result<Option<String>, StoreError> {
    let failed = |error: &rusqlite::Error| {
        if is_damage(error) { Ok(Some(error.to_string())) } else { Err(store_error(error)) }
    };
    let tables = match names(c) {
        Ok(tables) => tables,
        Err(error) => return failed(&error),
    };
    for table in tables {
        go_on()?;
        match c.query_row(&format!("PRAGMA quick_check('{table}')"), [], |row| row.get::<_, String>(0)) {
            Ok(line) if line == "ok" => {}
            Ok(line) => return Ok(Some(line)),
            Err(error) => return failed(&error),
        }
    }
    Ok(None)
}

fn take(report: &mut CheckReport, found: CheckReport) {
    report.more += found.more;
    for finding in found.findings {
        report.add(&finding.check, finding.object.as_deref().zip(finding.id), finding.detail);
    }
}

fn names(c: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    c.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Adds the findings of SQLite. A check that fails has found something, too.
fn structure(c: &Connection, pragma: &str, report: &mut CheckReport) {
    let found = c.prepare(pragma).and_then(|mut statement| {
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let text: String = row.get(0)?;
            // The first line of several names the database.
            for line in text.lines().filter(|line| *line != "ok" && !line.starts_with("***")) {
                report.add(STRUCTURE, None, line);
            }
        }
        Ok(())
    });
    if let Err(error) = found {
        report.add(STRUCTURE, None, error.to_string());
    }
}

/// Names the objects of which a row is missing or cannot be read.
fn damaged_objects(
    c: &Connection,
    kind: &ObjectTable,
    go_on: &dyn Fn() -> Result<(), StoreError>,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    let mut ids = BTreeSet::new();
    for sql in kind.ids {
        // An index that is damaged names those before the damage.
        let _ = collect_ids(c, sql, &mut ids);
    }
    let own = format!("SELECT * FROM {} WHERE id = ?1", kind.table);
    for id in ids {
        go_on()?;
        let about = || Some((kind.object, Uuid::from_bytes(id).to_string()));
        match read_all(c, &own, id) {
            Ok(0) => report.add(READING, about(), "its row is missing"),
            Ok(_) => {}
            Err(error) => report.add(READING, about(), format!("its row cannot be read: {error}")),
        }
        for (table, key) in kind.parts {
            if let Err(error) = read_all(c, &format!("SELECT * FROM {table} WHERE {key} = ?1"), id) {
                report.add(READING, about(), format!("its rows of {table} cannot be read: {error}"));
            }
        }
    }
    Ok(())
}

fn collect_ids(c: &Connection, sql: &str, ids: &mut BTreeSet<[u8; 16]>) -> Result<(), rusqlite::Error> {
    let mut statement = c.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let ValueRef::Blob(bytes) = row.get_ref(0)?
            && let Ok(id) = bytes.try_into()
        {
            ids.insert(id);
        }
    }
    Ok(())
}

/// Reads all values of some rows, with what lies on pages of their own; returns their number.
fn read_all(c: &Connection, sql: &str, id: [u8; 16]) -> Result<u64, rusqlite::Error> {
    let mut statement = c.prepare_cached(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([id])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            row.get_ref(column)?;
        }
        count += 1;
    }
    Ok(count)
}

fn newest(c: &Connection) -> Option<Timestamp> {
    [
        "SELECT max(started_at) FROM executions",
        "SELECT max(ended_at) FROM executions",
        "SELECT max(created_at) FROM sessions",
        "SELECT max(created_at) FROM items",
        "SELECT max(at) FROM audit_log",
    ]
    .into_iter()
    .filter_map(|sql| c.query_row(sql, [], |row| row.get::<_, Option<i64>>(0)).ok().flatten())
    .max()
    .map(Timestamp)
}

fn references(c: &Connection, report: &mut CheckReport) -> Result<(), rusqlite::Error> {
    let mut broken: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut statement = c.prepare("SELECT \"table\", parent FROM pragma_foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        *broken.entry((row.get(0)?, row.get(1)?)).or_default() += 1;
    }
    for ((table, parent), count) in broken {
        report.add("references", None, format!("{count} rows of {table} refer to missing rows of {parent}"));
    }
    Ok(())
}

fn id_of(row: &Row<'_>) -> Result<String, rusqlite::Error> {
    Ok(Uuid::from_bytes(row.get(0)?).to_string())
}

/// Events are numbered 1, 2, 3, …; an execution that is being deleted lacks its first ones, as many as pieces of a deletion took.
fn event_numbers(c: &Connection, report: &mut CheckReport) -> Result<(), rusqlite::Error> {
    let mut statement = c.prepare(
        // Of a degraded one it is known that some are missing.
        "SELECT e.id, e.events, e.ended_at IS NOT NULL AND e.degraded = 0 AND e.kind <> 'program', e.degraded,
             count(v.seq), coalesce(min(v.seq), 1), coalesce(max(v.seq), 0)
         FROM executions AS e LEFT JOIN events AS v ON v.execution = e.id GROUP BY e.id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (recorded, is_complete, is_degraded): (i64, bool, bool) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let (count, first, last): (i64, i64, i64) = (row.get(4)?, row.get(5)?, row.get(6)?);
        let detail = if is_degraded {
            continue;
        } else if count != last - first + 1 {
            format!("{} of its events {first} to {last} are missing", last - first + 1 - count)
        } else if first < 1 || (first - 1) % DELETED_AT_ONCE != 0 {
            format!("its first event has the number {first}")
        } else if is_complete && last < recorded {
            format!("its events end with number {last}, it had {recorded}")
        } else {
            continue;
        };
        report.add("events", Some(("execution", id_of(row)?)), detail);
    }
    Ok(())
}

fn ended_executions(c: &Connection, report: &mut CheckReport) -> Result<(), rusqlite::Error> {
    let mut statement = c.prepare(
        "SELECT e.id, e.status, s.status FROM executions AS e CROSS JOIN sessions AS s ON s.id = e.session
         WHERE e.kind <> 'program' AND e.status IN ('running', 'waiting') AND s.status IN ('closed', 'crashed')",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (status, of_session): (String, String) = (row.get(1)?, row.get(2)?);
        let detail = format!("it is {status}, and its session is {of_session}");
        report.add("executions", Some(("execution", id_of(row)?)), detail);
    }
    let mut statement = c.prepare(
        "SELECT id, status FROM executions WHERE (status IN ('running', 'waiting')) = (ended_at IS NOT NULL)",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let status: String = row.get(1)?;
        let detail = format!("it is {status}, which contradicts the time of its end");
        report.add("executions", Some(("execution", id_of(row)?)), detail);
    }
    Ok(())
}

/// The newest checkpoint of an execution that can go on has pages, and its list of pages can be read.
fn page_lists(c: &Connection, report: &mut CheckReport) -> Result<(), rusqlite::Error> {
    let mut statement = c.prepare(
        "SELECT k.execution, k.seq, k.pages, EXISTS (SELECT 1 FROM state_pages AS p WHERE p.execution = k.execution
             AND p.checkpoint <= k.seq AND p.bytes IS NOT NULL)
         FROM checkpoints AS k CROSS JOIN executions AS e ON e.id = k.execution
         WHERE e.status IN ('running', 'waiting')
             AND k.seq = (SELECT max(seq) FROM checkpoints WHERE execution = k.execution)",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (seq, list, has_pages): (i64, Option<Vec<u8>>, bool) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let detail = if !has_pages {
            format!("its checkpoint {seq} has no pages")
        } else if list.is_some_and(|list| !is_list_of_pages(&list)) {
            format!("the list of pages of its checkpoint {seq} cannot be read")
        } else {
            continue;
        };
        report.add("checkpoints", Some(("execution", id_of(row)?)), detail);
    }
    Ok(())
}

/// The sums of what each owner stores, counted anew.
pub(crate) const STORED_BYTES: &str = include_str!("stored_bytes.sql");

fn counters(c: &Connection, report: &mut CheckReport) -> Result<(), rusqlite::Error> {
    let sql = format!(
        "WITH counted(owner, bytes) AS ({STORED_BYTES}) SELECT owners.owner, owners.bytes, coalesce(counted.bytes, 0)
         FROM owners LEFT JOIN counted ON counted.owner = owners.owner
         WHERE owners.bytes <> coalesce(counted.bytes, 0) AND owners.owner <> '(commits)'
         UNION ALL SELECT owner, 0, bytes FROM counted
         WHERE bytes > 0 AND NOT EXISTS (SELECT 1 FROM owners WHERE owners.owner = counted.owner)"
    );
    let mut statement = c.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (owner, kept, counted): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let detail = format!("its counter says {kept} bytes, its rows take {counted}");
        report.add("counters", Some(("owner", owner)), detail);
    }
    Ok(())
}

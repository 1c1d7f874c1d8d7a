//! The pages of a state as of a checkpoint.

use super::{Read, Select, count};
use rusqlite::Connection;
use vm_system_protocol::ids::ExecutionId;

/// A page with many versions is looked up by its newest one: the cost of reading a state does not grow with the number of
/// kept checkpoints.
pub(in crate::sqlite) fn state_part(
    c: &Connection,
    execution: ExecutionId,
    checkpoint: u64,
    mut behind: Option<u64>,
    bytes: usize,
) -> Read<Vec<(u64, Vec<u8>)>> {
    let (mut pages, mut gathered) = (Vec::new(), 0);
    let mut keep = |page: Option<(u64, Option<Vec<u8>>)>| {
        if let Some((page, Some(content))) = page {
            gathered += content.len();
            pages.push((page, content));
        }
        gathered < bytes
    };
    loop {
        let select = of_page(
            execution,
            ("page >", behind.map_or(-1, number)),
            checkpoint,
            " ORDER BY page, checkpoint",
        );
        // The last page, until it is known whether there is another version of it.
        let mut last: Option<(u64, Option<Vec<u8>>)> = None;
        let (mut several, mut is_full) = (None, false);
        select.each(c, |row| {
            let page = count(row, 0)?;
            if last.take_if(|(known, _)| *known == page).is_some() {
                several = Some(page);
                return Ok(false);
            }
            is_full = !keep(last.take());
            last = if is_full { None } else { Some((page, row.get(1)?)) };
            Ok(!is_full)
        })?;
        let Some(page) = several else {
            keep(last);
            return Ok(pages);
        };
        if !keep(newest(c, execution, page, checkpoint)?) {
            return Ok(pages);
        }
        behind = Some(page);
    }
}

fn newest(
    c: &Connection,
    execution: ExecutionId,
    page: u64,
    checkpoint: u64,
) -> Read<Option<(u64, Option<Vec<u8>>)>> {
    let select =
        of_page(execution, ("page =", number(page)), checkpoint, " ORDER BY checkpoint DESC LIMIT 1");
    let mut newest = None;
    select.each(c, |row| {
        newest = Some((page, row.get(1)?));
        Ok(false)
    })?;
    Ok(newest)
}

fn of_page(execution: ExecutionId, (which, page): (&str, i64), checkpoint: u64, order: &str) -> Select {
    let mut select = Select::new("SELECT page, bytes FROM state_pages");
    select.and_value("execution =", execution.as_bytes().to_vec());
    select.and_value(which, page).and_value("checkpoint <=", number(checkpoint));
    select.paged = true;
    select.text(order);
    select
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

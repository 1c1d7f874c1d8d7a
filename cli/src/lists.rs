//! Lists of the daemon, part by part: `--limit` and `--all`.

use crate::error::CliError;
use crate::output::notice;

/// Most elements of one request; the supervisor sends no more at once.
const PART: u32 = 1_000;

/// Cuts events to `--limit`, of which one more was read, and says so; 0 means all.
pub(crate) fn cut_events<T>(events: &mut Vec<T>, limit: usize, seq: impl Fn(&T) -> u64) {
    if limit > 0 && events.len() > limit {
        events.truncate(limit);
        let after = events.last().map_or(0, seq);
        notice(&format!("There are more than {limit}: `--after-seq {after}` or `--limit 0` shows them."));
    }
}

/// How much of a list is shown.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ListArgs {
    /// At most this many; a note on stderr says if there are more
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl ListArgs {
    /// The elements; `part` requests at most so many behind an element.
    pub(crate) async fn collect<T>(
        self,
        part: impl AsyncFn(Option<&T>, u32) -> Result<Vec<T>, CliError>,
    ) -> Result<Vec<T>, CliError> {
        let limit = if self.all { usize::MAX } else { self.limit as usize };
        let mut elements = Vec::new();
        // One more than is shown, to know whether there are more. A part may be shorter than requested: only an empty one is
        // the end.
        while elements.len() <= limit {
            let wanted = limit.saturating_sub(elements.len()).saturating_add(1);
            let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(PART);
            let next = part(elements.last(), wanted).await?;
            if next.is_empty() {
                break;
            }
            elements.extend(next);
        }
        if elements.len() > limit {
            elements.truncate(limit);
            notice(&format!("There are more than {limit}: `--limit N` or `--all` shows them."));
        }
        Ok(elements)
    }
}

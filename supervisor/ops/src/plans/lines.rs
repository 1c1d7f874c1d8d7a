//! Lines and tags of a plan file.
//!
//! Owns: where a tag counts, and the text between two of them. Must not: know which tags a plan has to have.

/// The trimmed lines of a text with their numbers from 1, and a position among them.
pub(super) struct PlanLines<'t> {
    lines: Vec<&'t str>,
    at: usize,
}

/// The text between a tag and its end.
pub(super) struct Section<'t> {
    /// Line of the opening tag
    pub line: usize,
    /// Lines with their numbers; blank ones too
    pub lines: Vec<(usize, &'t str)>,
    /// Does its end tag exist?
    pub closed: bool,
}

impl Section<'_> {
    /// The text, without blank lines at its ends.
    pub(super) fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|(_, line)| *line).collect();
        lines.join("\n").trim().to_owned()
    }
}

impl<'t> PlanLines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { lines: text.lines().map(str::trim).collect(), at: 0 }
    }

    /// The next line with its number.
    pub(super) fn next(&mut self) -> Option<(usize, &'t str)> {
        let line = *self.lines.get(self.at)?;
        self.at += 1;
        Some((self.at, line))
    }

    /// The number of the last returned line.
    pub(super) fn number(&self) -> usize {
        self.at
    }

    /// The section that `line`, the last returned one, opens with `<tag>`. It ends at `</tag>`: at the start or the end of a
    /// line, or on the opening line. Without it, it ends where a line begins with one of `stops`, or with the text.
    pub(super) fn section(&mut self, line: &'t str, tag: &str, stops: &[&str]) -> Option<Section<'t>> {
        let rest = line.strip_prefix('<')?.strip_prefix(tag)?.strip_prefix('>')?;
        let end = format!("</{tag}>");
        let first = self.at;
        if let Some(at) = rest.find(&end) {
            let inside = rest[..at].trim();
            return Some(Section { line: first, lines: vec![(first, inside)], closed: true });
        }
        let mut lines = vec![(first, rest.trim())];
        while let Some(&line) = self.lines.get(self.at) {
            if stops.iter().any(|stop| line.starts_with(stop)) {
                break;
            }
            self.at += 1;
            if line.starts_with(&end) {
                return Some(Section { line: first, lines, closed: true });
            }
            if let Some(inside) = line.strip_suffix(&end) {
                lines.push((self.at, inside.trim()));
                return Some(Section { line: first, lines, closed: true });
            }
            lines.push((self.at, line));
        }
        Some(Section { line: first, lines, closed: false })
    }
}

/// Longest id of a block (bytes).
pub const BLOCK_ID_BYTES: usize = 100;

/// The id in `<block id="…">`, empty if it has none; none if the line opens no block. An id that is too long is cut,
/// but not below the limit: errors repeat it, and it must not become valid.
pub(super) fn block_id(line: &str) -> Option<String> {
    let rest = line.strip_prefix("<block")?;
    if !rest.starts_with(['>', ' ', '\t']) {
        return None;
    }
    let id = rest.split('>').next().and_then(|attributes| attributes.split_once("id=\"")).map(|(_, id)| id);
    let id = id.and_then(|id| id.split('"').next()).unwrap_or_default();
    Some(id[..id.ceil_char_boundary(BLOCK_ID_BYTES + 1)].to_owned())
}

/// Two digits, then words of lower-case letters and digits, each behind a dash; at most [`BLOCK_ID_BYTES`].
pub fn is_block_id(id: &str) -> bool {
    let mut parts = id.split('-');
    let number = parts.next().unwrap_or_default();
    let mut words = parts.peekable();
    id.len() <= BLOCK_ID_BYTES
        && number.len() == 2
        && number.bytes().all(|b| b.is_ascii_digit())
        && words.peek().is_some()
        && words.all(|word| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

/// The name of a test in code: the first forty letters, digits and spaces of its text, as one lower-case word.
pub(super) fn red_key(text: &str) -> String {
    let kept: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == ' ').collect();
    let first: String = kept.trim().chars().take(40).collect();
    first.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_").to_lowercase()
}

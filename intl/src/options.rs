//! Owns the options of a formatter as plain text: both engines convert a script's options to it, and a program stores it.

/// Options by name, each with the text of its value: `minimumFractionDigits` with `2`, `style` with `currency`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatOptions(Vec<(String, String)>);

impl FormatOptions {
    /// Reads lines `name=value`; a line without `=` is none.
    pub fn parse(lines: &str) -> Self {
        let pairs = lines.lines().filter_map(|line| line.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    pub fn set(&mut self, name: &str, value: String) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), value));
    }

    /// The value; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        !self.text(name).is_empty()
    }

    /// A number of digits: no option has more than 100.
    pub(crate) fn digits(&self, name: &str) -> Option<i16> {
        self.text(name).parse().ok().map(|digits: i16| digits.clamp(0, 100))
    }
}

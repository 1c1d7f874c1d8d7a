//! The text of the operator's file, to name the place of a setting.

use std::path::PathBuf;
use toml::Table;
use vm_system_api::line_of;

/// Where an operator's file is, and what it had when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSource {
    /// Absolute.
    pub path: PathBuf,
    /// Valid.
    pub(crate) text: String,
    /// Settings of the file that the command line overrides.
    overridden: Vec<&'static [&'static str]>,
}

impl ConfigSource {
    pub(super) fn new(path: PathBuf, text: String) -> Self {
        Self { path, text, overridden: Vec::new() }
    }

    /// Notes a setting that the command line has as well.
    pub fn override_setting(&mut self, setting: &'static [&'static str]) {
        self.overridden.push(setting);
    }

    /// The file and the line of a setting that is in force; none: the file does not have it.
    pub fn place_of(&self, setting: &[&str]) -> Option<String> {
        let table: Table = self.text.parse().ok()?;
        let (first, rest) = setting.split_first()?;
        let value = rest.iter().try_fold(table.get(*first)?, |value, name| value.get(*name));
        let is_in_force = value.is_some() && !self.overridden.contains(&setting);
        let line = line_of(&self.text, setting).filter(|_| is_in_force)?;
        Some(format!("{}: line {line}", self.path.display()))
    }
}

//! The YAML front matter of a test, as far as test262 uses YAML (its `INTERPRETING.md`).

/// The front matter of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `flags`
    pub flags: Vec<String>,
    /// `features`
    pub features: Vec<String>,
    /// `includes`: harness files
    pub includes: Vec<String>,
    /// `negative`: the test passes if it fails this way
    pub negative: Option<Negative>,
}

/// An expected failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Negative {
    /// `parse`, `resolution` or `runtime`
    pub phase: String,
    /// Name of the error's constructor.
    pub kind: String,
}

impl Metadata {
    /// Reads the block between `/*---` and `---*/`; empty without one.
    pub fn parse(source: &str) -> Metadata {
        let block = source
            .split_once("/*---")
            .and_then(|(_, rest)| rest.split_once("---*/"))
            .map_or("", |(block, _)| block);
        // Some tests are about line ends, and use carriage returns only.
        let block = block.replace('\r', "\n");
        let mut metadata = Metadata::default();
        let mut key = String::new();
        for line in block.lines() {
            let indented = line.starts_with(char::is_whitespace);
            let line = line.trim();
            if !indented && let Some((name, value)) = line.split_once(':') {
                name.clone_into(&mut key);
                metadata.add(&key, value.trim());
            } else {
                metadata.add(&key, line);
            }
        }
        metadata
    }

    fn add(&mut self, key: &str, value: &str) {
        let list = match key {
            "flags" => &mut self.flags,
            "features" => &mut self.features,
            "includes" => &mut self.includes,
            "negative" => {
                let negative = self.negative.get_or_insert_default();
                match value.split_once(':') {
                    Some(("phase", phase)) => phase.trim().clone_into(&mut negative.phase),
                    Some(("type", kind)) => kind.trim().clone_into(&mut negative.kind),
                    _ => {}
                }
                return;
            }
            _ => return,
        };
        let items = value.trim_start_matches(['-', '[']).trim_end_matches(']').split(',');
        list.extend(items.map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned));
    }

    /// True if `flag` is among the flags.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// True if `feature` is among the features.
    pub fn has_feature(&self, feature: &str) -> bool {
        self.features.iter().any(|known| known == feature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_lists_are_read() {
        let text = "// c\n/*---\ndescription: a, b: c\nflags: [onlyStrict, async]\nincludes:\n  - a.js\n  - b.js\n\
                    features: [\n  X, Y]\nnegative:\n  phase: parse\n  type: SyntaxError\n---*/\nx";
        let metadata = Metadata::parse(text);
        assert_eq!(metadata.flags, ["onlyStrict", "async"]);
        assert_eq!(metadata.includes, ["a.js", "b.js"]);
        assert_eq!(metadata.features, ["X", "Y"]);
        let negative = Negative { phase: "parse".to_owned(), kind: "SyntaxError".to_owned() };
        assert_eq!(metadata.negative, Some(negative));
        assert_eq!(Metadata::parse("no block"), Metadata::default());
    }
}

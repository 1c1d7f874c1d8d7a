//! Owns what resolution needs of a `package.json`. Reads text only.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A `package.json`.
#[derive(Debug)]
pub(super) struct Package {
    /// Relative to the worktree; empty for the worktree itself.
    pub(super) folder: String,
    pub(super) name: Option<String>,
    pub(super) main: Option<String>,
    /// `.js` files are ES modules.
    pub(super) is_module: bool,
    pub(super) exports: Option<Target>,
    pub(super) imports: Vec<(String, Target)>,
}

/// A value of `exports` or `imports`. Keys keep their order, which decides between conditions.
#[derive(Debug, PartialEq)]
pub(super) enum Target {
    Null,
    Text(String),
    List(Vec<Target>),
    Map(Vec<(String, Target)>),
    /// A number or a boolean.
    Other,
}

impl Package {
    /// `None`: the text is not a JSON object.
    pub(super) fn parse(folder: &str, source: &str) -> Option<Self> {
        let Ok(Target::Map(fields)) = serde_json::from_str(source) else { return None };
        let mut package = Self {
            folder: folder.to_owned(),
            name: None,
            main: None,
            is_module: false,
            exports: None,
            imports: Vec::new(),
        };
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("name", Target::Text(name)) => package.name = Some(name),
                ("main", Target::Text(main)) => package.main = Some(main),
                ("type", Target::Text(kind)) => package.is_module = kind == "module",
                ("exports", Target::Null) => package.exports = None,
                ("exports", value) => package.exports = Some(value),
                ("imports", Target::Map(imports)) => package.imports = imports,
                _ => {}
            }
        }
        Some(package)
    }

    /// The path of the file itself.
    pub(super) fn path(&self) -> String {
        if self.folder.is_empty() {
            "package.json".to_owned()
        } else {
            format!("{}/package.json", self.folder)
        }
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TargetVisitor)
    }
}

struct TargetVisitor;

impl<'de> Visitor<'de> for TargetVisitor {
    type Value = Target;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Target, E> {
        Ok(Target::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Target, E> {
        Ok(Target::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Target, E> {
        Ok(Target::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Target, E> {
        Ok(Target::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Target, E> {
        Ok(Target::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Target, E> {
        Ok(Target::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Target, A::Error> {
        let mut targets = Vec::new();
        while let Some(target) = list.next_element()? {
            targets.push(target);
        }
        Ok(Target::List(targets))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Target, A::Error> {
        let mut targets: Vec<(String, Target)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            targets.push((key, map.next_value()?));
        }
        Ok(Target::Map(targets))
    }
}

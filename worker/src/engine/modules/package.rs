//! Owns what resolution needs of a `package.json`. Reads text only.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A `package.json`.
#[derive(Debug)]
pub(super) struct PackageManifest {
    /// Relative to the worktree; empty for the worktree itself.
    pub(super) folder: String,
    pub(super) name: Option<String>,
    pub(super) main: Option<String>,
    /// `.js` files are ES modules.
    pub(super) is_module: bool,
    pub(super) exports: Option<PackageTarget>,
    pub(super) imports: Vec<(String, PackageTarget)>,
}

/// A value of `exports` or `imports`. Keys keep their order, which decides between conditions.
#[derive(Debug, PartialEq)]
pub(super) enum PackageTarget {
    Null,
    Text(String),
    List(Vec<PackageTarget>),
    Map(Vec<(String, PackageTarget)>),
    /// A number or a boolean.
    Other,
}

/// Whether the kind of a file depends on its package's `type`.
pub(super) fn depends_on_package(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_none_or(|(_, extension)| extension == "js")
}

impl PackageManifest {
    /// `None`: the text is not a JSON object.
    pub(super) fn parse(folder: &str, source: &str) -> Option<Self> {
        let Ok(PackageTarget::Map(fields)) = serde_json::from_str(source) else { return None };
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
                ("name", PackageTarget::Text(name)) => package.name = Some(name),
                ("main", PackageTarget::Text(main)) => package.main = Some(main),
                ("type", PackageTarget::Text(kind)) => package.is_module = kind == "module",
                ("exports", PackageTarget::Null) => package.exports = None,
                ("exports", value) => package.exports = Some(value),
                ("imports", PackageTarget::Map(imports)) => package.imports = imports,
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

impl<'de> Deserialize<'de> for PackageTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TargetVisitor)
    }
}

struct TargetVisitor;

impl<'de> Visitor<'de> for TargetVisitor {
    type Value = PackageTarget;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<PackageTarget, E> {
        Ok(PackageTarget::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<PackageTarget, E> {
        Ok(PackageTarget::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<PackageTarget, E> {
        Ok(PackageTarget::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<PackageTarget, E> {
        Ok(PackageTarget::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<PackageTarget, E> {
        Ok(PackageTarget::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<PackageTarget, E> {
        Ok(PackageTarget::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PackageTarget, A::Error> {
        let mut targets = Vec::new();
        while let Some(target) = list.next_element()? {
            targets.push(target);
        }
        Ok(PackageTarget::List(targets))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PackageTarget, A::Error> {
        let mut targets: Vec<(String, PackageTarget)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            targets.push((key, map.next_value()?));
        }
        Ok(PackageTarget::Map(targets))
    }
}

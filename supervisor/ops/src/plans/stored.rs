//! Plans and progress that are files: `uplan.json`, `uplan-progress.json`.
//!
//! Owns: parsing them, also in the formats of earlier programs. Must not: open files.

use super::Plan;
use super::lines::is_block_id;
use serde_json::Value;
use std::collections::BTreeSet;

impl Plan {
    /// A compiled plan from its stored text. Blocks of earlier programs have no type: those without keys of tests have actions.
    pub fn from_json(text: &str) -> Option<Plan> {
        let mut value: Value = serde_json::from_str(text).ok()?;
        for block in value.get_mut("blocks")?.as_array_mut()? {
            let block = block.as_object_mut()?;
            if !block.contains_key("type") {
                let tests =
                    block.get("redKeys").and_then(Value::as_array).is_some_and(|keys| !keys.is_empty());
                block.insert("type".to_owned(), Value::from(if tests { "tddab" } else { "step" }));
            }
        }
        serde_json::from_value(value).ok()
    }
}

/// The ids of blocks that are done in a stored progress: those in its lists, and the names of true fields.
pub fn done_blocks(text: &str) -> Vec<String> {
    let mut done = BTreeSet::new();
    if let Ok(value) = serde_json::from_str(text) {
        collect(&value, &mut done);
    }
    done.into_iter().collect()
}

fn collect(value: &Value, done: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => {
            for item in list {
                match item {
                    Value::String(id) if is_block_id(id) => drop(done.insert(id.clone())),
                    item => collect(item, done),
                }
            }
        }
        Value::Object(entries) => {
            for (name, value) in entries {
                if is_block_id(name) && *value == Value::Bool(true) {
                    done.insert(name.clone());
                } else {
                    collect(value, done);
                }
            }
        }
        _ => {}
    }
}

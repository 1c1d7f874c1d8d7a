//! JSON documents whose objects keep the order of their fields. `serde_json` has it as a feature, which would be one of the whole
//! workspace: the daemon sorts what it stores.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Number;

/// A value; the fields of a mapping are in the order of its text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DocumentValue {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Sequence(Vec<DocumentValue>),
    Mapping(Vec<(String, DocumentValue)>),
}

impl Serialize for DocumentValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Sequence(items) => serializer.collect_seq(items),
            Self::Mapping(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, value))),
        }
    }
}

impl<'de> Deserialize<'de> for DocumentValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = DocumentValue;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<DocumentValue, E> {
        Ok(DocumentValue::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<DocumentValue, E> {
        // JSON has no number that is not finite.
        Ok(Number::from_f64(value).map_or(DocumentValue::Null, DocumentValue::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<DocumentValue, E> {
        Ok(DocumentValue::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<DocumentValue, E> {
        Ok(DocumentValue::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<DocumentValue, A::Error> {
        let mut sequence = Vec::new();
        while let Some(item) = items.next_element()? {
            sequence.push(item);
        }
        Ok(DocumentValue::Sequence(sequence))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<DocumentValue, A::Error> {
        let mut mapping = Vec::new();
        while let Some(field) = fields.next_entry()? {
            mapping.push(field);
        }
        Ok(DocumentValue::Mapping(mapping))
    }
}

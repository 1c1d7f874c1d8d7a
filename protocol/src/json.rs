//! Free-form JSON as text: the wire has no recursive types, so documents are sent unparsed.

use crate::codec::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};
use serde_json::value::RawValue;

/// One complete JSON document as compact text. A value from a worker is not trusted: it must be checked with
/// [`JsonText::is_valid`] before it is stored, and serialising an invalid value is an error, never broken output.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Encode, Decode)]
pub struct JsonText(String);

impl JsonText {
    /// From untrusted text, unchecked (see the type).
    pub const fn from_untrusted(text: String) -> Self {
        Self(text)
    }
    /// From a trusted value.
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(value.to_string())
    }
    /// `{}`.
    pub fn empty_object() -> Self {
        Self("{}".to_owned())
    }
    /// The text, possibly invalid (see the type).
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Whether the text is one JSON document, nested at most 128 deep.
    pub fn is_valid(&self) -> bool {
        serde_json::from_str::<serde_json::Value>(&self.0).is_ok()
    }
    /// The parsed document, if the text is valid.
    pub fn to_value(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.0).ok()
    }
}

impl schemars::JsonSchema for JsonText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "Any JSON." })
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer).map_err(D::Error::custom)?;
        Ok(Self::from_value(&value))
    }
}

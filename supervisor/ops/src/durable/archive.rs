//! The file of an export: one JSON array with a record in each line. What is in it, and the chain of hashes that finds
//! damage. Does not check the meaning of records: `import` does.
//!
//! The chain begins with 32 zeros; each record makes it SHA-256(chain, line), where the line has neither the comma behind
//! it nor its line break. The last record has the chain over all before it. It proves nothing about who wrote the file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{Event, ExecutionError, ExecutionStatus, Metrics};
use vm_system_protocol::time::Timestamp;
use vm_system_spawn::libraries::hex;

/// Version of the file's format.
pub(super) const FORMAT: u32 = 1;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ArchiveRecord {
    Header(Header),
    Program(ProgramPart),
    Version(VersionPart),
    Execution(ExecutionPart),
    Checkpoint(CheckpointPart),
    /// An item; most are tasks.
    Task(TaskPart),
    Mail(MailPart),
    Event(Event),
    Page(PagePart),
    End(ArchiveEnd),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// `program` or `execution`.
    pub(super) kind: String,
    pub(super) format: u32,
    /// The program that wrote the file.
    pub(super) writer: String,
    pub(super) exported_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramPart {
    pub(super) name: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VersionPart {
    pub(super) version: u32,
    pub(super) source: String,
    /// SHA-256, hexadecimal.
    pub(super) source_hash: String,
    pub(super) created_at: Timestamp,
    /// Format of the compiled code.
    pub(super) format: u32,
    /// The compiled code that the state refers to; programs are compiled anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<Bytes>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecutionPart {
    /// The id on the exporting machine.
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) status: ExecutionStatus,
    pub(super) args: JsonText,
    /// Without the values of secrets.
    pub(super) env: JsonText,
    pub(super) started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<JsonText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ExecutionError>,
    pub(super) metrics: Metrics,
}

/// A field that is there has a value, also if that is `null`.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonText>, D::Error> {
    JsonText::deserialize(deserializer).map(Some)
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointPart {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    pub(super) cause: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskPart {
    pub(super) prompt: String,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub(super) schema: Option<JsonText>,
    pub(super) attempts: u32,
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deadline: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<String>,
    pub(super) checkpoint: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retries: Option<u32>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub(super) fallback: Option<JsonText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first_attempt_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_attempt_at: Option<Timestamp>,
    /// Of a pending item; none: it is the question of a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<ItemPart>,
}

/// The facts that a pending item has and a pause has not.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemPart {
    /// From 1.
    pub(super) number: u64,
    /// `question`, `timer`, `event`.
    pub(super) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer_seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) taken_at: Option<u64>,
}

/// An event that the execution has not used.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MailPart {
    pub(super) name: String,
    pub(super) event: JsonText,
    pub(super) at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PagePart {
    pub(super) page: u64,
    pub(super) checkpoint: u64,
    /// None: the page was deleted.
    pub(super) bytes: Option<Bytes>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArchiveEnd {
    /// Records before this one.
    pub(super) records: u64,
    /// The chain over them, hexadecimal.
    pub(super) sha256: String,
}

/// Bytes as base64.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&base64::display::Base64Display::new(&self.0, &STANDARD))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Base64 has no character that JSON escapes, so that the text is borrowed from the line.
        let text = <&str>::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(D::Error::custom)
    }
}

/// The hashes over the records so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    pub(super) hash: [u8; 32],
    pub(super) records: u64,
}

impl Chain {
    pub(super) fn add(&mut self, line: &[u8]) {
        let mut hash = Sha256::new_with_prefix(self.hash);
        hash.update(line);
        self.hash = hash.finalize().into();
        self.records += 1;
    }
}

/// The part of the file that is being written.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    pub(super) text: String,
    pub(super) chain: Chain,
}

impl Sheet {
    pub(super) fn put(&mut self, record: &ArchiveRecord) -> Result<(), serde_json::Error> {
        let line = serde_json::to_string(record)?;
        // Documents of programs may have line breaks between their tokens, and nowhere else.
        let line = if line.contains(['\n', '\r']) { line.replace(['\n', '\r'], " ") } else { line };
        self.text.push_str(if self.chain.records == 0 { "[\n" } else { ",\n" });
        self.text.push_str(&line);
        self.chain.add(line.as_bytes());
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), serde_json::Error> {
        let end = ArchiveEnd { records: self.chain.records, sha256: hex(&self.chain.hash) };
        self.put(&ArchiveRecord::End(end))?;
        self.text.push_str("\n]\n");
        Ok(())
    }
}

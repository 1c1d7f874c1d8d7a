//! Shared by the broker's tests: the terms of a session without path patterns.

use vm_system_protocol::broker::FsTerms;
use vm_system_protocol::limits::{FS_DIR_ENTRIES, FS_READ_BYTES};

/// The terms of a session without path patterns.
pub(crate) const ALL: FsTerms = FsTerms {
    links: true,
    tree: true,
    existing_levels: 0,
    max_file_bytes: FS_READ_BYTES as u64,
    max_entries: FS_DIR_ENTRIES as u32,
};

//! The authorizer: actions that are refused in every statement, that is, other files, settings of the connection, loaded code.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// The allowed pragmas: queries of the schema, and settings that affect only this session. True: the pragma may also be set.
const PRAGMAS: &[(&str, bool)] = &[
    ("application_id", true),
    ("data_version", false),
    ("defer_foreign_keys", true),
    ("encoding", false),
    ("foreign_key_check", true),
    ("foreign_key_list", true),
    ("foreign_keys", true),
    ("freelist_count", false),
    ("incremental_vacuum", true),
    ("index_info", true),
    ("index_list", true),
    ("index_xinfo", true),
    ("integrity_check", true),
    ("page_count", false),
    ("page_size", false),
    ("quick_check", true),
    ("table_info", true),
    ("table_list", true),
    ("table_xinfo", true),
    ("user_version", true),
];

/// Functions that load code or access memory.
const FUNCTIONS: &[&str] = &["load_extension", "fts3_tokenizer", "edit", "readfile", "writefile"];

/// Virtual tables that are stored in ordinary ones.
const VIRTUAL_TABLES: &[&str] = &["fts5", "rtree", "rtree_i32"];

/// Allows or refuses one action of a statement that is being prepared.
pub(super) fn authorize(context: AuthContext<'_>) -> Authorization {
    let allowed = match context.action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } | AuthAction::Unknown { .. } => false,
        AuthAction::Pragma { pragma_name, pragma_value } => PRAGMAS.iter().any(|(name, may_set)| {
            name.eq_ignore_ascii_case(pragma_name) && (*may_set || pragma_value.is_none())
        }),
        AuthAction::Function { function_name } => {
            !FUNCTIONS.iter().any(|name| name.eq_ignore_ascii_case(function_name))
        }
        AuthAction::CreateVtable { module_name, .. } => {
            VIRTUAL_TABLES.iter().any(|name| name.eq_ignore_ascii_case(module_name))
        }
        _ => true,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}

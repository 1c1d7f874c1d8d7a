//! The column of owners, for administrators, who see the objects of others.

use super::Rows;
use crate::context::Context;
use nix::unistd::User;
use std::collections::BTreeMap;

/// The table with the owner of each row behind its first column, if there are several or with `--wide`; without the column if
/// the reply has no owners.
pub(crate) fn with_owners<'a>(
    context: &Context,
    mut rows: Rows,
    owners: impl Iterator<Item = Option<&'a str>>,
) -> Rows {
    let owners: Vec<&str> = owners.map(Option::unwrap_or_default).collect();
    let of_this_machine = context.target.other_machine().is_none();
    let names: BTreeMap<&str, String> = owners
        .iter()
        .map(|owner| (*owner, if of_this_machine { name(owner) } else { (*owner).to_owned() }))
        .collect();
    let is_known = names.keys().any(|owner| !owner.is_empty());
    if is_known && (names.len() > 1 || context.out.wide) {
        rows.insert("OWNER", owners.iter().map(|owner| names[owner].clone()));
    }
    rows
}

/// The name of the user, if the owner is a uid of one; the name of a token is its own.
fn name(owner: &str) -> String {
    let uid = owner.strip_prefix("uid:").and_then(|uid| uid.parse::<u32>().ok());
    match uid.map(|uid| User::from_uid(uid.into())) {
        Some(Ok(Some(user))) => user.name,
        _ => owner.to_owned(),
    }
}

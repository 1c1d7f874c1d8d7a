//! The operator's settings of requests over the network: what rows of templates may allow at most, and secrets with the hosts that
//! may get them.
//!
//! ```toml
//! [[secret]]
//! name = "GITHUB"                       # letters, digits, `_`, `-`
//! hosts = ["https://api.github.com"]    # patterns as in rows of kind `net`, each with a host's name; https unless one says http://
//! value = "ghp_…"
//! ```
//!
//! The file of the secrets belongs to root or to the user that starts the daemon, and no other user may read it.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use vm_system_api::read_secret_toml;
use vm_system_policy::{NetLimits, NetPattern, NetRule, Secret};
use vm_system_protocol::egress::SecretValue;

/// Largest file of secrets (bytes).
const FILE_BYTES: u64 = 1 << 20;
/// Longest name and value of a secret (bytes).
const NAME_BYTES: usize = 64;
const VALUE_BYTES: usize = 16 * 1024;

/// The operator's rule for some patterns: no limits and any method, secrets as their own file binds them.
pub fn operator_rule(patterns: &[String], private: bool) -> Result<NetRule, String> {
    let patterns = patterns.iter().map(|text| NetPattern::parse(text)).collect::<Result<Vec<_>, _>>()?;
    Ok(NetRule { patterns, methods: BTreeSet::new(), private, secrets: None, limits: NetLimits::NONE })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretsFile {
    #[serde(default)]
    secret: Vec<SecretEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretEntry {
    name: String,
    hosts: Vec<String>,
    value: String,
}

/// A file of secrets cannot be used. The message is for the operator, and has no value.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    #[error("cannot read the secrets in {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{0}")]
    Invalid(String),
}

/// Reads a file of secrets.
pub fn read_secrets(path: &Path) -> Result<BTreeMap<String, Secret>, SecretsError> {
    let shown = path.display();
    let failed = |source: std::io::Error| SecretsError::Io { path: path.to_owned(), source };
    let invalid = |why| Err(SecretsError::Invalid(why));
    let mut file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    let own = nix::unistd::geteuid().as_raw();
    if found.uid() != 0 && found.uid() != own {
        return invalid(format!(
            "the secrets in {shown} belong to uid {}: they must be root's or uid {own}'s",
            found.uid()
        ));
    }
    if found.permissions().mode() & 0o077 != 0 {
        return invalid(format!("other users may read or change the secrets in {shown}: chmod 600 {shown}"));
    }
    let mut text = String::new();
    (&mut file).take(FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES {
        return invalid(format!("the file of secrets {shown} is larger than 1 MiB"));
    }
    parse_secrets(&text).or_else(|detail| invalid(format!("{shown}: {detail}")))
}

fn parse_secrets(text: &str) -> Result<BTreeMap<String, Secret>, String> {
    let file: SecretsFile = read_secret_toml(text)?;
    let mut secrets = BTreeMap::new();
    for SecretEntry { name, hosts, value } in file.secret {
        let is_name =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if name.is_empty() || name.len() > NAME_BYTES || !is_name(&name) {
            return Err(format!("{name:?} is not the name of a secret (letters, digits, _ and -)"));
        }
        if value.is_empty()
            || value.len() > VALUE_BYTES
            || value.bytes().any(|byte| !(0x20..0x7f).contains(&byte))
        {
            return Err(format!("the value of {name} must be 1 to {VALUE_BYTES} printable ASCII characters"));
        }
        if hosts.is_empty() {
            return Err(format!("{name} has no hosts: list those that may get it"));
        }
        let hosts = hosts.iter().map(|host| NetPattern::of_secret(host)).collect::<Result<Vec<_>, _>>();
        let hosts = hosts.map_err(|error| format!("{name}: {error}"))?;
        let value = SecretValue { name: name.clone(), value };
        if secrets.insert(name.clone(), Secret { value, hosts }).is_some() {
            return Err(format!("{name} is there twice"));
        }
    }
    Ok(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_bound_to_hosts_and_no_message_has_a_value() {
        let good = "[[secret]]\nname = \"A\"\nhosts = [\"https://a.test\"]\nvalue = \"hunter2\"\n";
        let secrets = parse_secrets(good).expect("valid");
        assert!(!format!("{secrets:?}").contains("hunter2"));
        for (bad, why) in [
            (good.replace("\"A\"", "\"A B\""), "name"),
            (good.replace("https://a.test", "*"), "nobody"),
            (good.replace("https://a.test", "https://*"), "nobody"),
            (good.replace("https://a.test", "https://*:443"), "nobody"),
            (good.replace("https://a.test", "https://*.test"), "nobody"),
            (good.replace("[\"https://a.test\"]", "[]"), "hosts"),
            (good.replace("hunter2", "hunter2\\n"), "printable"),
            (good.replace("value", "valeu"), "no field"),
            (format!("{good}{good}"), "twice"),
        ] {
            let message = parse_secrets(&bad).expect_err(&bad);
            assert!(message.contains(why), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secrets.toml");
        std::fs::write(&path, "").expect("written");
        let mode =
            |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("mode");
        mode(0o640);
        assert!(read_secrets(&path).expect_err("exposed").to_string().contains("chmod 600"));
        mode(0o600);
        assert!(read_secrets(&path).expect("readable").is_empty());
    }
}

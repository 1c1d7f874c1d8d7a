//! Owns the paths of the host that a script names: one beneath its own worktree is the same file as the path from the worktree. Pure
//! text; every other path of the host stays one that the worktree does not have.

use vm_system_protocol::broker::{ExecRequest, FsRequest};
use vm_system_protocol::worker::HostRequest;

/// `path` from the worktree, if it is the worktree's own path on the host or one beneath it; `None` for every other path.
pub fn from_host<'a>(path: &'a str, worktree: &str) -> Option<&'a str> {
    let worktree = worktree.trim_end_matches('/');
    if worktree.is_empty() {
        return None;
    }
    match path.strip_prefix(worktree)? {
        "" => Some("/"),
        rest if rest.starts_with('/') => Some(rest),
        _ => None,
    }
}

/// Replaces the paths of the host in a request by those from the worktree. They have precedence over equal paths in the worktree.
pub fn seen_from_worktree(mut request: HostRequest, worktree: &str) -> HostRequest {
    let change = |path: &mut String| {
        if let Some(seen) = from_host(path, worktree) {
            *path = seen.to_owned();
        }
    };
    match &mut request {
        HostRequest::Fs(
            FsRequest::ReadFile { path }
            | FsRequest::ReadDir { path }
            | FsRequest::Stat { path, .. }
            | FsRequest::Exists { path }
            | FsRequest::RealPath { path }
            | FsRequest::Access { path, .. }
            | FsRequest::Write { path, .. }
            | FsRequest::MakeDir { path, .. }
            | FsRequest::RemoveFile { path }
            | FsRequest::RemoveDir { path }
            | FsRequest::Remove { path, .. },
        ) => change(path),
        HostRequest::Fs(FsRequest::Rename { from, to } | FsRequest::Copy { from, to, .. }) => {
            change(from);
            change(to);
        }
        HostRequest::Exec(ExecRequest { folder, .. }) => change(folder),
        // The engine lists them without the `/` of a specifier from the root; with it, where it may only be a path of the host.
        HostRequest::LoadModule { candidates, .. } => {
            for candidate in candidates {
                let host =
                    if candidate.starts_with('/') { candidate.clone() } else { format!("/{candidate}") };
                if let Some(seen) = from_host(&host, worktree) {
                    candidate.replace_range(..candidate.len() - seen.trim_start_matches('/').len(), "");
                }
            }
        }
        _ => {}
    }
    request
}

#[cfg(test)]
mod tests {
    use super::{from_host, seen_from_worktree};
    use vm_system_protocol::broker::{ExecRequest, FsRequest};
    use vm_system_protocol::worker::HostRequest;

    #[test]
    fn paths_of_the_host_beneath_the_worktree_are_paths_from_it() {
        for (path, worktree, seen) in [
            ("/home/u/tree/a/b", "/home/u/tree", Some("/a/b")),
            ("/home/u/tree/a", "/home/u/tree/", Some("/a")),
            ("/home/u/tree", "/home/u/tree", Some("/")),
            ("/home/u/tree/../x", "/home/u/tree", Some("/../x")),
            ("/home/u/treetop", "/home/u/tree", None),
            ("/home/u", "/home/u/tree", None),
            ("/etc/passwd", "/home/u/tree", None),
            ("home/u/tree/a", "/home/u/tree", None),
            ("/a", "/", None),
            ("/a", "", None),
        ] {
            assert_eq!(from_host(path, worktree), seen, "{path} {worktree}");
        }
    }

    #[test]
    fn the_folder_of_a_command_is_changed() {
        let exec = |folder: &str| {
            HostRequest::Exec(ExecRequest {
                command: "ls".to_owned(),
                arguments: Vec::new(),
                input: Vec::new(),
                folder: folder.to_owned(),
                environment: Vec::new(),
            })
        };
        for (folder, seen) in [("/t/a", "/a"), ("/t", "/"), ("/u", "/u"), ("a", "a"), ("", "")] {
            assert_eq!(seen_from_worktree(exec(folder), "/t"), exec(seen));
        }
    }

    #[test]
    fn both_paths_of_a_copy_and_all_candidates_of_a_module_are_changed() {
        let copy = FsRequest::Copy { from: "/t/a".to_owned(), to: "/t/b".to_owned(), exclusive: false };
        let seen = FsRequest::Copy { from: "/a".to_owned(), to: "/b".to_owned(), exclusive: false };
        assert_eq!(seen_from_worktree(HostRequest::Fs(copy), "/t"), HostRequest::Fs(seen));
        let load = |candidates: &[&str]| HostRequest::LoadModule {
            candidates: candidates.iter().map(|&path| path.to_owned()).collect(),
            import: true,
            package: false,
        };
        assert_eq!(
            seen_from_worktree(load(&["t/a.js", "u/a.js", "/t/a.js", "/u/a.js"]), "/t"),
            load(&["a.js", "u/a.js", "a.js", "/u/a.js"])
        );
    }
}

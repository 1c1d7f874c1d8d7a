//! The files of a web UI, beneath one folder: `/` and its assets, and the start page for every other path, for client-side
//! routing. The kernel opens files beneath the folder's descriptor, so neither `..` nor a link leads out; folders are not
//! listed. The files are public: browsers cannot send a token for a page.

use super::envelope::RestError;
use super::executions::accepts;
use super::representation::is_known;
use super::routes;
use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use vm_system_runtime::worktree::{Worktree, WorktreeError, clean_relative};

/// Largest file that is served (bytes).
const FILE_BYTES: u64 = 32 << 20;
const START_PAGE: &str = "index.html";

/// The folder of a web UI, which all clones share.
#[derive(Debug, Clone)]
pub struct UiDir {
    path: PathBuf,
    folder: Arc<RwLock<Worktree>>,
}

impl UiDir {
    /// Opens the folder. Blocks.
    pub fn open(path: &Path) -> Result<Self, WorktreeError> {
        let folder = Worktree::of_operator(path)?;
        Ok(Self { path: path.to_owned(), folder: Arc::new(RwLock::new(folder)) })
    }

    /// Opens the folder that is at its path now, to be served by [`UiDir::replace`]. Blocks.
    pub fn open_again(&self) -> Result<Worktree, WorktreeError> {
        Worktree::of_operator(&self.path)
    }

    /// Serves another folder from now on.
    pub fn replace(&self, folder: Worktree) {
        *self.folder.write().unwrap_or_else(PoisonError::into_inner) = folder;
    }

    fn folder(&self) -> Worktree {
        self.folder.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A served file.
struct File {
    bytes: Vec<u8>,
    kind: &'static str,
    tag: String,
}

/// Handles a request that is not for the API.
pub(super) async fn answer(ui: Option<&UiDir>, request: &Parts) -> Result<Response<Body>, RestError> {
    let Some(ui) = ui else { return Err(RestError::no_route()) };
    if request.method != Method::GET && request.method != Method::HEAD {
        return Ok(routes::other_method(&request.method, "GET,HEAD"));
    }
    let Some(path) = decoded(request.uri.path()) else { return Err(RestError::no_route()) };
    // A missing asset is an error; other paths without a file are routes of the start page.
    let may_fall_back =
        !path.starts_with("/assets/") && (path == "/" || accepts(&request.headers, "text/html"));
    let relative = path.trim_start_matches('/').to_owned();
    let folder = ui.folder();
    let found = tokio::task::spawn_blocking(move || {
        let file = if relative.is_empty() { None } else { open(&folder, &relative) };
        file.or_else(|| if may_fall_back { open(&folder, START_PAGE) } else { None })
    });
    let file = found.await.ok().flatten().ok_or_else(RestError::no_route)?;
    let known = request.headers.get_all(header::IF_NONE_MATCH);
    let known = HeaderValue::from_str(&file.tag).is_ok_and(|tag| is_known(known, &tag));
    let mut response = Response::new(if known { Body::empty() } else { Body::from(file.bytes) });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    if let Ok(tag) = HeaderValue::from_str(&file.tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

/// A regular file beneath the folder.
fn open(folder: &Worktree, path: &str) -> Option<File> {
    let path = clean_relative(path).ok()?;
    let (bytes, modified) = folder.read_bytes(&path, FILE_BYTES).ok()?;
    let tag = format!("W/\"{:x}-{modified:x}\"", bytes.len());
    Some(File { bytes, kind: kind(&path), tag })
}

/// Decodes percent escapes; `None` if the result is not UTF-8.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push((high << 4 | low) as u8);
    }
    String::from_utf8(bytes).ok()
}

/// The media type for a file name.
fn kind(path: &str) -> &'static str {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" | "webmanifest" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_once_and_only_if_they_are_text() {
        assert_eq!(decoded("/a%20b%2fc").as_deref(), Some("/a b/c"));
        assert_eq!(decoded("/%252e").as_deref(), Some("/%2e"));
        for bad in ["/%", "/%4", "/%zz", "/%ff"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_replaced_folder_is_served_after_it_was_opened_again() {
        let dir = tempfile::tempdir().expect("folder");
        let (root, old) = (dir.path().join("ui"), dir.path().join("old"));
        let make = |text: &str| {
            std::fs::create_dir(&root).expect("a folder");
            std::fs::write(root.join(START_PAGE), text).expect("file");
        };
        let served = |ui: &UiDir| open(&ui.folder(), START_PAGE).expect("a file").bytes;
        make("1");
        let ui = UiDir::open(&root).expect("a folder");
        let clone = ui.clone();
        std::fs::rename(&root, &old).expect("renamed");
        assert!(ui.open_again().is_err(), "there is none");
        make("2");
        assert_eq!(served(&clone), b"1");
        ui.replace(ui.open_again().expect("a folder"));
        assert_eq!(served(&clone), b"2");
    }

    #[test]
    fn nothing_outside_of_the_folder_is_served() {
        let dir = tempfile::tempdir().expect("folder");
        let root = dir.path().join("ui");
        std::fs::create_dir_all(root.join("assets")).expect("folders");
        std::fs::write(root.join("assets/app.js"), "1").expect("file");
        std::fs::write(dir.path().join("secret"), "2").expect("file");
        std::os::unix::fs::symlink("../secret", root.join("link")).expect("link");
        std::os::unix::fs::symlink("assets/app.js", root.join("inside")).expect("link");
        let folder = UiDir::open(&root).expect("a folder").folder();
        assert_eq!(open(&folder, "assets/app.js").expect("a file").kind, "text/javascript; charset=utf-8");
        assert_eq!(open(&folder, "inside").expect("a file").bytes, b"1");
        for bad in
            ["../secret", "assets/../../secret", "link", "assets", "", "/etc/passwd", "a\0b", "nothing"]
        {
            assert!(open(&folder, bad).is_none(), "{bad}");
        }
    }
}

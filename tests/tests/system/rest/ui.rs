//! The files of a web UI.

use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::http::Http;
use vm_system_tests::place::{TestDir, User};

#[test]
fn a_ui_is_served_with_its_routes_and_nothing_else_of_the_disk() {
    let place = TestDir::new(User::AsStarted);
    let folder = place.path("ui");
    std::fs::create_dir_all(folder.join("assets/deep")).expect("folders");
    std::fs::write(folder.join("index.html"), "<h1>start</h1>").expect("file");
    std::fs::write(folder.join("assets/app.js"), "run()").expect("file");
    std::fs::write(folder.join("assets/app.css"), "a{}").expect("file");
    std::fs::write(folder.join("favicon.ico"), [0, 1, 2]).expect("file");
    std::fs::write(place.path("secret"), "outside").expect("file");
    std::os::unix::fs::symlink("../../secret", folder.join("assets/link.js")).expect("link");
    let mut arguments = vec!["--ui-dir".to_owned(), folder.to_string_lossy().into_owned()];
    arguments.extend(["--listen".to_owned(), "127.0.0.1:0".to_owned()]);
    let daemon = Daemon::start_with(place, &DaemonOptions { arguments, ..DaemonOptions::default() });
    let mut http = Http::tcp(daemon.addresses()[0]);
    let page = &[("accept", "text/html,*/*")];
    for (path, kind, body) in [
        ("/", "text/html; charset=utf-8", "<h1>start</h1>"),
        ("/index.html", "text/html; charset=utf-8", "<h1>start</h1>"),
        ("/assets/app.js", "text/javascript; charset=utf-8", "run()"),
        ("/assets/app.css", "text/css; charset=utf-8", "a{}"),
        ("/favicon.ico", "image/x-icon", "\0\u{1}\u{2}"),
        ("/sessions/42?tab=events", "text/html; charset=utf-8", "<h1>start</h1>"),
    ] {
        let response = http.request("GET", path, page, None);
        assert_eq!((response.status, response.field("content-type")), (200, Some(kind)), "{path}");
        assert_eq!(response.text(), body, "{path}");
        assert_eq!(response.field("x-content-type-options"), Some("nosniff"));
        let tag = response.field("etag").expect("a tag").to_owned();
        let again = http.request("GET", path, &[page[0], ("if-none-match", &tag)], None);
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        assert_eq!(http.request("HEAD", path, page, None).status, 200, "{path}");
    }
    for path in [
        "/assets/nothing.js",
        "/assets/link.js",
        "/assets",
        "/assets/",
        "/assets/deep",
        "/assets/../../secret",
        "/assets/%2e%2e/%2e%2e/secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/secret%00.html",
        "/%ff",
    ] {
        // The request accepts no page, so the start page is not sent instead.
        let response = http.request("GET", path, &[("accept", "*/*")], None);
        assert_eq!(
            (response.status, response.code().as_str()),
            (404, "NOT_FOUND"),
            "{path}: {}",
            response.text()
        );
    }
    assert_eq!(http.request("POST", "/", &[], Some("{}")).code(), "METHOD_NOT_ALLOWED");
    // Paths of the API have no pages.
    assert_eq!(http.request("GET", "/api/v1/nothing", page, None).code(), "NOT_FOUND");
    assert_eq!(http.request("GET", "/api/other", page, None).code(), "NOT_FOUND");
    assert_eq!(http.get("/api/v1/health").status, 200);
    daemon.stop();
}

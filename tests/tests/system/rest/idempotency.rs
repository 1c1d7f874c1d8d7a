//! Requests that are repeated with their idempotency key, also after a kill of the daemon.

use super::people;
use serde_json::json;
use vm_system_tests::daemon::{Daemon, DaemonOptions};
use vm_system_tests::observe;
use vm_system_tests::place::User;

const TEMPLATES: &str = "/api/v1/templates";

#[test]
fn first_response_is_repeated_after_the_daemon_was_killed_and_keys_belong_to_their_owner() {
    let daemon = Daemon::start(User::AsStarted);
    let body = json!({ "name": "once" }).to_string();
    let key = [("idempotency-key", "the key")];
    let first = daemon.http().request("POST", TEMPLATES, &key, Some(&body));
    assert_eq!(first.status, 201, "{}", first.text());
    let (place, family) = daemon.kill();
    people::write_book(&place, &people::book(&["alice"]));
    let tokens = place.path("tokens.toml").to_string_lossy().into_owned();
    let arguments = vec!["--tokens".to_owned(), tokens];
    let daemon = Daemon::start_with(place, &DaemonOptions { arguments, ..DaemonOptions::default() });
    observe::all_end(&family);
    let again = daemon.http().request("POST", TEMPLATES, &key, Some(&body));
    assert_eq!((again.status, again.json()), (201, first.json()));
    let alice = daemon.http().bearer(people::ALICE).request("POST", TEMPLATES, &key, Some(&body));
    assert_eq!(alice.status, 201);
    assert_ne!(alice.json()["id"], first.json()["id"]);
    let code =
        |key: &str| daemon.http().request("POST", TEMPLATES, &[("idempotency-key", key)], Some(&body)).code();
    assert_eq!(code(&"x".repeat(300)), "VALIDATION_ERROR");
    assert_eq!(code("\u{e9}"), "CONFLICT", "another key: the template is there already");
    let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
    assert_eq!(daemon.http().request("POST", TEMPLATES, &twice, Some(&body)).code(), "VALIDATION_ERROR");
    daemon.stop();
}

//! Refusals before anything runs: effects, and inputs whose record lacks something.

use super::{GivenInput, assert_same, new_session, request, restore};
use serde_json::{Value, json};
use vm_system_protocol::control::{ErrorCode, ExecStart, SessionRestore};
use vm_system_protocol::json::JsonText;
use vm_system_protocol::model::{ExecutionKind, ExecutionStatus, Session, Settings};
use vm_system_tests::as_both;
use vm_system_tests::client::Client;
use vm_system_tests::daemon::Daemon;
use vm_system_tests::place::User;

as_both!(
    effects_need_a_request,
    what_the_record_lacks_is_requested_by_name,
    a_name_belongs_to_one_live_session
);

fn count(client: &mut Client) -> usize {
    let filter = vm_system_protocol::control::SessionList::default();
    let sessions = client.op(filter).expect("a list");
    sessions.len()
}

fn run(client: &mut Client, new: ExecStart) {
    let state = client.op(new).expect("it ran");
    assert_eq!(state.execution().status, ExecutionStatus::Ok, "{state:?}");
}

fn listed(details: Option<&JsonText>) -> Value {
    details.and_then(JsonText::to_value).map(|details| details["inputs"].clone()).unwrap_or_default()
}

mod cases {
    use super::*;

    pub(super) fn effects_need_a_request(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = new_session(&mut client, &daemon, Settings::default(), &["fs", "database"]);
        client.preview_of(&session, "var fs = require('fs'); fs.writeFileSync('a.txt', 'x'); 1");
        client.preview_of(&session, "fs.readFileSync('a.txt', 'utf8')");
        client.preview_of(&session, "fs.appendFileSync('a.txt', 'y'); 2");
        let query =
            "const db = require('database').open('d'); db.exec('CREATE TABLE IF NOT EXISTS t (x)'); 3";
        let used_database = client.eval(&session, query).expect("it ran").status == ExecutionStatus::Ok;
        client.close(&session);
        let file = daemon.place.worktree().join("a.txt");
        let before = count(&mut client);
        let refused = restore(&mut client, request(&session)).expect_err("effects");
        assert_eq!(refused.code, ErrorCode::Conflict, "{refused:?}");
        assert!(refused.message.contains("input 1 (files), input 3 (files)"), "{refused:?}");
        assert!(refused.hint.as_deref().is_some_and(|hint| hint.contains("--repeat-effects")), "{refused:?}");
        let inputs = listed(refused.details.as_ref());
        assert_eq!(inputs[0]["effects"], json!(["files"]), "{inputs}");
        if used_database {
            assert_eq!(inputs[2]["effects"], json!(["database"]), "{inputs}");
        }
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "xy", "nothing ran");
        assert_eq!(count(&mut client), before, "no session was created");
        std::fs::write(&file, "changed").expect("a file");
        let restored = restore(&mut client, SessionRestore { repeat_effects: true, ..request(&session) });
        assert_same(&restored.expect("restored"), if used_database { 4 } else { 3 });
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "xy");
        daemon.stop();
    }

    pub(super) fn what_the_record_lacks_is_requested_by_name(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let session = new_session(&mut client, &daemon, Settings::default(), &[]);
        client.preview_of(&session, "1");
        let new = |source: Option<&str>| ExecStart {
            path: Some("sent.js".to_owned()),
            input: source.map(str::to_owned),
            ..ExecStart::new(session.id.to_string(), ExecutionKind::RunFile)
        };
        let text =
            "globalThis.got = [args.deep.secret, args.plain, process.env.MY_SECRET, process.argv[2]].join()";
        daemon.place.write("sent.js", text);
        run(
            &mut client,
            ExecStart {
                args: JsonText::from_value(&json!({ "plain": "p", "deep": { "secret": "s" } })),
                env: vec![("MY_SECRET".to_owned(), "e".to_owned()), ("A".to_owned(), "b".to_owned())],
                argv: vec!["-v".to_owned()],
                ..new(None)
            },
        );
        run(&mut client, new(Some("globalThis.sent = 'text'")));
        client.close(&session);
        let refused = restore(&mut client, request(&session)).expect_err("the record lacks something");
        assert_eq!(refused.code, ErrorCode::ValidationError, "{refused:?}");
        let inputs = listed(refused.details.as_ref());
        assert_eq!(inputs[0]["input"], 2, "{inputs}");
        assert_eq!(inputs[0]["needs"], json!(["args.deep.secret", "env.MY_SECRET", "argv"]), "{inputs}");
        assert_eq!((&inputs[1]["input"], &inputs[1]["needs"]), (&json!(3), &json!(["source"])));
        let give = |given: Value| SessionRestore {
            inputs: GivenInput::list(given).expect("a list"),
            ..request(&session)
        };
        let args = json!({ "deep": { "secret": "s" } });
        let part = give(json!([{ "input": 2, "args": args, "argv": ["-v"] }]));
        let refused = restore(&mut client, part).expect_err("something is missing");
        assert_eq!(listed(refused.details.as_ref())[0]["needs"], json!(["env.MY_SECRET"]));
        let none = restore(&mut client, give(json!([{ "input": 9 }]))).expect_err("no such input");
        assert!(none.message.contains("there is no input 9"), "{none:?}");
        let all = give(json!([
            { "input": 2, "args": args, "env": { "MY_SECRET": "e" }, "argv": ["-v"] },
            { "input": 3, "source": "globalThis.sent = 'text'" },
        ]));
        let restored = restore(&mut client, all).expect("restored");
        assert_same(&restored, 3);
        assert_eq!(preview(&mut client, &restored.session, "`${got} ${sent}`"), "'s,p,e,-v text'");
        // The new record has no secrets, either.
        client.close(&restored.session);
        let refused =
            restore(&mut client, request(&restored.session)).expect_err("the record lacks something");
        assert_eq!(listed(refused.details.as_ref())[0]["needs"], inputs[0]["needs"]);
        daemon.stop();
    }

    pub(super) fn a_name_belongs_to_one_live_session(user: User) {
        let daemon = Daemon::start(user);
        let mut client = daemon.client();
        let template = client.template(Settings::default(), &[]);
        let named = |client: &mut Client| client.session_named(&template, &daemon.place.worktree(), "prod");
        let first = named(&mut client);
        client.preview_of(&first, "var x = 1");
        client.close(&first);
        let second = named(&mut client);
        let refused = restore(&mut client, request(&first)).expect_err("its name is in use");
        assert_eq!(refused.code, ErrorCode::Conflict, "{refused:?}");
        assert!(refused.message.contains("\"prod\" is the name of another session"), "{refused:?}");
        client.close(&second);
        let restored = restore(&mut client, request(&first)).expect("restored");
        assert_eq!(restored.session.name.as_deref(), Some("prod"));
        let again = restore(&mut client, request(&first)).expect_err("the restored session has the name");
        assert_eq!(again.code, ErrorCode::Conflict, "{again:?}");
        daemon.stop();
    }

    fn preview(client: &mut Client, session: &Session, code: &str) -> String {
        client.preview_of(session, code)
    }
}

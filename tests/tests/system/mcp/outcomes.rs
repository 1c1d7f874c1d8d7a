//! Texts of results: a host may show an agent nothing but these. Each says what the execution has come to, or what to do next.

use super::place;
use serde_json::json;
use vm_system_tests::mcp::{Agent, text, texts};

#[test]
fn texts_have_the_next_task_the_result_and_the_error_with_its_stack() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let source = "
        function check(n) {
            if (n > 5) throw new RangeError('too many');
            return { n };
        }
        function main() {
            console.log('begin');
            const n = CC('how many?', { schema: { type: 'integer' } });
            CC('sure?');
            return check(n);
        }";
    agent.text("load", json!({ "programId": "p", "source": source }));
    for (answer, fails) in [("3", false), ("7", true)] {
        let start = agent.tool("start", json!({ "programId": "p", "executionId": "e" }));
        let shown = texts(&start);
        assert_eq!(shown[0], "Execution started: e (set as current)");
        let id = start["structuredContent"]["task"]["id"].as_str().expect("an id");
        for part in [id, "how many?", "The answer is JSON that matches this schema: {\"type\":\"integer\"}"] {
            assert!(shown[1].contains(part), "{part}: {shown:?}");
        }
        let task = agent.tool("getTask", json!({ "after": 0, "stack": true }));
        let shown = texts(&task);
        assert_eq!(shown[0], "how many?");
        assert!(shown[1].ends_with("{\"type\":\"integer\"}"), "{shown:?}");
        assert!(shown[2].starts_with("Output:\nbegin\n"), "{shown:?}");
        assert!(shown[3].starts_with("Stack:\nmain 8:"), "{shown:?}");
        let data = &task["structuredContent"];
        assert_eq!((&data["output"], &data["moreOutput"]), (&json!(["begin"]), &json!(false)));
        let rest = agent.tool("getTask", json!({ "after": data["next"] }));
        assert_eq!(rest["structuredContent"]["output"], json!([]));

        let resumed = agent.tool("submitTask", json!({ "result": answer }));
        let shown = texts(&resumed);
        assert_eq!(shown[0], "Execution resumed");
        assert!(shown[1].ends_with("sure?"), "{shown:?}");
        let end = agent.tool("submitTask", json!({ "result": "yes" }));
        let shown = texts(&end);
        if fails {
            assert_eq!(end["isError"], true, "{end}");
            assert!(shown[0].starts_with("Error: RangeError: too many\n    at check ("), "{shown:?}");
            assert!(shown[0].contains("at main ("), "{shown:?}");
            assert_eq!(shown[1], "Execution resumed");
            assert_eq!(agent.fails("getTask", json!({})), shown[0]);
        } else {
            assert_ne!(end["isError"], true);
            assert_eq!(shown, ["Execution resumed", "Execution completed with result: {\"n\":3}"]);
        }
    }
    agent.text("load", json!({ "programId": "bad", "source": "null.x;" }));
    let failed = agent.tool("start", json!({ "programId": "bad", "executionId": "bad" }));
    assert_eq!(failed["isError"], true);
    assert!(texts(&failed)[0].starts_with("Error: TypeError: "), "{failed}");
    assert_eq!(failed["structuredContent"]["state"], "ERROR");
}

#[test]
fn errors_say_what_to_do_next() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let source = "function main() { CC('a?'); CC('b?'); return 1; }";
    agent.text("load", json!({ "programId": "p", "source": source }));
    for (tool, arguments, hints) in [
        ("start", json!({ "programId": "none", "executionId": "e" }), "list_programs"),
        ("getTask", json!({ "executionId": "none" }), "list_executions"),
        ("session_eval", json!({ "sessionId": "none", "code": "1" }), "session_create"),
    ] {
        let why = agent.fails(tool, arguments);
        assert!(why.contains(hints), "{tool}: {why}");
    }
    agent.text("start", json!({ "programId": "p", "executionId": "e" }));
    let why = agent.fails("rewind", json!({ "checkpoint": 9999 }));
    assert!(why.contains("there is no checkpoint 9999: only 1 is stored"), "{why}");
    agent.text("submitTask", json!({ "result": "x" }));
    agent.text("submitTask", json!({ "result": "x" }));
    let why = agent.fails("submitTask", json!({ "result": "x" }));
    assert!(why.contains("getTask shows"), "{why}");
    let both = agent.fails("load", json!({ "programId": "p" }));
    assert!(both.contains("pass `source` or `filePath`"), "{both}");
}

#[test]
fn answers_may_be_fenced_or_plain_texts_where_the_schema_names_strings() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let source = "function main() {
        return [
            CC('1', { schema: { type: 'object', required: ['a'] } }).a,
            CC('2', { schema: { enum: ['yes', 'no'] } }),
            CC('3', { schema: { type: ['string', 'null'] } }),
            CC('4', { schema: { anyOf: [{ const: 'x' }, { type: 'number' }] } }),
            CC('5', { schema: { required: ['a'] } }).a,
            CC('6'),
        ];
    }";
    agent.text("load", json!({ "programId": "p", "source": source }));
    agent.text("start", json!({ "programId": "p", "executionId": "e" }));
    for (wrong, right) in [
        (Some("```json\n{}\n```"), "```json\n{ \"a\": 1 }\n```"),
        (Some("perhaps"), "yes"),
        (None, "plain"),
        (Some("y"), "x"),
        (Some("{ a: 1 }"), "\n```\n{ \"a\": 2 }\n```\n"),
        (None, "```json\n1\n```"),
    ] {
        if let Some(wrong) = wrong {
            agent.fails("submitTask", json!({ "result": wrong }));
        }
        agent.text("submitTask", json!({ "result": right }));
    }
    let done = agent.data("getTask", json!({}));
    assert_eq!(done["result"], json!([1, "yes", "plain", "x", 2, "```json\n1\n```"]), "{done}");
}

#[test]
fn a_state_of_thousands_of_calls_says_that_there_are_more() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let source =
        "function down(n) { return n ? down(n - 1) : CC('deep?'); }\nfunction main() { return down(5000); }";
    agent.text("load", json!({ "programId": "p", "source": source }));
    agent.text("start", json!({ "programId": "p", "executionId": "e" }));
    let state = agent.data("get_state", json!({}));
    assert_eq!(state["frames"].as_array().map(Vec::len), Some(200));
    assert_eq!(state["moreFrames"], 5003 - 200, "{}", state["moreFrames"]);
    let task = agent.tool("getTask", json!({ "stack": true }));
    assert!(texts(&task)[1].ends_with("… 4803 more calls, further out"), "{task}");
}

#[test]
fn branches_name_the_execution_with_the_earlier_output() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let source = "function main() { console.log('early'); CC('a?'); console.log('late'); return CC('b?'); }";
    agent.text("load", json!({ "programId": "p", "source": source }));
    let old = agent.data("start", json!({ "programId": "p", "executionId": "e" }))["id"].clone();
    agent.text("submitTask", json!({ "result": "x" }));
    let forked = agent.tool("fork", json!({ "newExecutionId": "f" }));
    let rewound = agent.tool("rewind", json!({ "checkpoint": 1 }));
    for branch in [forked, rewound] {
        let shown = texts(&branch).join("\n");
        assert!(
            shown.contains(&format!("getTask executionId={} after=0", old.as_str().expect("an id"))),
            "{shown}"
        );
        let id = branch["structuredContent"]["id"].clone();
        let output = agent.tool("get_output", json!({ "executionId": id }));
        assert!(text(&output).contains(old.as_str().expect("an id")), "{output}");
    }
}

#[test]
fn tasks_of_sessions_are_listed_and_sessions_have_their_names() {
    let home = place();
    let mut agent = Agent::start(&home.place, &["--worktree", &home.place.worktree().to_string_lossy()]);
    let session = agent.data("session_create", json!({ "name": "s" }));
    assert_eq!(session["name"], "s");
    let again = agent.tool("session_create", json!({ "name": "s" }));
    assert_eq!(again["_meta"]["vm-system/error"]["code"], "CONFLICT", "{again}");
    let pending = agent.data("session_eval", json!({ "sessionId": "s", "code": "CC('sess?')" }));
    agent.text("load", json!({ "programId": "p", "source": "function main() { return CC('prog?'); }" }));
    agent.text("start", json!({ "programId": "p", "executionId": "e" }));
    for arguments in [json!({}), json!({ "status": "waiting" })] {
        let listed = agent.data("list_executions", arguments);
        let expected = json!([{
            "executionId": pending["executionId"], "sessionId": session["sessionId"], "prompt": "sess?",
        }]);
        assert_eq!(listed["sessionTasks"], expected, "{listed}");
        assert_eq!(listed["executions"].as_array().map(Vec::len), Some(1), "{listed}");
    }
    let ended = agent.data("list_executions", json!({ "status": "ok" }));
    assert_eq!(ended.get("sessionTasks"), None, "{ended}");
    // A wrong argument gets an error in plain words.
    let wrong = agent.tool("session_eval", json!({ "sessionId": 1, "code": "1" }));
    assert!(text(&wrong).contains("`sessionId` must be a text, not 1"), "{wrong}");
    agent.close();
}

#[test]
fn an_exception_of_a_session_has_its_place() {
    let home = place();
    let mut agent = Agent::start(&home.place, &["--worktree", &home.place.worktree().to_string_lossy()]);
    agent.data("session_create", json!({ "name": "s" }));
    let failed = agent.tool("session_eval", json!({ "sessionId": "s", "code": "\nnull.x" }));
    assert!(text(&failed).contains("Error: TypeError: ") && text(&failed).contains("at repl:2:"), "{failed}");
    let failed = agent.tool("session_eval", json!({ "sessionId": "s", "code": "throw new Error('mine')" }));
    assert!(text(&failed).starts_with("Error: mine\n"), "{failed}");
    agent.close();
}

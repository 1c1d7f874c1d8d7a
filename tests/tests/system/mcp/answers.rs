//! Results of tools: they are about the named execution or program, have its name, and are cut to the size of a response, with
//! a reference to the rest.

use super::place;
use serde_json::json;
use vm_system_tests::mcp::{Agent, text};

#[test]
fn a_token_deletes_what_it_was_issued_for_and_not_what_has_the_name_now() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let program = json!({ "programId": "p", "source": "function main() { return CC('?'); }" });
    let start = json!({ "programId": "p", "executionId": "e" });
    agent.text("load", program.clone());
    let old = agent.data("start", start.clone())["id"].clone();
    let of_old = agent.data("delete_execution", json!({ "executionId": "e" }))["token"].clone();
    agent.text("submitTask", json!({ "result": "x" }));
    let new = agent.data("start", start.clone())["id"].clone();
    let refused = agent.tool("delete_execution", json!({ "executionId": "e", "confirmToken": of_old }));
    assert_eq!(refused["_meta"]["vm-system/error"]["code"], "CONFLICT", "{refused}");
    assert!(text(&refused).contains("Nothing was deleted"), "{refused}");
    // The same after a rewind, which moves the name to another execution.
    let of_new = agent.data("delete_execution", json!({ "executionId": "e" }))["token"].clone();
    let state = agent.data("get_state", json!({}));
    let first =
        state["checkpoints"].as_array().and_then(|all| all.last()).expect("one")["checkpoint"].clone();
    let branch = agent.data("rewind", json!({ "checkpoint": first }))["id"].clone();
    agent.fails("delete_execution", json!({ "executionId": "e", "confirmToken": of_new }));
    assert_eq!(agent.data("getTask", json!({ "executionId": "e" }))["id"], branch, "it waits as before");
    // Each token still deletes the execution that it was issued for.
    for (id, token) in [(&old, of_old), (&new, of_new)] {
        agent.text("delete_execution", json!({ "executionId": id, "confirmToken": token }));
    }

    let of_old = agent.data("delete_program", json!({ "programId": "p" }))["token"].clone();
    let again = agent.data("delete_program", json!({ "programId": "p" }))["token"].clone();
    agent.text("delete_program", json!({ "programId": "p", "confirmToken": again }));
    agent.text("load", program);
    let refused = agent.fails("delete_program", json!({ "programId": "p", "confirmToken": of_old }));
    assert!(refused.contains("Nothing was deleted"), "{refused}");
    assert_eq!(agent.data("list_programs", json!({}))["programs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn list_has_the_prompt_of_each_waiting_execution() {
    const WAITING: usize = 203;
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    agent.text("load", json!({ "programId": "p", "source": "function main() { return CC(args[0]); }" }));
    for n in 0..WAITING {
        let prompt = long_prompt(n);
        agent.text("start", json!({ "programId": "p", "executionId": format!("e{n}"), "args": [prompt] }));
    }
    let listed = agent.data("list_executions", json!({}));
    let listed = listed["executions"].as_array().expect("a list");
    assert_eq!(listed.len(), 200, "the newest");
    for (execution, n) in listed.iter().zip((0..WAITING).rev()) {
        let prompt = execution["summary"]["currentPrompt"].as_str().unwrap_or_default();
        assert!(
            execution["executionId"] == format!("e{n}") && prompt.starts_with(&format!("{n} é")),
            "{execution}"
        );
        let (shown, size) = prompt.split_once('…').expect("a cut prompt");
        assert!((997..=1_000).contains(&shown.len()), "{}", shown.len());
        assert_eq!(size, format!(" ({} bytes)", long_prompt(n).len()));
    }
    let info = agent.data("server_info", json!({}));
    assert_eq!((&info["programs"], &info["executions"]), (&json!(1), &json!(WAITING)));
}

fn long_prompt(n: usize) -> String {
    format!("{n} é").repeat(400)
}

#[test]
fn a_prompt_that_is_cut_says_its_whole_size_once() {
    const WHOLE: usize = 400_000;
    const SHOWN: usize = 128 * 1024;
    let note = format!("\n[truncated: {SHOWN} of {WHOLE} bytes are shown]");
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let source =
        format!("function main() {{ return CC('x'.repeat({WHOLE}), {{ schema: {{ type: 'number' }} }}) }}");
    agent.text("load", json!({ "programId": "p", "source": source }));
    let started = agent.tool("start", json!({ "programId": "p", "executionId": "e" }));
    let read = agent.tool("getTask", json!({ "executionId": "e" }));
    for result in [&started, &read] {
        let texts: Vec<_> =
            result["content"].as_array().expect("texts").iter().map(|text| &text["text"]).collect();
        let whole = texts.iter().map(|text| text.as_str().unwrap_or_default()).collect::<Vec<_>>().join("\n");
        assert_eq!(whole.matches("[truncated").count(), 1, "{}", whole.len());
        assert!(whole.contains(&note) && whole.contains("this schema: {"), "{}", whole.len());
    }
    let task = &read["structuredContent"]["task"];
    assert_eq!((&task["truncated"], &task["fullBytes"]), (&json!(true), &json!(WHOLE)));
    assert_eq!(task["prompt"].as_str().map(str::len), Some(SHOWN));

    let session = agent.data("session_create", json!({ "worktree": home.place.worktree() }));
    let code = format!("CC('x'.repeat({WHOLE}))");
    let paused = agent.tool("session_eval", json!({ "sessionId": session["sessionId"], "code": code }));
    assert!(text(&paused).ends_with(&note), "{:.200}", text(&paused));
    let listed = agent.data("list_executions", json!({}));
    let prompt = listed["sessionTasks"][0]["prompt"].as_str().unwrap_or_default();
    assert!(prompt.ends_with(&format!("x… ({WHOLE} bytes)")), "{}", prompt.len());
}

#[test]
fn large_output_is_cut_with_a_reference_to_the_rest() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let none = agent.fails("session_create", json!({}));
    assert!(none.contains("pass `worktree`") && none.contains("--worktree DIR"), "{none}");
    let session = agent.data("session_create", json!({ "worktree": home.place.worktree() }));
    let code = "for (let i = 0; i < 5_000; i++) console.log('line', i)";
    let result = agent.tool("session_eval", json!({ "sessionId": session["sessionId"], "code": code }));
    assert_eq!(result["isError"], true, "{result}");
    let (shown, data) = (text(&result), &result["structuredContent"]);
    let id = data["executionId"].as_str().expect("an id");
    assert!(shown.starts_with("line 0\nline 1\n"), "{shown}");
    let rest = format!("the rest is after event {} of the execution {id}, for get_events", data["next"]);
    assert!(shown.contains(&rest), "{shown}");
    assert_eq!(data["error"]["code"], "OUTPUT_LIMIT_EXCEEDED", "{data}");
    let rest = agent.data("get_events", json!({ "executionId": id, "after": data["next"] }));
    assert!(rest["events"].is_array(), "{rest}");
    let evaluated = |agent: &mut Agent, code: &str| {
        agent.tool("session_eval", json!({ "sessionId": session["sessionId"], "code": code }))
    };
    for (code, bytes) in [("'x'.repeat(120_000)", 120_002), ("'x'.repeat(600_000)", 600_002)] {
        let value = evaluated(&mut agent, code);
        let data = &value["structuredContent"];
        assert_eq!((&data["valueTruncated"], &data["valueBytes"]), (&json!(true), &json!(bytes)), "{code}");
        assert!(text(&value).contains(&format!("has {bytes} bytes of JSON")), "{code}");
    }
    let many = evaluated(&mut agent, "Array.from({ length: 200 }, (_, n) => n)");
    assert!(text(&many).ends_with(",198,199]") && many["structuredContent"]["valueTruncated"].is_null());
    let source = "function main() { return 'x'.repeat(300_000) }";
    agent.text("load", json!({ "programId": "long", "source": source }));
    let ended = agent.tool("start", json!({ "programId": "long", "executionId": "l" }));
    let texts = ended["content"].to_string();
    assert!(texts.contains("[truncated: 131072 of 300002 bytes are shown; "), "{}", texts.len());
    assert_eq!(ended["structuredContent"]["fullBytes"], 300_002);
    let code = "throw new Error('\u{e9}'.repeat(300_000))";
    let thrown = agent.tool("session_eval", json!({ "sessionId": session["sessionId"], "code": code }));
    let error = &thrown["structuredContent"]["error"];
    assert_eq!((&error["truncated"], &error["fullBytes"]), (&json!(true), &json!(600_007)));
    let short = json!({ "sessionId": session["sessionId"], "code": "throw new Error('short')" });
    let error = &agent.tool("session_eval", short)["structuredContent"]["error"];
    assert_eq!(error, &json!({ "code": "EXCEPTION", "message": "Error: short" }));
}

#[test]
fn executions_are_shown_by_name_for_every_kind_of_reference() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    agent.text("load", json!({ "programId": "p", "source": "function main() { return CC('?'); }" }));
    let id = agent.data("start", json!({ "programId": "p", "executionId": "e" }))["id"].clone();
    for tool in ["getTask", "get_output", "get_state", "get_execution", "status"] {
        for reference in [json!({}), json!({ "executionId": "e" }), json!({ "executionId": id })] {
            let data = agent.data(tool, reference.clone());
            assert_eq!(data["executionId"], "e", "{tool} {reference}: {data}");
        }
    }
}

#[test]
fn a_task_without_a_prompt_is_an_error_of_the_program() {
    let home = place();
    let mut agent = Agent::start(&home.place, &[]);
    let source = "function main() { let n = 0; try { CC(...[]); } catch (e) { n = e.name + ': ' + e.message; } return n; }";
    agent.text("load", json!({ "programId": "p", "source": source }));
    let done = agent.data("start", json!({ "programId": "p", "executionId": "e" }));
    assert_eq!(done["result"], "TypeError: CC needs a prompt as its first argument", "{done}");
    let session = agent.data("session_create", json!({ "worktree": home.place.worktree() }));
    let value = agent.data(
        "session_eval",
        json!({ "sessionId": session["sessionId"], "code": "try { CC(); } catch (e) { String(e) }" }),
    );
    assert_eq!(value["result"], "TypeError: CC needs a prompt as its first argument", "{value}");
    let code = "[{}, [], null, () => 1, Symbol()].map(p => { try { CC(p); } catch (e) { return String(e) } }).join()";
    let value = agent.data("session_eval", json!({ "sessionId": session["sessionId"], "code": code }));
    let expected = ["an object", "an array", "null", "a function", "a symbol"]
        .map(|found| format!("TypeError: The first argument of CC must be a string, not {found}"));
    assert_eq!(value["result"], expected.join(","), "{value}");
}

#[test]
fn an_answer_without_an_id_is_for_the_task_that_the_client_has_read_wherever_that_was() {
    let home = place();
    let mut other = Agent::start(&home.place, &["--client", "other"]);
    let source = "function main() { for (let n = 1; ; n++) CC('question ' + n); }";
    other.text("load", json!({ "programId": "p", "source": source }));
    let started = other.data("start", json!({ "programId": "p", "executionId": "e" }));
    let document = format!("vm://executions/{}", started["id"].as_str().expect("an id"));
    let reads: [&dyn Fn(&mut Agent); 5] = [
        &|agent| drop(agent.data("list_executions", json!({}))),
        &|agent| drop(agent.data("list_tasks", json!({}))),
        &|agent| drop(agent.data("get_events", json!({ "executionId": "e" }))),
        &|agent| drop(agent.request("resources/read", json!({ "uri": document }))),
        &|agent| drop(agent.request("resources/read", json!({ "uri": format!("{document}/events") }))),
    ];
    let pending =
        |agent: &mut Agent| agent.data("getTask", json!({ "executionId": "e" }))["task"]["id"].clone();
    for (number, read) in reads.iter().enumerate() {
        // A client that was given no other task before.
        let mut reader = Agent::start(&home.place, &["--client", &format!("reader-{number}")]);
        read(&mut reader);
        let seen = pending(&mut other);
        other.text("submitTask", json!({ "executionId": "e", "result": "x", "taskId": seen }));
        let refused = reader.tool("submitTask", json!({ "executionId": "e", "result": "late" }));
        assert_eq!(refused["_meta"]["vm-system/error"]["code"], "TASK_NOT_PENDING", "{number}: {refused}");
        let next = pending(&mut other);
        assert!(text(&refused).contains(next.as_str().expect("an id")), "{refused}");
        read(&mut reader);
        reader.text("submitTask", json!({ "executionId": "e", "result": "in time" }));
        assert_ne!(pending(&mut other), next, "{number}: it was answered");
    }
}

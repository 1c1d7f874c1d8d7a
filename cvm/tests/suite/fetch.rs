//! `fetch` of programs over a host that the test plays: what is sent, redirects, what is refused. The state is stored and restored at each
//! request.

use vm_system_cvm::{
    CompileOptions, FETCH, HostResponse, HostResult, RunOutcome, StateConfig, VmLimits, VmState, compile,
    resume_host, run,
};

/// Runs a program: its requests (arguments as JSON), what it wrote, how it ended.
fn program(source: &str, respond: impl Fn(&str) -> HostResult) -> (Vec<String>, Vec<String>, String) {
    let program = compile(source, &CompileOptions::default()).expect("it compiles");
    let mut state = VmState::new(&program, &StateConfig::default());
    let (mut requests, mut lines) = (Vec::new(), Vec::new());
    loop {
        let outcome = run(&program, &mut state, u64::MAX);
        lines.extend(state.take_output().into_iter().map(|line| line.text));
        match outcome {
            RunOutcome::Host { name, args } => {
                assert_eq!(name, FETCH);
                let stored = state.pages_since(&program, 0).pages;
                let pages = stored.iter().map(|page| (page.number, page.bytes.as_slice()));
                state = VmState::restore(&program, VmLimits::default(), pages).expect("its own pages");
                let response = respond(&args);
                requests.push(args);
                assert!(resume_host(&program, &mut state, &response));
            }
            end => return (requests, lines, format!("{end:?}")),
        }
    }
}

fn response(status: u16, headers: &[(&str, &str)], body: &[u8]) -> HostResult {
    let headers =
        headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
    HostResult::Response(Box::new(HostResponse {
        status,
        reason: "Text".to_owned(),
        headers,
        body: body.to_vec(),
    }))
}

const DEFAULTS: &str =
    r#""accept","*/*","accept-language","*","user-agent","vm-system","accept-encoding","br, gzip, deflate""#;

#[test]
fn a_request_is_a_call_of_the_host_and_its_response_an_object() {
    let source = "
        async function main() {
            const response = await fetch('http://host/a b?q#part', { method: 'post', headers: { 'X-A': 'é' }, body: 'text' });
            console.log(response.status, response.statusText, response.ok, response.url, response.redirected, response.type);
            console.log(response.headers.get('X-Test'), await response.clone().text(), await response.json());
            console.log(response);
            const empty = await fetch(new URL('http://host'), { method: 'HEAD' });
            console.log(empty.body, await empty.text(), empty.ok);
        }";
    let (requests, lines, end) = program(source, |args| {
        let status = if args.starts_with("[\"HEAD\"") { 404 } else { 200 };
        response(status, &[("x-test", "1"), ("x-test", "2")], b"[1]")
    });
    assert_eq!(
        requests,
        [
            format!(
                r#"["POST","http://host/a%20b?q",["content-type","text/plain;charset=UTF-8","x-a","é",{DEFAULTS},"content-length","4"],"dGV4dA=="]"#
            ),
            format!(r#"["HEAD","http://host/",[{DEFAULTS}],null]"#),
        ]
    );
    assert_eq!(lines[0], "200 Text true http://host/a%20b?q false basic");
    assert_eq!(lines[1], "1, 2 [1] [ 1 ]");
    assert_eq!(
        lines[2],
        "Response {\n  headers: Headers { 'x-test' => '1, 2' },\n  status: 200,\n  statusText: 'Text',\n  \
         url: 'http://host/a%20b?q',\n  redirected: false,\n  type: 'basic',\n  bodyUsed: true\n}"
    );
    assert_eq!(lines[3], "null  false");
    assert!(end.starts_with("Done"), "{end}");
}

#[test]
fn redirects_are_requests_of_their_own_and_take_no_credentials_along() {
    let source = "
        async function main() {
            const headers = { authorization: 'a', 'x-key': '{secret:KEY}', 'x-kept': '1', 'content-type': 'x/y' };
            const response = await fetch('http://one/a', { method: 'POST', headers, body: 'b' });
            console.log(response.url, response.redirected, await response.text());
            console.log((await fetch('http://one/a', { redirect: 'manual' })).status);
            await fetch('http://one/a', { redirect: 'error' }).catch((error) => console.log(error.message, error.cause.message));
            await fetch('http://one/loop').catch((error) => console.log(error.cause.message));
        }";
    let (requests, lines, end) = program(source, |args| match args.split('"').nth(3) {
        Some("http://one/a") => response(307, &[("location", "b")], b""),
        Some("http://one/b") => response(302, &[("location", "http://two/c")], b"moved"),
        Some("http://one/loop") => response(302, &[("location", "/loop")], b""),
        _ => response(200, &[], b"here"),
    });
    assert_eq!(
        lines,
        ["http://two/c true here", "307", "fetch failed unexpected redirect", "redirect count exceeded"]
    );
    assert!(requests[1].contains(r#""POST","http://one/b",["authorization","a","#), "{}", requests[1]);
    assert!(
        requests[1].contains("{secret:KEY}") && requests[1].ends_with(r#""1"],"Yg=="]"#),
        "{}",
        requests[1]
    );
    assert_eq!(requests[2], format!(r#"["GET","http://two/c",["x-kept","1",{DEFAULTS}],null]"#));
    assert_eq!(requests.len(), 3 + 1 + 1 + 21);
    assert!(end.starts_with("Done"), "{end}");
}

#[test]
fn errors_of_the_host_are_the_cause_and_what_programs_lack_is_named() {
    let source = "
        const tries = [
            () => fetch('http://host'),
            () => fetch('/relative'),
            () => fetch('ftp://host'),
            () => fetch('http://host:22'),
            () => fetch('http://host', { signal: {} }),
            () => fetch('http://host', { integrity: 'sha256-x' }),
            () => fetch('http://host', { method: 'POST', body: { a: 1 } }),
            () => new Response('x').body,
            () => new Response('x').blob(),
            () => new Response('x').formData(),
        ];
        async function main() {
            for (const one of tries) {
                try { await one(); console.log('no error'); }
                catch (error) { console.log(error.name, error.message, error.cause?.code ?? '-', error.cause?.message ?? '-'); }
            }
        }";
    let (requests, lines, _) = program(source, |_| HostResult::Failed {
        code: "ERR_NET_DENIED".to_owned(),
        message: "there is no row".to_owned(),
    });
    assert_eq!(requests.len(), 1);
    assert_eq!(
        lines,
        [
            "TypeError fetch failed ERR_NET_DENIED there is no row",
            "TypeError Failed to parse URL from /relative ERR_INVALID_URL Invalid URL",
            "TypeError fetch failed - unknown scheme",
            "TypeError fetch failed - bad port",
            "TypeError The option signal is not supported in programs: there is no AbortController; a row of kind net has timeout_ms - -",
            "TypeError The option integrity is not supported in programs - -",
            "TypeError A body of a program is a string, URLSearchParams, an ArrayBuffer or a view of one; for an object use JSON.stringify - -",
            "TypeError The property body is not supported in programs: there are no streams; use text(), json(), bytes() or arrayBuffer() - -",
            "TypeError The method blob is not supported in programs: there is no Blob; use bytes() or arrayBuffer() - -",
            "TypeError The method formData is not supported in programs: there is no FormData; use text() and URLSearchParams - -",
        ]
    );
    for name in ["new AbortController()", "new FormData()", "new Blob([])", "new ReadableStream()"] {
        let errors = compile(name, &CompileOptions::default()).expect_err("refused").to_string();
        assert!(errors.contains("is not supported"), "{errors}");
    }
}

#[test]
fn conversions_of_requests_may_suspend() {
    let source = "
        const slow = (text) => ({ toString() { return fetch('http://host/inner/' + text) && text; } });
        async function main() {
            const headers = new Headers([[slow('x-a'), slow('1')]]);
            headers.set(slow('x-b'), slow('2'));
            await fetch(slow('http://host/outer'), { method: slow('PUT'), headers, body: new Uint8Array([1, 2]) });
        }";
    let (requests, _, end) = program(source, |_| response(200, &[], b""));
    let last = requests.last().expect("requests");
    assert!(last.starts_with(r#"["PUT","http://host/outer",["x-a","1","x-b","2","#), "{last}");
    assert!(last.ends_with(r#","content-length","2"],"AQI="]"#), "{last}");
    assert!(end.starts_with("Done"), "{end}");
}

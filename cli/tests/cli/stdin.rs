//! The standard input of a script.

use crate::daemon::first_line;
use crate::environment::{Run, TestEnvironment, signal_child, wait};
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Stdio};

fn with_bytes(env: &TestEnvironment, args: &[&str], stdin: &[u8]) -> Run {
    let mut child = env.command(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    Run::from_output(&child.wait_with_output().unwrap())
}

fn waiting(env: &TestEnvironment, args: &[&str]) -> Child {
    env.command(args).stdin(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_script_reads_it_in_each_of_nodes_ways() {
    let env = TestEnvironment::new();
    for (code, printed) in [
        ("console.log(JSON.stringify(require('fs').readFileSync(0, 'utf8')))", "\"a\\nb\\n\"\n"),
        ("console.log(require('fs').readFileSync('/dev/stdin'))", "<Buffer 61 0a 62 0a>\n"),
        ("console.log(require('fs').readFileSync(0, 'utf8').split('\\n').length)", "3\n"),
        (
            "const fs = require('fs'), b = Buffer.alloc(3); console.log(fs.readSync(0, b), fs.readSync(0, b, 0, 2), b, fs.readSync(0, b))",
            "3 1 <Buffer 0a 0a 62> 0\n",
        ),
        (
            "require('fs').readFile(0, 'utf8', (error, text) => console.log(error, JSON.stringify(text)))",
            "null \"a\\nb\\n\"\n",
        ),
        ("for await (const chunk of process.stdin) console.log(chunk)", "<Buffer 61 0a 62 0a>\n"),
        (
            "process.stdin.setEncoding('utf8'); let text = ''; process.stdin.on('data', (chunk) => { text += chunk })
               .on('end', () => console.log(JSON.stringify(text))).on('close', () => console.log('closed')); 0",
            "0\n\"a\\nb\\n\"\nclosed\n",
        ),
        (
            "process.stdin.on('readable', () => { for (let c; (c = process.stdin.read(1)) !== null;) console.log(c[0]) }); 0",
            "0\n97\n10\n98\n10\n",
        ),
        ("process.stdin.pipe(process.stdout); undefined", "a\nb\n"),
        (
            "for await (const line of require('readline').createInterface({ input: process.stdin })) console.log(line)",
            "a\nb\n",
        ),
        (
            "const rl = require('readline').createInterface({ input: process.stdin, output: process.stdout });
             rl.question('name? ', (name) => { console.log(`hello ${name}`); rl.close() }); 0",
            "0\nname? hello a\n",
        ),
        (
            "await require('stream/promises').pipeline(require('fs').createReadStream('/dev/stdin', 'utf8'),
               async function* (all) { for await (const text of all) yield text.toUpperCase() },
               async (all) => { for await (const text of all) process.stdout.write(text) }); undefined",
            "A\nB\n",
        ),
        ("process.stdin.fd", "0\n"),
    ] {
        let run = with_bytes(&env, &["run", "-e", code], b"a\nb\n");
        // The output of a waiting script comes before the value of `-e`, which is known at its end.
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!((run.code, sorted(&run.stdout)), (Some(0), sorted(printed)), "{code}: {run:?}");
    }
}

#[test]
fn bytes_arrive_as_they_are_from_a_pipe_and_from_a_file() {
    let env = TestEnvironment::new();
    let bytes: Vec<u8> = (0..300_000_u32).map(|i| (i * 7 % 251) as u8).collect();
    env.file(
        "hash.js",
        "const all = []; process.stdin.on('data', (chunk) => all.push(chunk)).on('end', () => {
            const bytes = Buffer.concat(all);
            console.log(bytes.length, bytes.every((byte, i) => byte === i * 7 % 251));
        })",
    );
    env.file(
        "sync.js",
        "const bytes = require('fs').readFileSync(0); console.log(bytes.length, bytes.every((byte, i) => byte === i * 7 % 251))",
    );
    let path = env.path("bytes");
    std::fs::write(&path, &bytes).unwrap();
    for script in ["hash.js", "sync.js"] {
        assert_eq!(with_bytes(&env, &["run", script], &bytes).ok(), "300000 true\n");
        let file = File::open(&path).unwrap();
        let output = env.command(["run", script]).stdin(file).output().unwrap();
        assert_eq!(Run::from_output(&output).ok(), "300000 true\n");
    }
    let folder = File::open(env.path("")).unwrap();
    let code = "try { require('fs').readFileSync(0) } catch (e) { console.log(e.code, e.syscall, e.errno) }";
    let output = env.command(["run", "-e", code]).stdin(folder).output().unwrap();
    assert_eq!(Run::from_output(&output).ok(), "EISDIR read -21\n");
}

#[test]
fn a_long_input_needs_no_memory_and_text_is_decoded_over_chunks() {
    let env = TestEnvironment::new();
    let bytes = "ä€😀\n".repeat(4_000_000).into_bytes();
    let code = "let n = 0; for await (const chunk of process.stdin) n += chunk.length; n";
    assert_eq!(with_bytes(&env, &["run", "--memory", "16", "-e", code], &bytes).ok(), "40000000\n");
    let text = "ä€😀\n".repeat(30_000);
    let code = "process.stdin.pipe(process.stdout); undefined";
    assert_eq!(with_bytes(&env, &["run", "-e", code], text.as_bytes()).ok(), text);
}

#[test]
fn what_a_script_leaves_belongs_to_the_next_command() {
    let env = TestEnvironment::new();
    let shell =
        |script: &str| env.program("/bin/sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
    let mut child = shell("vm-system run -e 'process.stdin; 1'; cat");
    child.stdin.take().unwrap().write_all(b"rest\n").unwrap();
    assert_eq!(Run::from_output(&child.wait_with_output().unwrap()).ok(), "1\nrest\n");
    // One that has stopped to wait leaves what comes later.
    let code = "process.stdin.on(\"data\", () => {}); setTimeout(() => process.stdin.pause(), 1); 2";
    let mut child = shell(&format!("vm-system run -e '{code}'; cat"));
    assert_eq!(first_line(&mut child), "2");
    child.stdin.take().unwrap().write_all(b"late\n").unwrap();
    assert_eq!(Run::from_output(&child.wait_with_output().unwrap()).ok(), "late\n");
}

#[test]
fn timers_run_while_a_script_waits_and_lines_arrive_one_by_one() {
    let env = TestEnvironment::new();
    env.file(
        "wait.js",
        "setTimeout(() => console.log('timer'), 5);
         require('readline').createInterface({ input: process.stdin }).on('line', (line) => console.log(line))
             .on('close', () => console.log('closed'))",
    );
    let mut child = waiting(&env, &["run", "wait.js"]);
    assert_eq!(first_line(&mut child), "timer");
    let mut stdin = child.stdin.take().unwrap();
    for line in ["one", "two"] {
        writeln!(stdin, "{line}").unwrap();
        assert_eq!(first_line(&mut child), line);
    }
    drop(stdin);
    assert_eq!(Run::from_output(&child.wait_with_output().unwrap()).ok(), "closed\n");
}

/// A listener of the loopback device, and the arguments that let a script reach it.
fn server() -> (TcpListener, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// The connection of the next request, which has been read.
fn requested(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    assert!(lines.take_while(|line| !line.is_empty()).count() > 0);
    stream
}

#[test]
fn a_script_waits_for_its_input_for_responses_and_for_timers_at_the_same_time() {
    let env = TestEnvironment::new();
    let (listener, address) = server();
    env.file(
        "all.js",
        "const [url] = process.argv.slice(2);
         require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
             console.log('line', line);
             setImmediate(() => console.log('immediate'));
             setTimeout(() => console.log('timer'), 5);
         }).on('close', () => console.log('closed'));
         (async () => {
             const response = await fetch(url);
             for await (const piece of response.body) console.log('piece', new TextDecoder().decode(piece));
             console.log('end');
         })();",
    );
    let url = format!("http://{address}/");
    let mut child = waiting(&env, &["run", "--net-private", &address, "all.js", &url]);
    let mut connection = requested(&listener);
    let mut stdin = child.stdin.take().unwrap();
    let mut line = |child: &mut Child, line: &str| {
        writeln!(stdin, "{line}").unwrap();
        assert_eq!(first_line(child), format!("line {line}"));
        assert_eq!(first_line(child), "immediate");
        assert_eq!(first_line(child), "timer");
    };
    line(&mut child, "before the response");
    write!(connection, "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\none").unwrap();
    assert_eq!(first_line(&mut child), "piece one");
    line(&mut child, "between two pieces");
    write!(connection, "two").unwrap();
    assert_eq!(first_line(&mut child), "piece two");
    assert_eq!(first_line(&mut child), "end");
    line(&mut child, "after the response");
    drop(stdin);
    assert_eq!(Run::from_output(&child.wait_with_output().unwrap()).ok(), "closed\n");
}

#[test]
fn neither_an_endless_input_nor_an_endless_response_keeps_the_other_waiting() {
    let env = TestEnvironment::new();
    let (listener, address) = server();
    let url = format!("http://{address}/");
    // More than 5 ms for each piece: then the other one is always due.
    let busy = "const busy = () => { const until = Date.now() + 8; while (Date.now() < until); };";
    let code = format!(
        "{busy} process.stdin.on('data', busy); fetch('{url}').then((response) => response.text())
           .then((text) => {{ console.log(text); process.exit(0) }}); undefined"
    );
    let zeros = File::open("/dev/zero").unwrap();
    let args = ["run", "--net-private", &address, "-e", &code];
    let child = env.command(args).stdin(zeros).spawn().unwrap();
    let mut connection = requested(&listener);
    write!(connection, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone").unwrap();
    assert_eq!(Run::from_output(&child.wait_with_output().unwrap()).ok(), "done\n");

    let code = format!(
        "{busy} process.stdin.on('data', (text) => {{ console.log(String(text)); process.exit(0) }});
         fetch('{url}').then(async (response) => {{ for await (const piece of response.body) busy() }}); undefined"
    );
    let mut child = waiting(&env, &["run", "--net-private", &address, "-e", &code]);
    let mut connection = requested(&listener);
    write!(connection, "HTTP/1.1 200 OK\r\n\r\n").unwrap();
    // Until the script has ended.
    let sender = std::thread::spawn(move || while connection.write_all(&[b'a'; 4_096]).is_ok() {});
    child.stdin.take().unwrap().write_all(b"input").unwrap();
    assert_eq!(Run::from_output(&child.wait_with_output().unwrap()).ok(), "input\n");
    sender.join().unwrap();
}

#[test]
fn a_wait_ends_by_ctrl_c_and_by_the_timeout() {
    let env = TestEnvironment::new();
    for wait_for_it in
        ["require('fs').readFileSync(0)", "for await (const chunk of process.stdin) void chunk"]
    {
        let code = format!("console.log('up'); {wait_for_it}");
        let mut child = waiting(&env, &["run", "-e", &code]);
        assert_eq!(first_line(&mut child), "up");
        signal_child(&child, Signal::SIGINT);
        assert_eq!(wait(&mut child).code(), Some(130), "{wait_for_it}");
        let mut child = waiting(&env, &["run", "--timeout", "500ms", "-e", &code]);
        assert_eq!(wait(&mut child).code(), Some(124), "{wait_for_it}");
    }
}

#[test]
fn without_an_input_it_is_at_its_end() {
    let env = TestEnvironment::new();
    let code = "let n = 0; for await (const chunk of process.stdin) n += chunk.length; console.log(n, require('fs').readFileSync(0).length)";
    assert_eq!(
        Run::from_output(&env.command(["run", "-e", code]).stdin(Stdio::null()).output().unwrap()).ok(),
        "0 0\n"
    );
    assert_eq!(env.run_with_stdin(["run", "-"], code).ok(), "0 0\n");
    let _daemon = env.serve();
    let session = env.session();
    for _ in 0..2 {
        let run = with_bytes(&env, &["run", "--session", &session, "-e", code], b"not for the session");
        assert_eq!(run.ok(), "0 0\n");
    }
}

#[test]
fn what_is_written_to_stdout_keeps_its_line_ends() {
    let env = TestEnvironment::new();
    let code = "process.stdout.write('a'); process.stdout.write('b\\n\\n'); console.log('c'); process.stderr.write('e');
                process.stdout.write(Buffer.from([0xe2, 0x82])); process.stdout.write(Buffer.from([0xac]));
                process.stdout.write(''); require('fs').writeSync(1, 'd'); undefined";
    let run = env.run(["run", "-e", code]);
    assert_eq!(run, Run { code: Some(0), stdout: "ab\n\nc\n€d".into(), stderr: "e".into() });
}

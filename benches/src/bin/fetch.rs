//! The cost of `fetch` through the egress process, compared with the same requests over a connection of this process to the same
//! server on the loopback device. Starts the real binary (build it in the same profile first); never asserts.

use anyhow::Context as _;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use vm_system_benches::figure::Figure;
use vm_system_tests::place::User;
use vm_system_tests::program;

const ROUNDS: usize = 5_000;
/// Sizes of responses (bytes).
const SIZES: [usize; 2] = [100, 256 << 10];
const REQUEST_END: &[u8] = b"\r\n\r\n";

fn main() -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    for size in SIZES {
        let rounds = if size > 1_000 { ROUNDS / 10 } else { ROUNDS };
        let base = own(address, size, rounds)?;
        base.print(None);
        of_session(address, size, rounds)?.print(Some(&base));
    }
    Ok(())
}

/// Responds to each request with as many bytes as its path says.
fn serve(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    loop {
        let request = head(&mut stream).ok()?;
        let path = request.split(' ').nth(1)?;
        let size: usize = path.trim_start_matches('/').parse().ok()?;
        let mut response = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n").into_bytes();
        response.resize(response.len() + size, b'x');
        stream.write_all(&response).ok()?;
    }
}

/// Reads up to the end of a head.
fn head(stream: &mut TcpStream) -> std::io::Result<String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4_096]);
    while !bytes.ends_with(REQUEST_END) {
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => bytes.extend(&buffer[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn own(address: SocketAddr, size: usize, rounds: usize) -> anyhow::Result<Figure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 1 << 20];
    let request = format!("GET /{size} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let whole = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n").len() + size;
    let round = |_| {
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut received = 0;
        while received < whole {
            received += stream.read(&mut buffer).expect("the server responds");
        }
    };
    Ok(Figure::of_times(format!("{size} bytes, own connection"), rounds, round))
}

fn of_session(address: SocketAddr, size: usize, rounds: usize) -> anyhow::Result<Figure> {
    let script = format!(
        "const times = []; for (let i = 0; i < {rounds} + {rounds} / 10; i++) {{ const begin = performance.now(); \
         const response = await fetch('http://{address}/{size}'); await response.arrayBuffer(); \
         if (i >= {rounds} / 10) times.push((performance.now() - begin) * 1000); }} console.log(JSON.stringify(times))"
    );
    // The usual limit of requests is lower.
    let product = program::path(program::PRODUCT, User::AsStarted);
    let address = address.to_string();
    let output = Command::new(product)
        .args(["run", "--net-private", &address, "--timeout", "10m", "-e", &script])
        .output()
        .context("the product does not start")?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().next().with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let times: Vec<f64> = serde_json::from_str(line)?;
    Ok(Figure::new(format!("{size} bytes, fetch"), "us", times))
}

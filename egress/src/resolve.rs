//! Names to addresses, by the system's `hosts` and the servers of its `resolv.conf`. Both are read before the jail is entered: the
//! process opens no file afterwards. When they change, the process is outdated and another one takes its place.
//!
//! A stub resolver of its own and not that of the C library, which loads libraries that the machine configures, reads any number of
//! files and starts threads. So `nsswitch.conf` and the search list do not apply.

use crate::dns::{self, Answer, RecordType};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// Servers of `resolv.conf` that are used, as by the C library.
const SERVERS: usize = 3;
/// Time for an answer.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);
const ATTEMPTS: usize = 2;
/// Longest file that is read (bytes).
const FILE_BYTES: usize = 4 << 20;
/// Longest answer over UDP (bytes).
const DATAGRAM_BYTES: usize = 4_096;
/// Datagrams that are no answer to a query, after which its server counts as silent: a flood of them is not waited for.
const WRONG_DATAGRAMS: usize = 64;

/// Why a name has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolveError {
    /// There is no such name, or it has no address.
    NotFound,
    /// No server answered.
    Unavailable,
}

/// The system's names as of one time.
#[derive(Debug)]
pub struct Resolver {
    hosts: HashMap<String, Vec<IpAddr>>,
    servers: Vec<SocketAddr>,
    /// A server must answer within, twice.
    timeout_per_query: Duration,
    files: Vec<(PathBuf, Option<Stamp>)>,
}

/// The identity of a file's content: a changed file differs in one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    modified: (i64, i64),
    bytes: u64,
}

impl Stamp {
    fn read(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self { inode: found.ino(), modified: (found.mtime(), found.mtime_nsec()), bytes: found.size() })
    }
}

impl Resolver {
    /// Reads the files. Those that do not exist are empty.
    pub fn read(hosts: &Path, servers: &Path) -> Self {
        let files = [hosts, servers].map(|path| (path.to_owned(), Stamp::read(path)));
        let text = |path: &Path| {
            let text = std::fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&text[..text.len().min(FILE_BYTES)]).into_owned()
        };
        let (hosts, servers) = (hosts_of(&text(hosts)), servers_of(&text(servers)));
        Self { hosts, servers, timeout_per_query: QUERY_TIMEOUT, files: files.into() }
    }

    /// Names by these servers alone.
    #[cfg(test)]
    pub(crate) fn of_servers(servers: Vec<SocketAddr>) -> Self {
        Self { hosts: HashMap::new(), servers, timeout_per_query: QUERY_TIMEOUT, files: Vec::new() }
    }

    /// A server must answer within this time, twice.
    #[cfg(test)]
    pub(crate) fn with_timeout(self, timeout_per_query: Duration) -> Self {
        Self { timeout_per_query, ..self }
    }

    /// Whether the files are others than those that were read.
    pub fn is_outdated(&self) -> bool {
        self.files.iter().any(|(path, stamp)| Stamp::read(path) != *stamp)
    }

    /// The addresses of a name in lower case. A dot at its end, which says that the name is complete, changes nothing.
    pub async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let name = name.strip_suffix('.').unwrap_or(name);
        if let Some(addresses) = self.hosts.get(name) {
            return Ok(addresses.clone());
        }
        if name == "localhost" || name.ends_with(".localhost") {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        if dns::query(0, name, RecordType::A).is_none() {
            return Err(ResolveError::NotFound);
        }
        for _ in 0..ATTEMPTS {
            for server in &self.servers {
                let ask = |wanted| ask(*server, name, wanted, self.timeout_per_query);
                let (four, six) = tokio::join!(ask(RecordType::A), ask(RecordType::Aaaa));
                let is_complete = four.is_ok() && six.is_ok();
                let (four, six) = (four.unwrap_or_default(), six.unwrap_or_default());
                let addresses: Vec<IpAddr> = four.into_iter().chain(six).collect();
                if !addresses.is_empty() {
                    return Ok(addresses);
                }
                // A name whose other answer is lost may have addresses all the same.
                if is_complete {
                    return Err(ResolveError::NotFound);
                }
            }
        }
        Err(ResolveError::Unavailable)
    }
}

fn hosts_of(text: &str) -> HashMap<String, Vec<IpAddr>> {
    let mut hosts: HashMap<String, Vec<IpAddr>> = HashMap::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(address) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else { continue };
        for name in words {
            hosts.entry(name.trim_end_matches('.').to_ascii_lowercase()).or_default().push(address);
        }
    }
    hosts
}

fn servers_of(text: &str) -> Vec<SocketAddr> {
    let named = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())?
    });
    let addresses = named.filter_map(|word| word.split('%').next()?.parse::<IpAddr>().ok());
    let mut servers: Vec<_> = addresses.take(SERVERS).map(|address| SocketAddr::new(address, 53)).collect();
    if servers.is_empty() {
        servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 53));
    }
    servers
}

/// Asks one server for the records of one type.
async fn ask(
    server: SocketAddr,
    name: &str,
    wanted: RecordType,
    timeout_per_query: Duration,
) -> io::Result<Vec<IpAddr>> {
    let id = dns::random_id()?;
    let query = dns::query(id, name, wanted).ok_or(io::ErrorKind::InvalidInput)?;
    let over_udp = async {
        let any: IpAddr =
            if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        // A socket, and so a port, of its own for each query; datagrams of others are not received.
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(server).await?;
        socket.send(&query).await?;
        let mut buffer = vec![0; DATAGRAM_BYTES];
        for _ in 0..WRONG_DATAGRAMS {
            let length = socket.recv(&mut buffer).await?;
            if let Some(answer) = dns::answer(&buffer[..length], id, name, wanted) {
                return Ok::<_, io::Error>(answer);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    };
    match timeout(timeout_per_query, over_udp).await.map_err(|_| io::ErrorKind::TimedOut)?? {
        Answer::Addresses(addresses) => Ok(addresses),
        Answer::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
        Answer::Truncated => {
            let long = timeout(timeout_per_query, ask_over_tcp(server, &query)).await;
            let long = long.map_err(|_| io::ErrorKind::TimedOut)??;
            match dns::answer(&long, id, name, wanted) {
                Some(Answer::Addresses(addresses)) => Ok(addresses),
                _ => Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }
}

async fn ask_over_tcp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(query).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_of_hosts_are_found_and_changes_are_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (hosts, servers) = (folder.path().join("hosts"), folder.path().join("resolv.conf"));
        std::fs::write(&hosts, "10.0.0.7 One two # three\n::1 one\nnonsense four\n").expect("written");
        let resolver = Resolver::read(&hosts, &servers);
        let one: Vec<IpAddr> = vec![Ipv4Addr::new(10, 0, 0, 7).into(), Ipv6Addr::LOCALHOST.into()];
        assert_eq!(resolver.resolve("one").await, Ok(one));
        assert!(resolver.resolve("a.localhost").await.is_ok());
        assert!(resolver.resolve("localhost.").await.is_ok(), "a complete name");
        assert!(!resolver.is_outdated());
        std::fs::write(&servers, "nameserver 192.0.2.1\n").expect("written");
        assert!(resolver.is_outdated());
    }

    #[test]
    fn servers_are_those_of_the_file_or_this_machine() {
        let some = servers_of("search a\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\nnameserver x\n");
        assert_eq!(some, ["192.0.2.1:53".parse().unwrap(), "[fe80::1]:53".parse().unwrap()]);
        assert_eq!(servers_of(""), ["127.0.0.1:53".parse().unwrap()]);
    }
}

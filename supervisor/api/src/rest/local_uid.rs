//! The user at the other end of a loopback connection: the kernel reports which user holds the client's TCP socket.
//!
//! Looked up once per connection, when it is accepted. Without the kernel's reply there is no user.
//!
//! A later socket can have the same address and port pair: a client that sends a request and resets the connection leaves its
//! request readable, and the next client from the same port may be another user. So the server's end is looked up after the
//! client's and compared by inode: while it is connected, no other socket can have this pair.

use std::net::SocketAddr;
use std::sync::Once;
use vm_system_sandbox::socket_diagnosis::{self, HeldSocket};

/// The user who holds the socket `client`, connected to the server's socket with inode `own_inode`. Does not wait.
pub(super) fn find(client: SocketAddr, server: SocketAddr, own_inode: u64) -> Option<u32> {
    let uid = held(client, server)?.uid;
    // After the client's, see the module header. Inodes of sockets have 32 bits.
    (held(server, client)?.inode == own_inode as u32).then_some(uid)
}

/// The socket at `local` that is connected to `remote`.
fn held(local: SocketAddr, remote: SocketAddr) -> Option<HeldSocket> {
    match socket_diagnosis::find(local, remote) {
        Ok(end) => end.held(),
        Err(error) => {
            // Once: a client decides how often this is called.
            static REPORTED: Once = Once::new();
            REPORTED.call_once(|| {
                tracing::warn!(%error, "no socket diagnosis (netlink): local users need a token over TCP");
            });
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, TcpListener, TcpStream};

    #[test]
    fn the_kernel_names_the_user_of_a_connection() {
        for (listen, connect) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            let Ok(listener) = TcpListener::bind(listen) else {
                vm_system_testkit::skip("loopback", &format!("this machine has no address {listen}"));
                continue;
            };
            let ip: IpAddr = connect.parse().expect("an address");
            let port = listener.local_addr().expect("bound").port();
            let client = TcpStream::connect((ip, port)).expect("connected");
            let (server, remote) = listener.accept().expect("accepted");
            let local = server.local_addr().expect("connected");
            let us = nix::unistd::geteuid().as_raw();
            let inode = inode(&server);
            assert_eq!(find(remote, local, inode), Some(us), "{listen}");
            assert_eq!(find(remote, local, inode + 1), None, "{listen}: another connection's end");
            drop(client);
            assert_eq!(find(local, remote, inode).filter(|uid| *uid != us), None, "{listen}");
        }
        let nowhere: SocketAddr = "127.0.0.1:1".parse().expect("an address");
        assert_eq!(find(nowhere, nowhere, 1), None);
    }

    fn inode(socket: &TcpStream) -> u64 {
        nix::sys::stat::fstat(socket).expect("facts").st_ino
    }
}

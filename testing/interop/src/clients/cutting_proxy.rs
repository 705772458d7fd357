//! A proxy to the server that cuts the connection once: after the message that contains a given text.
//!
//! What the client has read until then it keeps; what comes after, on that connection, is lost. Other connections, before
//! and after, are carried whole.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The text in the message after which the connection is cut: the second step of the `progress` tool.
const WORD: &[u8] = br#""progress":2"#;

/// A listener in front of a server. Its threads end with the process.
pub(crate) struct CuttingProxy {
    address: SocketAddr,
    cut: Arc<AtomicBool>,
}

impl CuttingProxy {
    pub(crate) fn before(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let cut = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&cut);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let done = Arc::clone(&done);
                // A client whose server does not answer learns it from the end of its connection.
                thread::spawn(move || TcpStream::connect(server).and_then(|server| carry(&client, &server, &done)));
            }
        });
        Ok(Self { address, cut })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it has cut a connection.
    pub(crate) fn has_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }
}

fn carry(client: &TcpStream, server: &TcpStream, cut: &AtomicBool) -> io::Result<()> {
    let (mut requests, mut upstream) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        // However it ends, the other direction ends with it.
        let _ = io::copy(&mut requests, &mut upstream);
        let _ = upstream.shutdown(Shutdown::Write);
    });
    let ended = answers(client, server, cut);
    for stream in [client, server] {
        // Already shut is shut.
        let _ = stream.shutdown(Shutdown::Both);
    }
    ended
}

/// Carries answers until they end or the word has passed.
fn answers(mut client: &TcpStream, mut server: &TcpStream, cut: &AtomicBool) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    let mut tail = Vec::new();
    loop {
        let count = server.read(&mut buffer)?;
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(());
        }
        client.write_all(bytes)?;
        // The word may be in two pieces.
        tail.extend_from_slice(bytes);
        if tail.windows(WORD.len()).any(|window| window == WORD) && !cut.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        tail.drain(..tail.len().saturating_sub(WORD.len() - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_connection_with_the_word_is_cut_and_the_second_is_not() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = CuttingProxy::before(server.local_addr().unwrap()).unwrap();
        let answering = thread::spawn(move || {
            for client in server.incoming().take(2) {
                let mut client = client.unwrap();
                client.write_all(b"{\"prog").unwrap();
                client.write_all(b"ress\":2}").unwrap();
                // Only a client that is still there says something.
                let received = client.read(&mut [0]).unwrap_or(0);
                if received == 1 {
                    client.write_all(b" rest").unwrap();
                }
            }
        });
        let read = |more: bool| {
            let mut stream = TcpStream::connect(proxy.address()).unwrap();
            if more {
                stream.write_all(b"!").unwrap();
            }
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(read(false), "{\"progress\":2}");
        assert_eq!(read(true), "{\"progress\":2} rest");
        assert!(proxy.has_cut());
        answering.join().unwrap();
    }
}

//! Streams of `subscriptions/listen` of revision 2026-07-28, each on a connection of its own.

use super::connection::{BATCH, Connection};
use super::request::{self, RESOURCE};
use bench_kit::misbehaved;
use memchr::memmem;
use std::io;
use std::net::SocketAddr;

/// A stream that listens for changes of the resource.
pub(crate) struct Subscription {
    connection: Connection,
}

impl Subscription {
    /// Opens a stream and waits for its acknowledgement.
    pub(crate) fn open(to: SocketAddr) -> io::Result<Self> {
        let mut subscription = Self::begin(to)?;
        subscription.acknowledged()?;
        Ok(subscription)
    }

    /// Opens that many streams.
    pub(crate) fn open_all(to: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            let size = BATCH.min(count - all.len());
            let mut batch = (0..size).map(|_| Self::begin(to)).collect::<io::Result<Vec<_>>>()?;
            for subscription in &mut batch {
                subscription.acknowledged()?;
            }
            all.append(&mut batch);
        }
        Ok(all)
    }

    /// Waits for the next change of the resource.
    pub(crate) fn notified(&mut self) -> io::Result<()> {
        self.event("notifications/resources/updated")
    }

    fn begin(to: SocketAddr) -> io::Result<Self> {
        let mut connection = Connection::open(to)?;
        connection.send(&request::listen(to, 1))?;
        Ok(Self { connection })
    }

    fn acknowledged(&mut self) -> io::Result<()> {
        let Connection { stream, inbox, .. } = &mut self.connection;
        let head = loop {
            match inbox.head()? {
                Some(head) => break head,
                None => inbox.fill(stream)?,
            }
        };
        if head.status != 200 || !head.events {
            return Err(misbehaved(format!("subscriptions/listen was answered with status {}", head.status)));
        }
        self.event("notifications/subscriptions/acknowledged")
    }

    /// Waits for an event with that method, for the resource, and forgets all that came before it. A server sends an
    /// event in one chunk, so the method and the URI are never torn apart.
    fn event(&mut self, method: &str) -> io::Result<()> {
        let Connection { stream, inbox, .. } = &mut self.connection;
        loop {
            if let Some(start) = memmem::find(&inbox.bytes, method.as_bytes())
                && let Some(end) = memmem::find(&inbox.bytes[start..], b"\n\n")
            {
                // The method and the parameters stand in either order.
                let of_resource = memmem::find(&inbox.bytes[..start + end], RESOURCE.as_bytes()).is_some();
                inbox.bytes.drain(..start + end + 2);
                return if of_resource { Ok(()) } else { Err(misbehaved(format!("{method} without {RESOURCE}"))) };
            }
            inbox.fill(stream)?;
        }
    }
}

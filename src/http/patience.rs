//! How long the gateway waits for somebody who does not read: a connection whose answer cannot be written for so
//! long is closed, so that it holds nothing for ever.

use std::{
    future::Future as _,
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Sleep, sleep},
};

/// A listener whose connections wait for their readers, but not for ever.
#[derive(Debug)]
pub struct Patient {
    listener: TcpListener,
    most: Duration,
}

impl Patient {
    /// Waits so long for each write.
    #[must_use]
    pub const fn new(listener: TcpListener, most: Duration) -> Self {
        Self { listener, most }
    }
}

impl Listener for Patient {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Connection { stream, most: self.most, stuck: None }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that gives up when its peer reads nothing for too long.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    most: Duration,
    /// Runs since a write could not go on.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    fn bounded<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let most = self.most;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(most)));
        stuck.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.bounded(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.bounded(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Writes until the connection fails; how it failed.
    async fn filled(mut connection: Connection) -> io::ErrorKind {
        let bytes = vec![0; 1 << 16];
        loop {
            if let Err(error) = poll_fn(|cx| Pin::new(&mut connection).poll_write(cx, &bytes)).await {
                return error.kind();
            }
        }
    }

    #[tokio::test]
    async fn a_peer_that_reads_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut patient = Patient::new(listener, Duration::from_millis(50));
        let silent = TcpStream::connect(address).await.unwrap();
        let (connection, _) = patient.accept().await;
        let ended = tokio::time::timeout(Duration::from_secs(30), filled(connection)).await;
        assert_eq!(ended, Ok(io::ErrorKind::TimedOut));
        drop(silent);
    }
}

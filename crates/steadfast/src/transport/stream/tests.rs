use tokio::net::TcpListener;

use super::*;
use crate::transport::testing::{close, read_exactly, read_to_end, write_all};
#[cfg(unix)]
use crate::transport::testing::{hangup, no_hangup};

async fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (far, _) = listener.accept().await.unwrap();
    (near, far)
}

#[tokio::test]
async fn any_reader_and_writer_will_do() {
    let (near, far) = tokio::io::duplex(64);
    let mut near = StreamTransport::duplex(near);
    let (reader, writer) = tokio::io::split(far);
    let mut far = StreamTransport::new(reader, writer);
    write_all(&mut near, b"ask").await.unwrap();
    assert_eq!(read_exactly(&mut far, 3).await, b"ask");
    write_all(&mut far, b"answer").await.unwrap();
    close(&mut far).await.unwrap();
    assert_eq!(read_to_end(&mut near).await, b"answer");
}

#[tokio::test]
async fn a_tcp_socket_carries_bytes_and_a_close_of_one_direction() {
    let (near, far) = tcp().await;
    let (mut near, mut far) = (StreamTransport::from(near), StreamTransport::from(far));
    write_all(&mut near, b"ask").await.unwrap();
    close(&mut near).await.unwrap();
    assert_eq!(read_to_end(&mut far).await, b"ask");
    write_all(&mut far, b"answer").await.unwrap();
    close(&mut far).await.unwrap();
    assert_eq!(read_to_end(&mut near).await, b"answer");
    assert!(write_all(&mut near, b"more").await.is_err());
}

#[tokio::test]
async fn nagle_is_off() {
    let (near, _far) = tcp().await;
    near.set_nodelay(false).unwrap();
    let StreamTransport(StreamTransportInner::Socket(socket)) = StreamTransport::from(near) else { panic!("a socket") };
    assert!(socket.nodelay().unwrap());
}

#[cfg(unix)]
#[tokio::test]
async fn a_tcp_peer_that_closes_is_noticed_despite_unread_bytes() {
    let (near, far) = tcp().await;
    let (mut near, mut far) = (StreamTransport::from(near), StreamTransport::from(far));
    write_all(&mut near, b"unread").await.unwrap();
    no_hangup(&mut far).await;
    drop(near);
    assert_eq!(hangup(&mut far).await, HangupDirection::Input);
    no_hangup(&mut far).await;
    assert_eq!(read_to_end(&mut far).await, b"unread");
}

#[cfg(unix)]
#[tokio::test]
async fn a_tcp_peer_that_resets_is_a_hangup_of_both() {
    let (near, far) = tcp().await;
    let (near, mut far) = (near, StreamTransport::from(far));
    write_all(&mut far, b"never read").await.unwrap();
    near.readable().await.unwrap();
    no_hangup(&mut far).await;
    // A close with unread bytes is a reset.
    drop(near);
    assert_eq!(hangup(&mut far).await, HangupDirection::Input);
    assert_eq!(hangup(&mut far).await, HangupDirection::Output);
    no_hangup(&mut far).await;
}

#[cfg(unix)]
mod unix {
    use tokio::net::UnixStream;

    use super::*;
    use crate::transport::testing::fill;

    #[tokio::test]
    async fn a_unix_peer_that_closes_is_a_hangup_of_both_despite_unread_bytes() {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut near, mut far) = (StreamTransport::from(near), StreamTransport::from(far));
        write_all(&mut near, b"unread").await.unwrap();
        no_hangup(&mut far).await;
        drop(near);
        assert_eq!(hangup(&mut far).await, HangupDirection::Input);
        assert_eq!(hangup(&mut far).await, HangupDirection::Output);
        no_hangup(&mut far).await;
        assert_eq!(read_to_end(&mut far).await, b"unread");
        assert_eq!(write_all(&mut far, b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn a_unix_peer_that_closes_one_direction_is_a_hangup_of_input_only() {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut near, mut far) = (StreamTransport::from(near), StreamTransport::from(far));
        close(&mut near).await.unwrap();
        assert_eq!(hangup(&mut far).await, HangupDirection::Input);
        no_hangup(&mut far).await;
        write_all(&mut far, b"answer").await.unwrap();
        assert_eq!(read_exactly(&mut near, 6).await, b"answer");
    }

    #[tokio::test]
    async fn a_unix_peer_that_leaves_is_noticed_while_our_output_is_stuck() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut far = StreamTransport::from(far);
        assert!(fill(&mut far).await > 0);
        no_hangup(&mut far).await;
        drop(near);
        assert_eq!(hangup(&mut far).await, HangupDirection::Input);
        assert_eq!(hangup(&mut far).await, HangupDirection::Output);
    }

    #[test]
    fn a_socket_moves_to_the_runtime_that_polls_it() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (unix, tcp) = runtime().block_on(async { (UnixStream::pair().unwrap(), tcp().await) });
        // The runtime in which all of them were opened is gone.
        let pairs = [
            (StreamTransport::from(unix.0), StreamTransport::from(unix.1)),
            (StreamTransport::from(tcp.0), StreamTransport::from(tcp.1)),
        ];
        for (mut near, mut far) in pairs {
            runtime().block_on(async {
                no_hangup(&mut far).await;
                write_all(&mut near, b"hello").await.unwrap();
                assert_eq!(read_exactly(&mut far, 5).await, b"hello");
                drop(near);
                assert_eq!(hangup(&mut far).await, HangupDirection::Input);
            });
        }
    }
}

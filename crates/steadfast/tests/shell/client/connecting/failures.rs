//! Connections that fail to open: when the caller learns it, the outcome, and that nothing is left of them.

use std::io;

use serde_json::{Value, json};
use steadfast::client::NegotiationMode;
use steadfast::runtime::Runtime as _;
use steadfast::transport::memory;
use steadfast::transport::stream::StreamTransport;
use steadfast::{ErrorKind, Outcome};

use crate::support::{ManualClock, RawPeer};
use crate::*;

const WITHIN: Duration = Duration::from_secs(10);

/// The next message of a method.
async fn heard(raw: &mut RawPeer, method: &str) -> Value {
    loop {
        let line = soon(raw.line()).await.unwrap_or_else(|| panic!("no {method} came"));
        if line["method"] == method {
            return line;
        }
    }
}

#[tokio::test]
async fn connecting_has_one_deadline_and_the_probe_gets_half_of_the_rest() {
    let clock = ManualClock::new();
    let (here, there) = memory::pair(1 << 16);
    let (sought, found) = (Signal::default(), Signal::default());
    let (seeking, finding, here) = (sought.clone(), found.clone(), std::sync::Mutex::new(Some(here)));
    let reach = move || {
        let (finding, here) = (finding.clone(), here.lock().unwrap().take());
        seeking.set();
        async move {
            finding.wait().await;
            here.ok_or_else(|| io::Error::other("once"))
        }
    };
    let begin = clock.now();
    let connecting = Client::connect(reach).opening_timeout(WITHIN).runtime(Arc::new(clock.clone()));
    let connecting = tokio::spawn(connecting.into_future());
    // Nobody answers anything. It takes four of the ten seconds to get there: the probe has three, and the handshake as well.
    soon(sought.wait()).await;
    clock.move_to(begin + Duration::from_secs(4));
    found.set();
    let mut raw = RawPeer::new(there);
    heard(&mut raw, "server/discover").await;
    clock.move_to(begin + Duration::from_secs(7));
    heard(&mut raw, "initialize").await;
    clock.move_to(begin + WITHIN);
    let error = soon(connecting).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::NotSent));
    assert_eq!(error.to_string(), "connection timed out: the server did not complete the handshake within 10s");
}

#[tokio::test]
async fn connecting_to_a_server_that_never_reads_times_out() {
    let hangs = || std::future::pending::<io::Result<StreamTransport>>();
    let connecting = Client::connect(hangs).opening_timeout(Duration::from_millis(20));
    let error = soon(connecting.into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::NotSent));
}

#[tokio::test]
async fn no_call_was_sent_when_connecting_fails() {
    for (result, kind) in [
        (None, ErrorKind::Closed),
        (Some(json!({"resultType": "complete", "supportedVersions": 7})), ErrorKind::Decode),
        (Some(json!({"resultType": "unheard-of"})), ErrorKind::Decode),
    ] {
        let (here, there) = memory::pair(1 << 16);
        let connecting = tokio::spawn(Client::connect(here).negotiation(NegotiationMode::Stateless).into_future());
        let mut raw = RawPeer::new(there);
        let probe = heard(&mut raw, "server/discover").await;
        if let Some(result) = result {
            raw.send(&json!({"jsonrpc": "2.0", "id": probe["id"], "result": result})).await;
        }
        drop(raw);
        let error = soon(connecting).await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (kind, Outcome::NotSent), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_dies_within_its_response_to_initialize_has_closed_the_connection() {
    for (era, method) in [
        (NegotiationMode::Stateless, "server/discover"),
        (NegotiationMode::Handshake(steadfast::Revision::LATEST_STATEFUL), "initialize"),
    ] {
        let (here, there) = memory::pair(1 << 16);
        let connecting = tokio::spawn(Client::connect(here).negotiation(era).into_future());
        let mut raw = RawPeer::new(there);
        let asked = heard(&mut raw, method).await;
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"capabilities": {}}}).to_string();
        raw.write(&answer.as_bytes()[..answer.len() - 3]).await;
        drop(raw);
        let error = soon(connecting).await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotSent), "{method}: {error:?}");
    }
}

#[tokio::test]
async fn an_error_response_to_initialize_is_refused() {
    let (here, there) = memory::pair(1 << 16);
    let connecting = tokio::spawn(Client::connect(here).into_future());
    let mut raw = RawPeer::new(there);
    for method in ["server/discover", "initialize"] {
        let asked = heard(&mut raw, method).await;
        raw.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32000, "message": "no"}})).await;
    }
    let error = soon(connecting).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Refused, Outcome::Refused));
}

#[cfg(feature = "http-client")]
mod over_http {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Sends these bytes to each connection, and closes it.
    async fn saying(answer: &'static str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        url
    }

    #[tokio::test]
    async fn no_call_was_sent_when_the_server_hangs_up_during_connect() {
        let error = soon(Client::connect(saying("").await).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent), "{error:?}");
    }

    #[tokio::test]
    async fn an_unauthorized_connect_is_refused() {
        for status in ["401 Unauthorized", "403 Forbidden"] {
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let url = saying(answer.leak()).await;
            let error = soon(Client::connect(url).into_future()).await.unwrap_err();
            assert_eq!((error.kind(), error.outcome()), (ErrorKind::Refused, Outcome::Refused), "{error:?}");
        }
    }
}

#[cfg(unix)]
mod processes {
    use std::sync::Mutex;

    use steadfast::transport::child::{Child, Command};

    use super::*;

    fn shell(script: &str) -> Command {
        Command::new("sh").args(["-c", script])
    }

    /// Connects to a process that writes nothing and does not exit by itself. It has a time limit, for test programs that do
    /// not wait for it.
    fn mute(started: &Arc<Mutex<Option<u32>>>) -> steadfast::client::ConnectBuilder {
        let started = Arc::clone(started);
        Client::connect(move || {
            let command = shell("while :; do sleep 0.01; done").leave_within(Duration::from_millis(200));
            let child = Child::spawn(command);
            if let Ok(child) = &child {
                *started.lock().unwrap() = Some(child.id());
            }
            std::future::ready(child)
        })
    }

    fn is_running(id: u32) -> bool {
        std::process::Command::new("kill").args(["-0", &id.to_string()]).output().unwrap().status.success()
    }

    #[tokio::test]
    async fn a_failed_connect_leaves_no_process() {
        let started = Arc::default();
        let connecting = mute(&started).opening_timeout(Duration::from_millis(20));
        let error = soon(connecting.into_future()).await.unwrap_err();
        let process = started.lock().unwrap().unwrap();
        assert!(!is_running(process), "{error:?}");
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::NotSent));
    }

    #[tokio::test]
    async fn a_dropped_connect_ends_its_process() {
        let started = Arc::default();
        let mut connecting = mute(&started).into_future();
        let process = loop {
            let polled = tokio::time::timeout(Duration::from_millis(1), &mut connecting).await;
            assert!(polled.is_err(), "{polled:?}");
            let process = *started.lock().unwrap();
            if let Some(process) = process {
                break process;
            }
        };
        assert!(is_running(process));
        drop(connecting);
        soon(async {
            while is_running(process) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    #[tokio::test]
    async fn the_error_of_a_process_that_dies_at_start_has_its_exit_status_and_last_standard_error() {
        let server = shell("echo 'no database' >&2; exit 3").args(["sh", "--token=secret"]).env("KEY", "secret");
        let error = soon(Client::connect(server).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotSent));
        assert_eq!(error.to_string(), "the server closed the connection during the handshake");
        let told = format!("{error:?}");
        assert!(told.contains("`sh` exited (exit status: 3):\n    no database"), "{told}");
        assert!(!told.contains("secret"), "{told}");
        assert!(!error.object().message.contains("database"), "a peer is told what the server said: {error}");
    }

    #[tokio::test]
    async fn the_error_of_a_process_that_is_killed_at_start_names_the_signal() {
        let killed = shell("kill -KILL $$").stderr_null();
        let error = soon(Client::connect(killed).into_future()).await.unwrap_err();
        let told = format!("{error:?}");
        assert!(told.contains("`sh` exited (signal: 9 (SIGKILL))"), "{told}");
    }

    #[tokio::test]
    async fn standard_error_of_a_failed_process_is_still_forwarded() {
        let (lines, mut said) = tokio::sync::mpsc::unbounded_channel();
        let server =
            shell("echo one >&2; echo two >&2").on_stderr_line(move |line| lines.send(line.to_owned()).unwrap());
        let error = soon(Client::connect(server).into_future()).await.unwrap_err();
        assert!(format!("{error:?}").contains("\n    one\n    two"), "{error:?}");
        assert_eq!(
            (soon(said.recv()).await.as_deref(), soon(said.recv()).await.as_deref()),
            (Some("one"), Some("two"))
        );
    }

    #[tokio::test]
    async fn the_error_names_a_program_that_cannot_be_started() {
        let no_program = std::env::temp_dir();
        for (program, told) in [
            ("steadfast-no-such-program", "program `steadfast-no-such-program` not found: give its path"),
            (no_program.to_str().unwrap(), "it has to be an executable program"),
        ] {
            let server = Command::new(program).arg("--token=secret");
            let error = soon(Client::connect(server).into_future()).await.unwrap_err();
            assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent));
            let error = format!("{error:?}");
            assert!(error.contains(told) && !error.contains("secret"), "{error}");
        }
        let nowhere = shell("exit").current_dir("/steadfast/nowhere");
        let error = format!("{:?}", soon(Client::connect(nowhere).into_future()).await.unwrap_err());
        assert!(error.contains("cannot start `sh`: there is no working directory `/steadfast/nowhere`"), "{error}");
    }
}

/// A dropped connect leaves neither the driver nor a child process.
#[tokio::test]
async fn a_connect_that_is_dropped_closes_the_transport() {
    let (here, there) = memory::pair(4096);
    let connecting = Client::connect(here).into_future();
    assert!(tokio::time::timeout(Duration::from_millis(50), connecting).await.is_err());
    let mut peer = RawPeer::new(there);
    let end = async { while peer.line().await.is_some() {} };
    within(5, end).await.expect("the connection is still open although nobody has it");
}

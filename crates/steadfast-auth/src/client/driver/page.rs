//! The HTTP endpoint of the loopback listener: reads a request of the browser and answers with a small page.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::client::authorize::state_of;

/// Limit of the head of the browser's HTTP request, in bytes: more than an OAuth redirect needs.
const MAX_BYTES: usize = 16 * 1024;
/// Timeout of a connection to the loopback listener: browsers open some connections that they never use.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The OAuth redirect that the loopback listener waits for.
#[derive(Clone)]
pub(super) struct ExpectedRedirect {
    pub(super) path: String,
    pub(super) state: String,
}

/// Answers one HTTP request of the browser. Returns the query of the request if it is the expected OAuth redirect.
pub(super) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    expected: ExpectedRedirect,
) -> Option<String> {
    let target = tokio::time::timeout(REQUEST_TIMEOUT, read_target(&mut stream)).await.ok()??;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let found = (path == expected.path).then(|| query.to_owned());
    let ours = found.filter(|query| state_of(query).as_deref() == Some(expected.state.as_str()));
    let page = match &ours {
        Some(_) => page("200 OK", "You can close this window and go back to the application."),
        None => page("404 Not Found", "There is no page at this address."),
    };
    // A failure to send the page does not matter: the redirect has arrived.
    let written = async {
        stream.write_all(page.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(REQUEST_TIMEOUT, written).await;
    ours
}

/// Reads the head of the browser's HTTP request, and returns the target if it is a GET.
async fn read_target(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let (mut head, mut buffer) = (Vec::new(), [0; 2048]);
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let length = stream.read(&mut buffer).await.ok()?;
        if length == 0 || head.len() + length > MAX_BYTES {
            return None;
        }
        head.extend_from_slice(buffer.get(..length)?);
    }
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    (method == "GET").then(|| target.to_owned())
}

/// Builds the HTTP response with a page that loads nothing, is not cached, and sends no referrer.
fn page(status: &str, text: &str) -> String {
    let body = format!("<!doctype html><meta charset=\"utf-8\"><title>Authorization</title><p>{text}</p>");
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn asked(request: &str) -> (Option<String>, String) {
        let (mut browser, stream) = tokio::io::duplex(64 * 1024);
        browser.write_all(request.as_bytes()).await.unwrap();
        let expected = ExpectedRedirect { path: String::from("/callback"), state: String::from("s1") };
        let found = serve(stream, expected).await;
        let mut answer = String::new();
        let _ = browser.read_to_string(&mut answer).await;
        (found, answer)
    }

    #[tokio::test]
    async fn the_answer_is_found_and_the_user_sent_back() {
        let (found, answer) = asked("GET /callback?code=c&state=s1 HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert_eq!(found.as_deref(), Some("code=c&state=s1"));
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("close this window"), "{answer}");
    }

    #[tokio::test]
    async fn anything_else_is_not_there() {
        for request in [
            "GET /favicon.ico HTTP/1.1\r\n\r\n",
            "GET /callback?code=c&state=other HTTP/1.1\r\n\r\n",
            "GET /callback?code=c HTTP/1.1\r\n\r\n",
            "GET /callback HTTP/1.1\r\n\r\n",
        ] {
            let (found, answer) = asked(request).await;
            assert!(found.is_none() && answer.starts_with("HTTP/1.1 404"), "{request}: {answer}");
        }
        for request in ["POST /callback?state=s1 HTTP/1.1\r\n\r\n", "\r\n\r\n", "GET\r\n\r\n", &"x".repeat(20_000)] {
            assert!(asked(request).await.0.is_none());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_browser_that_says_nothing_is_left_alone() {
        let (_browser, stream) = tokio::io::duplex(64);
        let expected = ExpectedRedirect { path: String::from("/callback"), state: String::from("s1") };
        assert!(serve(stream, expected).await.is_none());
    }
}
